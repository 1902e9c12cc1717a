"""What counts votes: an engine in this process, or whatever takes its place.

Enters: the settings of a run, an image to try the networks on, a `Work`. Leaves: the counts of its units.
"""

from collections.abc import Mapping
from typing import Protocol, Self

import torch

from dualrs.data.images import Pixels
from dualrs.models.noisy import NoisyModel
from dualrs.sampling.engine import Slot, Work
from dualrs.sampling.noise import NoiseSource


class Counting(Protocol):
    """The side of an `Engine` that a run sees."""

    @property
    def models(self) -> Mapping[Slot, NoisyModel]:
        """The network that votes at each stage and sigma."""

    @property
    def answers(self) -> Mapping[Slot, int]:
        """How many different answers each has; known once they were tried."""

    @property
    def batch_size(self) -> int:
        """The shape of every batch; settled once the networks were tried."""

    @property
    def dtype(self) -> str:
        """The number format of the networks."""

    @property
    def compile(self) -> bool:
        """Whether torch compiles them."""

    @property
    def device(self) -> torch.device:
        """Where the networks run."""

    @property
    def noise(self) -> str:
        """The name of the noise: its algorithm, and whether the stages share it."""

    def keep_shape(self, batch_size: int) -> None:
        """Take the batch size of a run that was begun earlier; it must fit."""

    def keep_noise(self, noise: str) -> None:
        """Share no copies if a run that was begun earlier does not."""

    def prepare(self, pixels: Pixels) -> None:
        """Try the networks on one image, once; refuse what would make votes meaningless."""

    def identify(self, first: Pixels) -> Mapping[Slot, str]:
        """For each stage and sigma a hash of what its network answers to trial copies of this and of fixed images."""

    def run(self, work: Work, source: NoiseSource, *others: Self) -> None:
        """Count every unit that a work names; ``others`` are of its own kind, for the members 1, 2, ... of units."""
