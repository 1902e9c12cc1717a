"""Work: what is asked for and of whom, the types between those who want votes and those who count them.

A run has its networks tried (`Counting.prepare`) and hands a `Work` to their `Counting.counter`, which takes requests
from it and delivers counts to it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, Protocol, Self

import torch

from dualrs.data.images import Pixels
from dualrs.models.noisy import NoisyModel
from dualrs.sampling.noise import NoiseSource
from dualrs.votes import Counts, Stage, Unit

Slot = tuple[Stage, float]  # which network: of a stage, at a sigma


def slot_of(stage: Stage, sigma: float, slots: Collection[Slot]) -> Slot:
    """Where votes at a sigma come from: its own slot or, where each input has a sigma of its own, that of the stage."""
    if (stage, sigma) in slots:
        return stage, sigma
    (only,) = (slot for slot in slots if slot[0] is stage)
    return only


class Request(NamedTuple):
    """A unit of votes, and which member of a panel is to cast them: known while they are counted, and never stored.

    ``following`` are votes of the same network on the same input that may be asked for next.
    """

    unit: Unit
    member: int = 0
    following: Unit | None = None


class Work(Protocol):
    """A supply of requests, and a place for their counts."""

    def more(self) -> Sequence[Request] | None:
        """The first requests about another input; None when there is no further input, however often it is asked."""

    def pixels(self, input_id: str) -> Pixels:
        """The image of an input that was begun, shape (channels, height, width)."""

    def deliver(self, request: Request, counts: Counts, seconds: float) -> Sequence[Request]:
        """Take the counts of a finished unit, shape (blocks, answers); return further requests, if any."""

    def batch_done(self) -> None:
        """All units that a batch finished were delivered."""


class Counting(Protocol):
    """The side of an `Engine` that a run sees; workers have something in its place."""

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
    def asked_size(self) -> int | None:
        """The batch size that was asked for; None for one that suits the networks."""

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
        """Take the batch size of others, or of a run that was begun earlier; it must fit."""

    def keep_noise(self, noise: str) -> None:
        """Share no copies if a run that was begun earlier does not."""

    def prepare(self, pixels: Pixels) -> None:
        """Try the networks on one image, once; refuse what would make votes meaningless."""

    def identify(self, first: Pixels) -> Mapping[Slot, str]:
        """For each stage and sigma a hash of what its network answers to trial copies of this and of fixed images."""

    @property
    def counter(self) -> Callable[[Sequence[Self], Work, NoiseSource], None]:
        """What counts every unit that a work asks of a panel: of this one, alone or beside others of its kind."""
