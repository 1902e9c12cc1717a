"""An executor: what stands in the place of a model's engine while workers count its votes.

Enters: what the engine would be told. Leaves: what it would say, once the workers have found it out.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from dualrs.data.images import Pixels
from dualrs.sampling.noise import NoiseSource
from dualrs.sampling.work import Counting, Slot, Work
from dualrs.scale.parcels import Ready, Settings

if TYPE_CHECKING:
    from dualrs.scale.workers import Workers


class Executor:
    """What a model has in the place of its `Engine` while workers count its votes."""

    def __init__(self, workers: "Workers", number: int, engine: Counting) -> None:
        self._workers, self._engine = workers, engine
        self.number = number
        self.models = engine.models  # as the driver has them
        self.batch_size, self.asked_size = engine.batch_size, engine.asked_size
        self.dtype, self.compile = engine.dtype, engine.compile
        self.answers: dict[Slot, int] = {}
        self.keep = False  # the batch size, whatever fits
        self.image: Pixels | None = None  # that the networks are tried on
        self.first: Ready | None = None  # report, by which all others are measured

    @property
    def device(self) -> torch.device:
        """Where the workers run the networks."""
        return self._workers.device

    @property
    def noise(self) -> str:
        """The name of the noise."""
        return self._engine.noise

    def keep_shape(self, batch_size: int) -> None:
        """Take the batch size of others, or of a run that was begun earlier; it must fit on every worker."""
        self.batch_size, self.keep, self.answers = batch_size, True, {}

    def keep_noise(self, noise: str) -> None:
        """Share no copies if a run that was begun earlier does not."""
        self._engine.keep_noise(noise)
        self.answers = {}

    def prepare(self, pixels: Pixels) -> None:
        """Have every worker try the networks on one image, once; the smallest batch size of all is taken."""
        if not self.answers:
            self.image = pixels  # of this executor's own: others may have been tried on another
            self._workers.seats.prepare(self)

    @property
    def settings(self) -> Settings:
        """How a worker is to try the networks."""
        assert self.image is not None, "an image comes before the first worker"
        return Settings(self.number, self.batch_size if self.keep else None, self.noise, self.image)

    def settle(self, reports: Sequence[Ready]) -> None:
        """Take over what the first workers found out."""
        self.first = reports[0]
        for warning in self.first.warnings:
            warnings.warn(warning, stacklevel=4)
        if not self.keep:
            self.batch_size, self.keep = min(report.batch_size for report in reports), True
        self.answers = dict(self.first.answers)

    def identify(self, first: Pixels) -> Mapping[Slot, str]:
        """For each stage and sigma a hash of what its network answers to trial copies of this and of fixed images."""
        return self._workers.seats.identify(self, first)

    @property
    def counter(self) -> Callable[[Sequence["Executor"], Work, NoiseSource], None]:
        """What counts for it, alone or beside others: its workers."""
        return self._workers.count
