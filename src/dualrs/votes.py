"""Votes: the only currency between the half of dualrs that runs networks and the half that does arithmetic.

A vote is the answer of a network to one noisy copy of an input. Votes are addressed: those of one input form
*streams*, one for each stage (router, class), part (selection, estimation) and sigma, cut into blocks of
`BLOCK` votes. A *unit* is a run of blocks of one stream: what the engine is asked for and the ledger keeps.
Rules read `Votes` and `DualVotes`: counts, one row per input.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from dualrs.errors import BadSetting, UnusableVotes

Counts = NDArray[np.int64]

BLOCK = 100  # votes that share one address in the noise stream
UNIT = 10 * BLOCK  # votes that are asked for, and kept, together; no result depends on it


class Stage(StrEnum):
    """Which of the two smoothed models votes."""

    ROUTER = "router"
    CLASS = "class"


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


@dataclass(frozen=True, order=True)
class Unit:
    """Votes number ``start`` to ``stop`` (exclusive) of a stream on one input; starts at a block."""

    input_id: str
    stream: Stream
    start: int
    stop: int

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
    """How many votes a stream gets, fixed before any is drawn: a bound is valid for the plan it was made for."""

    n0: int
    n: int

    def __post_init__(self) -> None:
        for name in ("n", "n0"):
            if not isinstance(getattr(self, name), int | np.integer):
                raise BadSetting(f"{name} must be a whole number, got {getattr(self, name)!r}")
        if self.n < 1:
            raise BadSetting(f"n must be at least 1, got {self.n}")
        if self.n0 < 0:
            raise BadSetting(f"n0 must not be negative, got {self.n0}")

    def votes(self, part: Part) -> int:
        """Votes planned for one part of a stream."""
        return self.n0 if part is Part.SELECTION else self.n

    def units(self, input_id: str, stream: Stream) -> Iterator[Unit]:
        """Cut the planned votes of a stream into units."""
        total = self.votes(stream.part)
        for start in range(0, total, UNIT):
            yield Unit(input_id, stream, start, min(start + UNIT, total))


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


@dataclass(frozen=True)
class Votes:
    """Counts of one model at one sigma, a row per input: selection and estimation, both (inputs, answers).

    A row is either complete (it sums to what the plan says) or all zeros: not sampled.
    """

    sigma: float
    selection: Counts
    estimation: Counts
    plan: SamplingPlan

    def __post_init__(self) -> None:
        for part in Part:
            counts = self.selection if part is Part.SELECTION else self.estimation
            if counts.ndim != 2 or not np.issubdtype(counts.dtype, np.integer):
                raise UnusableVotes(
                    f"{part} counts must be integers of shape (inputs, answers), got {counts.dtype} {counts.shape}"
                )
            sums = counts.sum(axis=1)
            planned = self.plan.votes(part)
            bad = ((sums != 0) & (sums != planned)) | (counts < 0).any(axis=1)
            if bad.any():
                row = int(np.flatnonzero(bad)[0])
                raise UnusableVotes(
                    f"input {row} at sigma {self.sigma} has {sums[row]} {part} votes where the plan has {planned}; "
                    "a bound holds only for the number of votes fixed beforehand, so finish the run first"
                )
        if self.selection.shape != self.estimation.shape:
            raise UnusableVotes(
                f"selection counts {self.selection.shape} and estimation counts {self.estimation.shape} differ in shape"
            )

    def __len__(self) -> int:
        return len(self.selection)

    @property
    def answers(self) -> int:
        """How many different answers the model can give."""
        return int(self.selection.shape[1])

    @property
    def sampled(self) -> NDArray[np.int64]:
        """Estimation votes of each input: n, or 0 where this model was not sampled; shape (inputs,)."""
        return np.asarray(self.estimation.sum(axis=1))


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
class Streams:
    """Which streams a model has: the candidate sigmas, the router's sigma if there is one, and their answers.

    ``classes`` is 0 where the router alone votes.
    """

    sigmas: tuple[float, ...]
    classes: int
    sigma_e: float | None = None

    @property
    def answers(self) -> dict[Stream, int]:
        """Every stream, and how many different answers its votes can be."""
        router = [] if self.sigma_e is None else [(Stage.ROUTER, self.sigma_e, len(self.sigmas))]
        experts = [(Stage.CLASS, sigma, self.classes) for sigma in self.sigmas] if self.classes else []
        models = [*router, *experts]
        return {Stream(stage, part, sigma): answers for stage, sigma, answers in models for part in Part}

    def _votes(self, tallies: list[Tally], stage: Stage, sigma: float, answers: int, plan: SamplingPlan) -> Votes:
        selection, estimation = (
            np.stack([t.total(Stream(stage, part, sigma), answers) for t in tallies])
            if tallies
            else np.zeros((0, answers), dtype=np.int64)
            for part in Part
        )
        return Votes(sigma, selection, estimation, plan)

    def gather_experts(self, tallies: list[Tally], plan: SamplingPlan) -> tuple[Votes, ...]:
        """The class votes of some inputs, sigma by sigma."""
        return tuple(self._votes(tallies, Stage.CLASS, s, self.classes, plan) for s in self.sigmas)

    def gather_router(self, tallies: list[Tally], plan: SamplingPlan) -> Votes:
        """The router's votes on some inputs."""
        if self.sigma_e is None:
            raise UnusableVotes("these are votes without a router")
        return self._votes(tallies, Stage.ROUTER, self.sigma_e, len(self.sigmas), plan)

    def gather(self, tallies: list[Tally], plan: SamplingPlan) -> Votes | DualVotes:
        """Put the tallies of some inputs into the form that rules read."""
        if not self.classes:
            raise UnusableVotes("these are votes of a router alone: assigned sigmas, and no certificate")
        experts = self.gather_experts(tallies, plan)
        if self.sigma_e is None:
            if len(experts) > 1:
                raise UnusableVotes("these are votes at several sigmas without a router: labels, and no certificate")
            return experts[0]
        return DualVotes(self.gather_router(tallies, plan), experts)
