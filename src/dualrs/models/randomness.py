"""Randomness that a network draws for itself, beside the noise that it is shown.

A network asks for it by a parameter ``randomness`` of its forward, and is given an object that draws as torch does, one
row for each image of the batch. It may draw from nothing else: what a vote draws then belongs to that vote alone, and
votes are independent, as bounds on their counts assume (docs/guarantees.md).
"""

from typing import Protocol

import torch
from torch import Generator, Tensor


class Randomness(Protocol):
    """What a network draws from: rows of numbers, one row for each image of its batch. Every call draws afresh."""

    def rand(self, *size: int) -> Tensor:
        """Uniform numbers in [0, 1), in float32; the first dimension is the batch."""

    def randn(self, *size: int) -> Tensor:
        """Standard normal numbers, in float32; the first dimension is the batch."""


class FromGenerator:
    """Randomness of a torch generator, on the CPU: for answers that are no votes, as those that an attack looks at."""

    def __init__(self, generator: Generator, device: torch.device) -> None:
        self._generator, self._device = generator, device

    def rand(self, *size: int) -> Tensor:
        """Uniform numbers in [0, 1)."""
        return torch.rand(size, generator=self._generator).to(self._device)

    def randn(self, *size: int) -> Tensor:
        """Standard normal numbers."""
        return torch.randn(size, generator=self._generator).to(self._device)
