"""Votes: the only currency between the half of dualrs that runs networks and the half that does arithmetic.

A vote is the answer of a network to one noisy copy of an input. Votes are addressed: those of one input form
*streams*, one for each stage (router, class), part (selection, estimation) and sigma, cut into blocks of
`BLOCK` votes. A *unit* is a run of blocks of one stream: what the engine is asked for and the ledger keeps.
Rules read `Votes`, `DualVotes` and `AcesVotes`: counts, one row per input.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualrs.errors import BadSetting, UnusableVotes
from dualrs.theory.bounds import Floats
from dualrs.theory.looks import lower_at_looks, upper_at_looks

Counts = NDArray[np.int64]

BLOCK = 100  # votes that share one address in the noise stream
UNIT = 10 * BLOCK  # votes that are asked for, and kept, together; no result depends on it


class Stage(StrEnum):
    """Which of the two smoothed models votes."""

    ROUTER = "router"
    CLASS = "class"


class Purpose(StrEnum):
    """What a run draws noise for.

    Each purpose has noise of its own: what was learnt from votes on one kind has seen none of another, whatever the
    seed.
    """

    LABEL = "label"
    ASSIGN = "assign"
    CERTIFY = "certify"
    PREDICT = "predict"
    TRIAL = "trial"  # of networks, before a run: no vote on it counts


class Part(StrEnum):
    """What the votes are for. No selection vote of either stage enters any bound of either stage."""

    SELECTION = "selection"
    ESTIMATION = "estimation"


@dataclass(frozen=True, order=True)
class Stream:
    """The address of a sequence of votes on one input."""

    stage: Stage
    part: Part
    sigma: float


PLAIN = Stream(Stage.CLASS, Part.SELECTION, 0.0)  # the answer of a network to the input itself, without noise


@dataclass(frozen=True, order=True)
class Unit:
    """Votes number ``start`` to ``stop`` (exclusive) of a stream on one input; starts at a block.

    ``member`` says whose votes, where several models vote side by side.
    """

    input_id: str
    stream: Stream
    start: int
    stop: int
    member: int = 0

    @property
    def votes(self) -> int:
        """How many votes the unit holds."""
        return self.stop - self.start

    @property
    def blocks(self) -> int:
        """How many blocks the unit touches; the last may be cut short."""
        return -(-self.votes // BLOCK)


@dataclass(frozen=True)
class SamplingPlan:
    """How many votes a stream gets, fixed before any is drawn: a bound is valid for the plan it was made for.

    ``looks`` are the numbers of estimation votes at which sampling may stop, the last of them ``n``; without them it
    goes on to n.
    """

    n0: int
    n: int
    looks: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in ("n", "n0"):
            if not isinstance(getattr(self, name), int | np.integer):
                raise BadSetting(f"{name} must be a whole number, got {getattr(self, name)!r}")
        if self.n < 1:
            raise BadSetting(f"n must be at least 1, got {self.n}")
        if self.n0 < 0:
            raise BadSetting(f"n0 must not be negative, got {self.n0}")
        looks = tuple(self.looks) or (self.n,)
        if looks[0] < 1 or looks[-1] != self.n or any(a >= b or a % BLOCK for a, b in pairwise(looks)):
            raise BadSetting(f"looks must rise in whole blocks of {BLOCK} votes and end at n = {self.n}, got {looks}")
        object.__setattr__(self, "looks", looks)

    @property
    def adaptive(self) -> bool:
        """Whether sampling may stop before n."""
        return len(self.looks) > 1

    def votes(self, part: Part) -> int:
        """Votes planned at most for one part of a stream."""
        return self.n0 if part is Part.SELECTION else self.n

    def steps(self, part: Part) -> tuple[int, ...]:
        """The numbers of votes at which one part of a stream may stop."""
        return (self.n0,) if part is Part.SELECTION else self.looks

    def steps_of(self, stream: Stream) -> tuple[int, ...]:
        """The numbers of votes at which a stream may stop: one without noise, as all would be the same."""
        return self.steps(stream.part) if stream.sigma else (1,)

    def step_before(self, unit: Unit) -> int:
        """The last step that a unit does not come before, or 0: where the counts between two looks begin."""
        steps = self.steps_of(unit.stream)
        place = bisect_right(steps, unit.start)
        return steps[place - 1] if place else 0

    def units(self, input_id: str, stream: Stream, upto: int | None = None) -> Iterator[Unit]:
        """Cut the planned votes of a stream into units, those up to a look if one is given; no unit crosses a look."""
        start = 0
        for stop in self.steps_of(stream):
            if upto is not None and stop > upto:
                return
            for begin in range(start, stop, UNIT):
                yield Unit(input_id, stream, begin, min(begin + UNIT, stop))
            start = stop


@dataclass
class Tally:
    """The votes on one input so far: per stream, the counts of each block, keyed by the unit's start."""

    counts: dict[Stream, dict[int, Counts]] = field(default_factory=dict)

    def add(self, unit: Unit, counts: Counts) -> None:
        """Take in the block counts of a unit, shape (blocks, answers)."""
        self.counts.setdefault(unit.stream, {})[unit.start] = counts

    def holds(self, unit: Unit) -> bool:
        """Whether the votes of a unit are here."""
        return unit.start in self.counts.get(unit.stream, {})

    def total(self, stream: Stream, answers: int) -> Counts:
        """Sum of the counts of a stream, shape (answers,); zeros where nothing was sampled."""
        parts = self.counts.get(stream, {})
        return sum((c.sum(axis=0) for c in parts.values()), start=np.zeros(answers, dtype=np.int64))

    def between(self, stream: Stream, answers: int, looks: Sequence[int]) -> Counts:
        """Counts from each look to the next, shape (looks, answers); zeros where nothing was sampled."""
        found = np.zeros((len(looks), answers), dtype=np.int64)
        for start, counts in self.counts.get(stream, {}).items():
            found[bisect_right(looks, start)] += counts.sum(axis=0)
        return found


@dataclass(frozen=True)
class Votes:
    """Counts of one model at one sigma, a row per input: selection and estimation, both (inputs, answers).

    Under a plan with several looks, ``segments`` has the estimation counts from each look to the next, shape
    (inputs, looks, answers). A row is complete up to some look, or all zeros: not sampled. Every bound comes from here,
    because what it may spend of its level at a number of votes is in the plan of the votes.
    """

    sigma: float
    selection: Counts
    estimation: Counts
    plan: SamplingPlan
    segments: Counts | None = None

    def __post_init__(self) -> None:
        for part, counts in ((Part.SELECTION, self.selection), (Part.ESTIMATION, self.estimation)):
            if counts.ndim != 2 or not np.issubdtype(counts.dtype, np.integer):
                raise UnusableVotes(
                    f"{part} counts must be integers of shape (inputs, answers), got {counts.dtype} {counts.shape}"
                )
            sums = counts.sum(axis=1)
            steps = self.plan.steps(part)
            bad = (sums[:, None] != (0, *steps)).all(axis=1) | (counts < 0).any(axis=1)
            if bad.any():
                row = int(np.flatnonzero(bad)[0])
                raise UnusableVotes(
                    f"input {row} at sigma {self.sigma} has {sums[row]} {part} votes where the plan has "
                    f"{' or '.join(map(str, steps))}; a bound holds only for numbers of votes fixed beforehand, so "
                    "finish the run first"
                )
        if self.selection.shape != self.estimation.shape:
            raise UnusableVotes(
                f"selection counts {self.selection.shape} and estimation counts {self.estimation.shape} differ in shape"
            )
        self._check_segments()

    def _check_segments(self) -> None:
        if not self.plan.adaptive:
            if self.segments is not None:
                raise UnusableVotes("votes of a plan without looks have no segments")
            return
        expected = (len(self), len(self.plan.looks), self.answers)
        if self.segments is None or self.segments.shape != expected:
            raise UnusableVotes(f"votes of a plan with looks need counts from look to look, of shape {expected}")
        sizes = np.diff(self.plan.looks, prepend=0)
        whole = np.where(self.sampled[:, None] >= self.plan.looks, sizes, 0)
        bad = (self.segments.sum(axis=1) != self.estimation).any(axis=1) | (self.segments < 0).any(axis=(1, 2))
        bad |= (self.segments.sum(axis=2) != whole).any(axis=1)
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise UnusableVotes(f"input {row} at sigma {self.sigma}: its counts from look to look do not add up")

    def __len__(self) -> int:
        return len(self.selection)

    @property
    def answers(self) -> int:
        """How many different answers the model can give."""
        return int(self.selection.shape[1])

    @property
    def sampled(self) -> NDArray[np.int64]:
        """Estimation votes of each input: a look, or 0 where this model was not sampled; shape (inputs,)."""
        return np.asarray(self.estimation.sum(axis=1))

    def lower(self, answer: NDArray[np.int64], level: ArrayLike) -> Floats:
        """Lower bound on the probability of one given answer per input; 0 without votes. Shape (inputs,)."""
        counts = np.take_along_axis(self._at_looks, answer[:, None, None], axis=2)[:, :, 0]
        return lower_at_looks(counts, self.plan.looks, self._reached, level)

    def upper(self, answer: NDArray[np.int64], level: ArrayLike) -> Floats:
        """Upper bound on the probability of one given answer per input; 1 without votes. Shape (inputs,)."""
        counts = np.take_along_axis(self._at_looks, answer[:, None, None], axis=2)[:, :, 0]
        return upper_at_looks(counts, self.plan.looks, self._reached, level)

    def upper_of_others(self, answer: NDArray[np.int64], level: ArrayLike) -> Floats:
        """Upper bound on the probability of the likeliest answer but a given one, through the largest count of another.

        One level for all: it can fail only where the bound of that very answer, which has no larger count, fails.
        """
        others = self._at_looks.copy()
        np.put_along_axis(others, answer[:, None, None], 0, axis=2)
        return upper_at_looks(others.max(axis=2), self.plan.looks, self._reached, level)

    @property
    def _at_looks(self) -> Counts:
        """Counts up to each look, shape (inputs, looks, answers)."""
        return self.estimation[:, None] if self.segments is None else self.segments.cumsum(axis=1)

    @property
    def _reached(self) -> NDArray[np.bool_]:
        """Which looks each input has reached, shape (inputs, looks)."""
        return np.asarray(self.sampled[:, None] >= self.plan.looks)


@dataclass(frozen=True)
class DualVotes:
    """Votes of a router at sigma_e and of each candidate's expert at its own sigma, for the same inputs."""

    router: Votes
    experts: tuple[Votes, ...]

    def __post_init__(self) -> None:
        if len(self.experts) < 2:
            raise UnusableVotes("two stages need at least two candidate sigmas; for one, use rule cohen")
        if self.router.answers != len(self.experts):
            raise UnusableVotes(
                f"the router has {self.router.answers} answers but there are {len(self.experts)} candidate sigmas"
            )
        if self.router.sigma < max(self.sigmas):
            raise BadSetting(f"sigma_e = {self.router.sigma} lies below the largest candidate sigma {max(self.sigmas)}")
        shapes = {e.selection.shape for e in self.experts}
        if len(shapes) != 1 or len(self.experts[0]) != len(self.router):
            raise UnusableVotes("router and experts must have votes for the same inputs and classes")

    def __len__(self) -> int:
        return len(self.router)

    @property
    def sigmas(self) -> tuple[float, ...]:
        """The candidate sigmas, in the order of the router's answers."""
        return tuple(e.sigma for e in self.experts)


@dataclass(frozen=True)
class AcesVotes:
    """Votes of a selector and of a classifier on the same inputs, and what a core network answers without noise.

    An answer of the selector is the number of ``thresholds`` that an entropy exceeds. ``core`` has a row of one vote
    for each input, or of none; shape (inputs, classes). Classifier and core need votes only where they are selected.
    """

    selector: Votes
    classifier: Votes
    core: Counts
    thresholds: tuple[float, ...]

    def __post_init__(self) -> None:
        if not len(self.selector) == len(self.classifier) == len(self.core):
            raise UnusableVotes("selector, classifier and core must have answers for the same inputs")
        if self.selector.answers != len(self.thresholds) + 1:
            raise UnusableVotes(
                f"the selector has {self.selector.answers} answers but there are {len(self.thresholds)} thresholds; it "
                "needs one answer more than there are thresholds"
            )

    def __len__(self) -> int:
        return len(self.core)


AnyVotes = Votes | DualVotes | AcesVotes


@dataclass(frozen=True)
class Streams:
    """Which streams a model has: the candidate sigmas, the router's sigma if there is one, and their answers.

    ``classes`` is 0 where the router alone votes. With ``thresholds`` the router is the selector of ACES, and the core
    network has a stream too.
    """

    sigmas: tuple[float, ...]
    classes: int
    sigma_e: float | None = None
    thresholds: tuple[float, ...] = ()

    @property
    def routes(self) -> int:
        """How many different answers the router can give."""
        return len(self.thresholds) + 1 if self.thresholds else len(self.sigmas)

    @property
    def answers(self) -> dict[Stream, int]:
        """Every stream, and how many different answers its votes can be."""
        router = [] if self.sigma_e is None else [(Stage.ROUTER, self.sigma_e, self.routes)]
        experts = [(Stage.CLASS, sigma, self.classes) for sigma in self.sigmas] if self.classes else []
        models = [*router, *experts]
        found = {Stream(stage, part, sigma): answers for stage, sigma, answers in models for part in Part}
        return found | ({PLAIN: self.classes} if self.thresholds else {})

    def _votes(self, tallies: list[Tally], stage: Stage, sigma: float, answers: int, plan: SamplingPlan) -> Votes:
        def counts(part: Part) -> Counts:
            stream, steps = Stream(stage, part, sigma), plan.steps(part)
            found = [tally.between(stream, answers, steps) for tally in tallies]
            return np.array(found, dtype=np.int64).reshape(len(tallies), len(steps), answers)

        segments = counts(Part.ESTIMATION)
        selection = counts(Part.SELECTION)[:, 0]
        return Votes(sigma, selection, segments.sum(axis=1), plan, segments if plan.adaptive else None)

    def gather_experts(self, tallies: list[Tally], plan: SamplingPlan) -> tuple[Votes, ...]:
        """The class votes of some inputs, sigma by sigma."""
        return tuple(self._votes(tallies, Stage.CLASS, s, self.classes, plan) for s in self.sigmas)

    def gather_router(self, tallies: list[Tally], plan: SamplingPlan) -> Votes:
        """The router's votes on some inputs."""
        if self.sigma_e is None:
            raise UnusableVotes("these are votes without a router")
        return self._votes(tallies, Stage.ROUTER, self.sigma_e, self.routes, plan)

    def gather(self, tallies: list[Tally], plan: SamplingPlan) -> AnyVotes:
        """Put the tallies of some inputs into the form that rules read."""
        if not self.classes:
            raise UnusableVotes("these are votes of a router alone: assigned sigmas, and no certificate")
        experts = self.gather_experts(tallies, plan)
        if self.sigma_e is None:
            if len(experts) > 1:
                raise UnusableVotes("these are votes at several sigmas without a router: labels, and no certificate")
            return experts[0]
        router = self.gather_router(tallies, plan)
        if not self.thresholds:
            return DualVotes(router, experts)
        core = [tally.total(PLAIN, self.classes) for tally in tallies]
        return AcesVotes(router, experts[0], np.array(core, dtype=np.int64).reshape(-1, self.classes), self.thresholds)
