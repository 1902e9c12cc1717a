"""Collect: carry a policy out for many inputs at once, through an engine, into a store.

Enters: inputs, a policy, a plan. Leaves: finished tallies, handed over one input at a time as they are done.
Votes that the store already has are not asked for again: that is all there is to resuming.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from dualrs.data.images import Pixels
from dualrs.errors import BadImage
from dualrs.policy import Policy, Wanted
from dualrs.sampling.engine import Engine
from dualrs.votes import Counts, SamplingPlan, Tally, Unit


class Input(NamedTuple):
    """An image under its stable id."""

    id: str
    pixels: Pixels  # (channels, height, width)


class VoteStore(Protocol):
    """Where votes are kept while they are collected."""

    def tally(self, input_id: str) -> Tally:
        """The votes on an input so far."""

    def record(self, unit: Unit, counts: Counts) -> None:
        """Keep the counts of a finished unit."""

    def commit(self) -> None:
        """Make everything recorded so far permanent."""


class Memory:
    """A store that forgets: each input begins with no votes, and its tally alone carries them."""

    def tally(self, input_id: str) -> Tally:
        """An empty tally."""
        return Tally()

    def record(self, unit: Unit, counts: Counts) -> None:
        """Nothing to keep."""

    def commit(self) -> None:
        """Nothing to make permanent."""


@dataclass
class Progress:
    """How far a collection is."""

    inputs: int = 0  # finished, by an earlier process too
    votes: int = 0  # counted by this process
    work: float = 0.0  # inputs finished, with the begun ones in proportion to their votes


Finish = Callable[[str, Tally, float], None]  # input id, its votes, the seconds its votes took
Report = Callable[[Progress], None]


@dataclass
class _Open:
    """An input in flight."""

    pixels: Pixels
    tally: Tally
    wanted: Wanted
    outstanding: int = 0
    seconds: float = 0.0
    work: float = 0.0


@dataclass
class _Collection:
    """The engine's `Work`: inputs in flight, each at some step of its policy."""

    inputs: Iterable[Input]
    policy: Policy
    plan: SamplingPlan
    store: VoteStore
    finish: Finish
    report: Report | None
    progress: Progress

    def __post_init__(self) -> None:
        self._supply = iter(self.inputs)
        self._open: dict[str, _Open] = {}
        self._shape: tuple[int, ...] | None = None
        # Most inputs need two stages; what needs less or more is set right when it finishes.
        self.share_per_vote = 0.5 / (self.plan.n0 + self.plan.n)

    def more(self) -> Sequence[Unit] | None:
        item = next(self._supply, None)
        if item is None:
            return None
        if item.pixels.dtype != np.uint8 or item.pixels.ndim != 3:
            raise BadImage(f"input {item.id} is not a uint8 image (channels, height, width)")
        if self._shape not in (None, item.pixels.shape):
            raise BadImage(
                f"input {item.id} has shape {item.pixels.shape}, earlier ones {self._shape}; all must be alike"
            )
        self._shape = item.pixels.shape
        tally = self.store.tally(item.id)
        self._open[item.id] = _Open(item.pixels, tally, self.policy(tally))
        return self._advance(item.id)

    def pixels(self, input_id: str) -> Pixels:
        return self._open[input_id].pixels

    def deliver(self, unit: Unit, counts: Counts, seconds: float) -> Sequence[Unit]:
        flight = self._open[unit.input_id]
        flight.tally.add(unit, counts)
        flight.outstanding -= 1
        flight.seconds += seconds
        self.store.record(unit, counts)
        self.progress.votes += unit.votes
        part = min(unit.votes * self.share_per_vote, 1 - flight.work)
        flight.work += part
        self.progress.work += part
        return self._advance(unit.input_id) if flight.outstanding == 0 else ()

    def batch_done(self) -> None:
        self.store.commit()
        if self.report is not None:
            self.report(self.progress)

    def _advance(self, input_id: str) -> list[Unit]:
        """Take the policy's next steps until it wants votes that are not here yet, or is done."""
        flight = self._open[input_id]
        for streams in flight.wanted:
            units = [u for s in streams for u in self.plan.units(input_id, s) if not flight.tally.holds(u)]
            if units:
                flight.outstanding = len(units)
                return units
        self.finish(input_id, flight.tally, flight.seconds)
        self.progress.inputs += 1
        self.progress.work += 1 - flight.work
        del self._open[input_id]
        return []


def collect(
    engine: Engine,
    inputs: Iterable[Input],
    policy: Policy,
    plan: SamplingPlan,
    seed: int,
    *,
    finish: Finish,
    store: VoteStore | None = None,
    report: Report | None = None,
    done: int = 0,
) -> None:
    """Collect the votes that the policy wants for every input; call ``finish`` for each as it is done.

    ``done`` inputs, finished before, count in the progress that is reported.
    """
    work = _Collection(inputs, policy, plan, store or Memory(), finish, report, Progress(done, 0, done))
    work.batch_done()
    engine.run(work, seed)
    work.batch_done()
