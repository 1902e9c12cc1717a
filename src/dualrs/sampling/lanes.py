"""Lanes: requests for the same networks wait in one, in order of arrival, until they are packed into a batch.

Enters: requests. Leaves: runs of votes that fill a batch. A network that is told the sigma has a lane for each sigma;
networks that vote on the same noisy copies have one together.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from torch import nn

from dualrs.models.noisy import NoisyModel
from dualrs.sampling.work import Request, slot_of
from dualrs.votes import BLOCK, Counts, Unit

if TYPE_CHECKING:
    from dualrs.sampling.engine import Engine

# An input has one vote without noise. To wait for a full batch of them would begin hundreds of inputs, and finish none.
FEW = 8


@dataclass
class Ballot:
    """A unit of votes that is being counted, for whoever asked for it."""

    request: Request
    counts: Counts

    def add(self, first: int, answers: NDArray[np.int64]) -> None:
        """Count answers, to the votes of the unit from number ``first`` of them on."""
        blocks = np.arange(first, first + len(answers)) // BLOCK
        flat = blocks * self.counts.shape[1] + answers
        self.counts += np.bincount(flat, minlength=self.counts.size).reshape(self.counts.shape)


@dataclass
class Order:
    """Noisy copies on their way through batches, and the units that are voted on them, one for each network.

    ``unit`` says which copies, by the stream whose noise they have.
    """

    unit: Unit
    ballots: list[Ballot]
    asked: int = 0  # votes packed into batches
    counted: int = 0
    seconds: float = 0.0


@dataclass
class Run:
    """Votes ``first`` to ``last`` (exclusive) of an order, in consecutive rows of a batch."""

    order: Order
    first: int
    last: int

    @property
    def votes(self) -> int:
        """How many rows it has."""
        return self.last - self.first


@dataclass
class Lane:
    """Orders for one network, or for several that vote on the same copies, in order of arrival."""

    models: tuple[NoisyModel, ...]
    sigma: float
    orders: deque[Order] = field(default_factory=deque)
    waiting: int = 0  # votes not yet packed

    def pack(self, batch_size: int) -> list[Run]:
        """Take up to a batch of votes from the head."""
        runs: list[Run] = []
        room = batch_size
        while room and self.orders:
            order = self.orders[0]
            take = min(room, order.unit.votes - order.asked)
            first = order.unit.start + order.asked
            runs.append(Run(order, first, first + take))
            order.asked += take
            self.waiting -= take
            room -= take
            if order.asked == order.unit.votes:
                self.orders.popleft()
        return runs


class Lanes:
    """The lanes of a panel of engines."""

    def __init__(self, panel: Sequence["Engine"]) -> None:
        self._panel = panel
        self._lanes: dict[tuple[tuple[nn.Module, float | None], ...], Lane] = {}

    def add(self, requests: Iterable[Request], begin: Callable[[Order], None]) -> list[Order]:
        """Put requests into the lanes of their networks; those that are about the same noisy copies go together.

        ``begin`` is called with each order, and may count votes that are here already. Returns what is complete by it.
        """
        complete: list[Order] = []
        on_same_copies: dict[Unit, list[Request]] = {}
        for request in requests:
            unit, engine = request.unit, self._panel[request.member]
            copies = replace(unit, stream=engine.noise_of(unit.stream))
            on_same_copies.setdefault(copies, []).append(request)
        for copies, together in on_same_copies.items():
            sigma = copies.stream.sigma
            together.sort(key=lambda request: (request.member, request.unit.stream))  # in whatever order they come
            panel = [(request.unit.stream.stage, self._panel[request.member]) for request in together]
            voting = [(engine, slot_of(stage, sigma, engine.models)) for stage, engine in panel]
            models = tuple(engine.models[slot] for engine, slot in voting)
            lane = self._lanes.setdefault(tuple(model.key(sigma) for model in models), Lane(models, sigma))
            ballots = [
                Ballot(request, np.zeros((request.unit.blocks, engine.answers[slot]), dtype=np.int64))
                for request, (engine, slot) in zip(together, voting, strict=True)
            ]
            begin(order := Order(copies, ballots))
            if order.counted == copies.votes:
                complete.append(order)
            else:
                lane.orders.append(order)
                lane.waiting += copies.votes - order.asked
        return complete

    def fullest(self, least: int) -> Lane | None:
        """The lane where the most votes wait, if they are that many; without noise, a few are enough."""
        waiting = [lane for lane in self._lanes.values() if lane.waiting >= (least if lane.sigma else min(least, FEW))]
        return max(waiting, key=lambda lane: lane.waiting, default=None)
