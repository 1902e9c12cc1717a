"""Training images: a dataset in memory as 8-bit tensors, and batches of it, shifted and mirrored at random."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from dualrs.data.dataset import Dataset
from dualrs.data.images import LEVELS
from dualrs.errors import BadData

_SHIFT = 4  # pixels, for images of 32; larger images shift by the same share of their side


class TrainingImages:
    """Images of a dataset, all or those at ``places``, with a reflected margin, and their labels."""

    def __init__(self, dataset: Dataset, places: Sequence[int] | None = None) -> None:
        if dataset.labels is None:
            raise BadData(f"the dataset {dataset.name} has no labels to train on")
        chosen = range(len(dataset.ids)) if places is None else places
        stacked = torch.from_numpy(np.stack([dataset.image(i) for i in chosen]))
        self.name = dataset.name
        self.labels = torch.tensor([dataset.labels[i] for i in chosen])
        self.classes = int(self.labels.max()) + 1
        self.sides = stacked.shape[2], stacked.shape[3]
        self.margin = max(1, _SHIFT * min(self.sides) // 32)
        self._padded = F.pad(stacked, [self.margin] * 4, mode="reflect")

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, indices: Tensor, generator: Generator) -> Tensor:
        """Images in [0, 1], each shifted by up to the margin and mirrored half of the time."""
        count, (height, width) = len(indices), self.sides
        top, left = (torch.randint(2 * self.margin + 1, (2, count, 1), generator=generator)).unbind()
        rows = top + torch.arange(height)
        columns = left + torch.arange(width)
        mirrored = torch.rand(count, generator=generator) < 0.5
        columns[mirrored] = columns[mirrored].flip(1)
        channels = torch.arange(self._padded.shape[1])
        taken = self._padded[
            indices[:, None, None, None],
            channels[None, :, None, None],
            rows[:, None, :, None],
            columns[:, None, None, :],
        ]
        return taken.float().div_(LEVELS)


def plain_batches(dataset: Dataset, size: int = 250) -> Iterator[tuple[Tensor, Tensor]]:
    """Images in [0, 1] as they are, with labels, in order: for measuring."""
    if dataset.labels is None:
        raise BadData(f"the dataset {dataset.name} has no labels to compare with")
    for start in range(0, len(dataset.ids), size):
        chosen = range(start, min(start + size, len(dataset.ids)))
        pixels = torch.from_numpy(np.stack([dataset.image(i) for i in chosen]))
        yield pixels.float().div_(LEVELS), torch.tensor([dataset.labels[i] for i in chosen])
