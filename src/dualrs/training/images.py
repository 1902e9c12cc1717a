"""Training images: a dataset as 8-bit tensors, and batches of it, shifted and mirrored at random.

Enters: a dataset with labels. Leaves: batches in [0, 1]. Images that fit comfortably in memory are held there; of
larger datasets each batch is read when it is asked for. Both ways give the same batches.
"""

import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

import numpy as np
import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from dualrs.data.classes import class_names
from dualrs.data.dataset import Dataset
from dualrs.data.images import LEVELS
from dualrs.errors import BadData

_SHIFT = 4  # pixels, for images of 32; larger images shift by the same share of their side
_HELD_AT_MOST = 4 * 2**30  # bytes of pixels
_READERS = 8  # threads; decoding does not hold Python's lock


class TrainingImages:
    """Images of a dataset, all or those at ``places``, with a reflected margin, and their labels."""

    def __init__(self, dataset: Dataset, places: Sequence[int] | None = None) -> None:
        if dataset.labels is None:
            raise BadData(f"the dataset {dataset.name} has no labels to train on")
        self._dataset = dataset
        self._places = tuple(range(len(dataset.ids)) if places is None else places)
        first = dataset.image(self._places[0])
        self.name = dataset.name
        self.ids = tuple(dataset.ids[i] for i in self._places)
        self.labels = torch.tensor([dataset.labels[i] for i in self._places])
        self.class_names = class_names(dataset)
        self.classes = max(int(self.labels.max()) + 1, len(self.class_names))
        self.sides = first.shape[1], first.shape[2]
        self.margin = max(1, _SHIFT * min(self.sides) // 32)
        self._readers = ThreadPoolExecutor(_READERS) if first.nbytes * len(self) > _HELD_AT_MOST else None
        self._held = self._padded(dataset.image(i) for i in self._places) if self._readers is None else None

    def __len__(self) -> int:
        return len(self._places)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the dataset and of which of its images these are, in which order."""
        places = np.array(self._places, dtype="<i8").tobytes()
        return hashlib.blake2b(self._dataset.fingerprint.encode() + places, digest_size=16).hexdigest()

    def batch(self, indices: Tensor, generator: Generator) -> Tensor:
        """Images in [0, 1], each shifted by up to the margin and mirrored half of the time."""
        count, (height, width) = len(indices), self.sides
        top, left = (torch.randint(2 * self.margin + 1, (2, count, 1), generator=generator)).unbind()
        rows = top + torch.arange(height)
        columns = left + torch.arange(width)
        mirrored = torch.rand(count, generator=generator) < 0.5
        columns[mirrored] = columns[mirrored].flip(1)
        padded, places = self._find(indices)
        channels = torch.arange(padded.shape[1])
        taken = padded[
            places[:, None, None, None],
            channels[None, :, None, None],
            rows[:, None, :, None],
            columns[:, None, None, :],
        ]
        return taken.float().div_(LEVELS)

    def plain(self, indices: Tensor) -> Tensor:
        """Images in [0, 1] as they are."""
        padded, places = self._find(indices)
        top, left = (slice(self.margin, self.margin + side) for side in self.sides)
        return padded[places][:, :, top, left].float().div_(LEVELS)

    def _find(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        """Images with their margin, and where among them those of a batch are."""
        if self._held is not None:
            return self._held, indices
        assert self._readers is not None, "images are held or read"
        chosen = [self._places[i] for i in indices.tolist()]
        return self._padded(self._readers.map(self._dataset.image, chosen)), torch.arange(len(chosen))

    def _padded(self, images: Iterator[np.ndarray]) -> Tensor:
        return F.pad(torch.from_numpy(np.stack(list(images))), [self.margin] * 4, mode="reflect")


def plain_batches(dataset: Dataset, size: int = 250) -> Iterator[tuple[Tensor, Tensor]]:
    """Images in [0, 1] as they are, with labels, in order: for measuring."""
    if dataset.labels is None:
        raise BadData(f"the dataset {dataset.name} has no labels to compare with")
    for start in range(0, len(dataset.ids), size):
        chosen = range(start, min(start + size, len(dataset.ids)))
        pixels = torch.from_numpy(np.stack([dataset.image(i) for i in chosen]))
        yield pixels.float().div_(LEVELS), torch.tensor([dataset.labels[i] for i in chosen])
