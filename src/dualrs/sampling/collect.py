"""Collecting: carry a policy out for many inputs at once, through an engine, into a store.

Enters: inputs, a policy, a plan. Leaves: finished tallies, handed over one input at a time as they are done.
Votes that the store already has are not asked for again: that is all there is to resuming.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import numpy as np

from dualrs.data.images import Pixels
from dualrs.errors import BadImage
from dualrs.sampling.noise import NoiseSource
from dualrs.sampling.work import Counting, Request
from dualrs.votes import Counts, Part, Policy, SamplingPlan, Stream, Tally, Unit, Wanted


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
    """A store that keeps units in memory."""

    def __init__(self) -> None:
        self.units: dict[Unit, Counts] = {}

    def tally(self, input_id: str) -> Tally:
        """An empty tally: every input begins with no votes."""
        return Tally()

    def record(self, unit: Unit, counts: Counts) -> None:
        """Keep the counts of a finished unit."""
        self.units[unit] = counts

    def commit(self) -> None:
        """Nothing to make permanent."""


@dataclass
class Progress:
    """How far a collection is."""

    inputs: int = 0  # finished, by an earlier process too
    votes: int = 0  # counted by this process
    work: float = 0.0  # inputs finished, with the begun ones in proportion to their votes
    checked: int = 0  # recorded votes that were drawn again
    to_check: int = 0  # of so many: then nothing else has begun


Finish = Callable[[str, Tally, float], None]  # input id, its votes, the seconds its votes took
Report = Callable[[Progress], None]
Known = Callable[[Unit], Counts | None]  # the counts of a unit that need not be drawn


def nothing(unit: Unit) -> None:
    """Know no votes."""


@dataclass(frozen=True)
class Member:
    """A model in a collection, what it wants to know of every input, and where its votes go."""

    engine: Counting
    policy: Policy
    plan: SamplingPlan
    finish: Finish
    store: VoteStore = field(default_factory=Memory)
    done: Collection[str] = ()  # inputs that it finished before
    known: Known = nothing

    @property
    def share_per_vote(self) -> float:
        """How much of an input a vote is: most need two stages; what needs less or more is set right at its end."""
        return 0.5 / (self.plan.n0 + self.plan.n)


@dataclass
class _Open:
    """An input in flight, for one member."""

    tally: Tally
    wanted: Wanted
    outstanding: int = 0
    seconds: float = 0.0
    work: float = 0.0


@dataclass
class _Collection:
    """The engine's `Work`: inputs in flight, each at some step of each member's policy."""

    members: Sequence[Member]
    inputs: Iterable[Input]
    report: Report | None
    progress: Progress

    def __post_init__(self) -> None:
        self._supply = iter(self.inputs)
        self._images: dict[str, Pixels] = {}
        self._open: dict[tuple[str, int], _Open] = {}  # by input and member
        self._shape: tuple[int, ...] | None = None

    def more(self) -> Sequence[Request] | None:
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
        self._images[item.id] = item.pixels
        joining = [k for k, member in enumerate(self.members) if item.id not in member.done]
        for k in joining:
            tally = self.members[k].store.tally(item.id)
            self._open[item.id, k] = _Open(tally, self.members[k].policy(tally))
        return [request for k in joining for request in self._advance(item.id, k)]

    def pixels(self, input_id: str) -> Pixels:
        return self._images[input_id]

    def deliver(self, request: Request, counts: Counts, seconds: float) -> Sequence[Request]:
        unit, number = request.unit, request.member
        member, flight = self.members[number], self._open[unit.input_id, number]
        flight.tally.add(unit, counts)
        flight.outstanding -= 1
        flight.seconds += seconds
        member.store.record(unit, counts)
        self.progress.votes += unit.votes
        self._work(flight, min(unit.votes * member.share_per_vote, 1 - flight.work))
        return self._advance(unit.input_id, number) if flight.outstanding == 0 else ()

    def batch_done(self) -> None:
        for member in self.members:
            member.store.commit()
        if self.report is not None:
            self.report(self.progress)

    def _advance(self, input_id: str, number: int) -> list[Request]:
        """Take the policy's next steps until it wants votes that are not here yet, or is done."""
        member, flight = self.members[number], self._open[input_id, number]
        for streams in flight.wanted:
            units = (u for stream, upto in streams.items() for u in member.plan.units(input_id, stream, upto))
            missing = [unit for unit in units if not self._has(member, flight, unit)]
            requests = [Request(unit, number, _following(unit, streams, member.plan)) for unit in missing]
            if requests:
                flight.outstanding = len(requests)
                return requests
        member.finish(input_id, flight.tally, flight.seconds)
        self.progress.inputs += 1
        self._work(flight, 1 - flight.work)
        del self._open[input_id, number]
        if not any((input_id, k) in self._open for k in range(len(self.members))):
            del self._images[input_id]
        return []

    def _has(self, member: Member, flight: _Open, unit: Unit) -> bool:
        """Whether the votes are here; those that are known are put there."""
        if not flight.tally.holds(unit) and (counts := member.known(unit)) is not None:
            flight.tally.add(unit, counts)
            member.store.record(unit, counts)
        return flight.tally.holds(unit)

    def _work(self, flight: _Open, part: float) -> None:
        flight.work += part
        self.progress.work += part


def _following(unit: Unit, wanted: Mapping[Stream, int], plan: SamplingPlan) -> Unit | None:
    """The votes of the same network that may be wanted after a unit, if it is the last that is wanted of its stream."""
    estimation = replace(unit.stream, part=Part.ESTIMATION)
    begun = unit.stream == estimation
    if unit.stop < wanted[unit.stream] or not unit.stream.sigma or (not begun and estimation in wanted):
        return None
    start = unit.stop if begun else 0
    return Unit(unit.input_id, estimation, start, plan.n) if start < plan.n else None


def collect(
    engine: Counting,
    inputs: Iterable[Input],
    policy: Policy,
    plan: SamplingPlan,
    source: NoiseSource,
    *,
    finish: Finish,
    store: VoteStore | None = None,
    report: Report | None = None,
    done: int = 0,
) -> None:
    """Collect the votes that the policy wants for every input; call ``finish`` for each as it is done.

    ``done`` inputs, finished before, count in the progress that is reported.
    """
    member = Member(engine, policy, plan, finish, store or Memory())
    collect_together([member], inputs, source, report=report, done=done)


def collect_together(
    members: Sequence[Member],
    inputs: Iterable[Input],
    source: NoiseSource,
    *,
    report: Report | None = None,
    done: int = 0,
) -> None:
    """Collect the votes of several models on the same inputs; what they can share of a noisy copy is computed once.

    Progress counts every input once for each member.
    """
    work = _Collection(members, inputs, report, Progress(done, 0, done))
    work.batch_done()
    panel = [member.engine for member in members]
    panel[0].counter(panel, work, source)
    work.batch_done()
