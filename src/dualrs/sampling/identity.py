"""What networks are tried on so that they are known again: noisy copies that every run of a model draws alike.

Enters: an image. Leaves: copies of it and of a few fixed images of its shape, as integer pixels plus noise. A hash of
what a network answers to them tells it from another one whose name, printed form and weights are the same.
"""

from collections.abc import Iterator

import numpy as np

from dualrs.data.images import Pixels
from dualrs.sampling.batches import noisy_copies
from dualrs.sampling.noise import Int16s
from dualrs.votes import Stream

COPIES = 64  # of each image, for each stage and sigma

_KEY = 0x6475616C7273  # of the image of random pixels


def trial_images(first: Pixels) -> list[Pixels]:
    """The images: a ramp, squares, random pixels, all of the shape of the one given, and that one."""
    channels, height, width = first.shape
    channel, row, column = np.ogrid[:channels, :height, :width]
    ramp = (row + column) * 255 // max(height + width - 2, 1) + 64 * channel
    squares = ((row // 4 + column // 4 + channel) % 2) * 160 + 48
    words = np.random.Philox(key=_KEY).random_raw(-(-first.size // 8)).astype("<u8", copy=False)
    random = words.view(np.uint8)[: first.size].reshape(first.shape)
    return [(ramp % 256).astype(np.uint8), squares.astype(np.uint8), random, first]


def trial_batches(first: Pixels, stream: Stream, batch_size: int) -> Iterator[tuple[Int16s, int]]:
    """Noisy copies in batches of one shape, (batch size, pixels), and how many of each batch are no padding."""
    rows = np.concatenate([noisy_copies(image, stream, COPIES) for image in trial_images(first)])
    for start in range(0, len(rows), batch_size):
        batch = rows[start : start + batch_size]
        padding = np.broadcast_to(batch[:1], (batch_size - len(batch), rows.shape[1]))
        yield np.concatenate([batch, padding]), len(batch)
