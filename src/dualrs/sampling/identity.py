"""How networks are known again: by what they answer to noisy copies that every run of a model draws alike.

Enters: networks and an image. Leaves: for each network a hash of its answers to copies of that image and of a few fixed
ones of its shape, which tells it from another one whose name, printed form and weights are the same.
"""

import hashlib
from collections.abc import Iterator, Mapping

import numpy as np
from torch import Tensor

from dualrs.data.images import Pixels
from dualrs.models.noisy import NoisyModel
from dualrs.sampling.auxiliary import Vote, VoteRandomness
from dualrs.sampling.batches import noisy_copies, trial_votes
from dualrs.sampling.machine import Machine
from dualrs.sampling.noise import Int16s
from dualrs.sampling.work import Slot
from dualrs.votes import Part, Stream

COPIES = 64  # of each image, for each stage and sigma, if the answer to each is one number
LARGE = 30_000  # pixel values; copies of larger images take so long that there should be few
RANKS = 8  # answers, the likeliest first, that each of them tells where there are more: so many times fewer say as much

_KEY = 0x6475616C7273  # of the image of random pixels


def identify(
    machine: Machine, models: Mapping[Slot, NoisyModel], answers: Mapping[Slot, int], first: Pixels
) -> dict[Slot, str]:
    """For each stage and sigma a hash of what its network, of so many ``answers``, says to trial copies.

    They are copies of fixed images and of one more. Equal for two networks that answer alike, whatever they are called.
    Logits that are not finite are an answer too: this is no vote.
    """
    found = {}
    for (stage, sigma), model in models.items():
        digest = hashlib.blake2b(digest_size=16)
        ranks = RANKS if first.size > LARGE and answers[stage, sigma] > RANKS else 1
        stream = Stream(stage, Part.SELECTION, sigma)
        for rows, votes in trial_batches(first, stream, machine.batch_size, COPIES // ranks):
            padding = votes[:1] * (machine.batch_size - len(votes))
            with machine.settled():
                drawing = VoteRandomness(votes + padding, machine.device)
                logits = model(machine.images(rows, first.shape), sigma, drawing)[: len(votes)]
                said = _first(logits, ranks).where(logits.isfinite().all(dim=1, keepdim=True), -1)
            digest.update(said.cpu().numpy().astype("<i8").tobytes())
        found[stage, sigma] = digest.hexdigest()
    return found


def _first(logits: Tensor, ranks: int) -> Tensor:
    """The answers with the largest logits, the largest first, shape (batch, ranks)."""
    if ranks == 1:
        return logits.argmax(dim=1, keepdim=True)
    return logits.sort(dim=1, descending=True, stable=True).indices[:, :ranks]


def trial_images(first: Pixels) -> list[Pixels]:
    """The images: a ramp, squares, random pixels, all of the shape of the one given, and that one."""
    channels, height, width = first.shape
    channel, row, column = np.ogrid[:channels, :height, :width]
    ramp = (row + column) * 255 // max(height + width - 2, 1) + 64 * channel
    squares = ((row // 4 + column // 4 + channel) % 2) * 160 + 48
    words = np.random.Philox(key=_KEY).random_raw(-(-first.size // 8)).astype("<u8", copy=False)
    random = words.view(np.uint8)[: first.size].reshape(first.shape)
    return [(ramp % 256).astype(np.uint8), squares.astype(np.uint8), random, first]


def trial_batches(first: Pixels, stream: Stream, batch_size: int, copies: int) -> Iterator[tuple[Int16s, list[Vote]]]:
    """Noisy copies, so many of each image, in batches of one shape, (batch size, pixels).

    With each batch comes what those copies in it draw from that are no padding.
    """
    images = trial_images(first)
    rows = np.concatenate([noisy_copies(image, stream, copies) for image in images])
    votes = [vote for image in images for vote in trial_votes(image, stream, copies)]
    for start in range(0, len(rows), batch_size):
        batch = rows[start : start + batch_size]
        padding = np.broadcast_to(batch[:1], (batch_size - len(batch), rows.shape[1]))
        yield np.concatenate([batch, padding]), votes[start : start + batch_size]
