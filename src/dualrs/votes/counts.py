"""Counts: what rules read. Counts of one model at one sigma, and the bounds on probabilities that follow from them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Protocol, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualrs.errors import UnusableVotes
from dualrs.theory.bounds import Floats
from dualrs.theory.looks import lower_at_looks, upper_at_looks
from dualrs.votes.address import Part, SamplingPlan, Stage, Stream
from dualrs.votes.joint import Joint
from dualrs.votes.tally import Counts, Tally


class Bounds(Protocol):
    """Bounds on the probabilities of one model's answers at one sigma, a row per input: what radii are computed from.

    `Votes` are real ones. What an adaptive run hopes for has the same shape, and is no ground for a certificate.
    """

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise."""

    @property
    def answers(self) -> int:
        """How many different answers the model can give."""

    @property
    def classes(self) -> int:
        """How many of them may be predicted: all, but for a last one that is a pass."""

    @property
    def selection(self) -> Counts:
        """Selection votes, shape (inputs, answers)."""

    @property
    def sampled(self) -> NDArray[np.int64]:
        """Estimation votes of each input, shape (inputs,)."""

    def __len__(self) -> int:
        """How many inputs there are."""

    def lower(self, answer: NDArray[np.int64], level: ArrayLike) -> Floats:
        """Lower bound on the probability of one given answer per input."""

    def upper(self, answer: NDArray[np.int64], level: ArrayLike) -> Floats:
        """Upper bound on the probability of one given answer per input."""

    def upper_of_others(self, answer: NDArray[np.int64], level: ArrayLike) -> Floats:
        """Upper bound on the probability of the likeliest class but a given one."""


@final
@dataclass(frozen=True)
class Votes:
    """Counts of one model at one sigma, a row per input: selection and estimation, both (inputs, answers).

    Under a plan with several looks, ``segments`` has the estimation counts from each look to the next, shape
    (inputs, looks, answers). A row is complete up to some look, or all zeros: not sampled. Every bound comes from here,
    because what it may spend of its level at a number of votes is in the plan of the votes.

    Where the last answer ``passes``, it is no class: it counts among the votes and is never predicted. ``joint`` has
    the selection and the estimation votes with their confidences, if the run recorded them; see `confident`.
    """

    sigma: float
    selection: Counts
    estimation: Counts
    plan: SamplingPlan
    segments: Counts | None = None
    passes: bool = False
    joint: tuple[Joint, Joint] | None = field(default=None, repr=False)

    whose: ClassVar[str] = "one sigma"
    how: ClassVar[str] = "run `dualrs certify --sigma` into another ledger"

    def __post_init__(self) -> None:
        for part, counts in ((Part.SELECTION, self.selection), (Part.ESTIMATION, self.estimation)):
            if counts.ndim != 2 or counts.dtype.kind not in "iu":
                raise UnusableVotes(
                    f"{part} counts must be integers of shape (inputs, answers), got {counts.dtype} {counts.shape}"
                )
            sums = counts.sum(axis=1)
            steps = self.plan.steps(part)
            if (counts < 0).any() or not {0, *steps}.issuperset(sums.tolist()):
                bad = ~np.isin(sums, (0, *steps)) | (counts < 0).any(axis=1)
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
        whole = self.reached * self.plan.sizes
        wrong = ((self.segments.sum(axis=1) != self.estimation), self.segments < 0, self.segments.sum(axis=2) != whole)
        if any(found.any() for found in wrong):
            row = min(int(np.nonzero(found)[0].min(initial=len(self))) for found in wrong)
            raise UnusableVotes(f"input {row} at sigma {self.sigma}: its counts from look to look do not add up")

    def __len__(self) -> int:
        return len(self.selection)

    @property
    def answers(self) -> int:
        """How many different answers the model can give."""
        return int(self.selection.shape[1])

    @property
    def classes(self) -> int:
        """How many of them may be predicted."""
        return self.answers - self.passes

    def kept(self, keep: NDArray[np.bool_]) -> "Votes":
        """As if some inputs only were asked about, at a fixed n."""
        rows = keep[:, None]
        return replace(self, selection=self.selection * rows, estimation=self.estimation * rows)

    def confident(self, confidence: float) -> "Votes":
        """The same votes where those below a confidence pass: they are still votes, and no longer for a class."""
        if not confidence:
            return self
        if self.joint is None:
            raise UnusableVotes(
                f"these votes do not tell how sure the network was, and a confidence of {confidence:g} is asked for; "
                "sample again with --confidences"
            )
        selection, estimation = (part.passing(confidence) for part in self.joint)
        return _counted(self.sigma, selection, estimation, self.plan, passes=True)

    def rows(self, order: NDArray[np.int64]) -> "Votes":
        """The votes on the same inputs in another order, or on some of them; without confidences."""
        segments = None if self.segments is None else self.segments[order]
        selection, estimation = self.selection[order], self.estimation[order]
        return replace(self, selection=selection, estimation=estimation, segments=segments, joint=None)

    @cached_property
    def sampled(self) -> NDArray[np.int64]:
        """Estimation votes of each input: a look, or 0 where this model was not sampled; shape (inputs,)."""
        return np.asarray(self.estimation.sum(axis=1))

    def lower(self, answer: NDArray[np.int64], level: ArrayLike) -> Floats:
        """Lower bound on the probability of one given answer per input; 0 without votes. Shape (inputs,)."""
        counts = np.take_along_axis(self.at_looks, answer[:, None, None], axis=2)[:, :, 0]
        return lower_at_looks(counts, self.plan.looks, self.reached, level)

    def upper(self, answer: NDArray[np.int64], level: ArrayLike) -> Floats:
        """Upper bound on the probability of one given answer per input; 1 without votes. Shape (inputs,)."""
        counts = np.take_along_axis(self.at_looks, answer[:, None, None], axis=2)[:, :, 0]
        return upper_at_looks(counts, self.plan.looks, self.reached, level)

    def upper_of_others(self, answer: NDArray[np.int64], level: ArrayLike) -> Floats:
        """Upper bound on the probability of the likeliest class but a given one, through the largest count of another.

        One level for all: it can fail only where the bound of that very class, which has no larger count, fails.
        """
        others = self.at_looks[:, :, : self.classes].copy()
        np.put_along_axis(others, answer[:, None, None], 0, axis=2)
        return upper_at_looks(others.max(axis=2), self.plan.looks, self.reached, level)

    @property
    def at_looks(self) -> Counts:
        """Counts up to each look, shape (inputs, looks, answers)."""
        return self.estimation[:, None] if self.segments is None else self.segments.cumsum(axis=1)

    @cached_property
    def reached(self) -> NDArray[np.bool_]:
        """Which looks each input has reached, shape (inputs, looks)."""
        return np.asarray(self.sampled[:, None] >= self.plan.looks)


def gather(
    tallies: Sequence[Tally],
    stage: Stage,
    sigma: float,
    answers: int,
    plan: SamplingPlan,
    confidences: tuple[float, ...] = (),
) -> Votes:
    """The votes of one model on some inputs, in the form that rules read; with their ``confidences``, if recorded."""

    def stream(part: Part) -> Stream:
        return Stream(stage, part, sigma)

    def counts(part: Part) -> Counts:
        found = [tally.between(stream(part), answers, plan.steps(part)) for tally in tallies]
        return np.array(found, dtype=np.int64).reshape(-1, answers)

    if not confidences:
        return _counted(sigma, counts(Part.SELECTION), counts(Part.ESTIMATION), plan)
    selection, estimation = (Joint.of(tallies, stream(p), answers, confidences, plan.steps(p)) for p in Part)
    made = _counted(sigma, selection.by_class(), estimation.by_class(), plan)
    return replace(made, joint=(selection, estimation))


def _counted(sigma: float, selection: Counts, estimation: Counts, plan: SamplingPlan, passes: bool = False) -> Votes:
    """Votes from selection counts, (inputs, answers), and estimation counts in a row for each input and look."""
    inputs, answers = selection.shape
    segments = estimation.reshape(inputs, len(plan.looks), answers)
    return Votes(sigma, selection, segments.sum(axis=1), plan, segments if plan.adaptive else None, passes)
