"""Stated: what a network that sees no noise answers, and the radius that it states; a row per input.

It is kept as one vote: its answer to the input itself is a pair of a class and a radius on a grid, rounded down. So
ledgers keep it, workers count it and `verify --redraw` asks for it again as any other vote.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualrs.errors import UnusableVotes
from dualrs.theory.bounds import Floats
from dualrs.votes.address import SamplingPlan, Stage, plain
from dualrs.votes.tally import Counts, Tally

BINS = 1 << 10  # radii that a vote can name; the last stands for all that are larger
STEP = 2.0**-8  # from one to the next: radii at quarters, where tables are made, lose nothing


@final
@dataclass(frozen=True)
class Stated:
    """One answer for each input, or none, and its radius. It has the shape of `Bounds` at sigma 0.

    ``selection`` is a row of one vote, or of none; shape (inputs, answers). Nothing is estimated: bounds on
    probabilities are 0 and 1, and spend no level.
    """

    selection: Counts
    radius: Floats  # (inputs,)
    plan: SamplingPlan

    sigma = 0.0

    def __post_init__(self) -> None:
        votes = self.selection.sum(axis=1)
        if (self.selection < 0).any() or (votes > 1).any() or (self.radius < 0).any():
            raise UnusableVotes("a network without noise answers each input once, with a radius that is not negative")

    def __len__(self) -> int:
        return len(self.selection)

    @property
    def answers(self) -> int:
        """How many different answers there are."""
        return int(self.selection.shape[1])

    @property
    def classes(self) -> int:
        """All of them may be predicted."""
        return self.answers

    @property
    def sampled(self) -> NDArray[np.int64]:
        """1 where it was asked, else 0; shape (inputs,)."""
        return np.asarray(self.selection.sum(axis=1))

    @property
    def answer(self) -> NDArray[np.int64]:
        """The answer of each input, negative where it was not asked; shape (inputs,)."""
        return np.where(self.sampled > 0, self.selection.argmax(axis=1), -1)

    def stays(self, answer: NDArray[np.int64]) -> Floats:
        """A radius within which it gives an answer: that stated where this is its own; else minus infinity."""
        return np.where((self.answer == answer) & (self.sampled > 0), self.radius, -np.inf)

    def lower(self, answer: NDArray[np.int64], level: ArrayLike) -> Floats:
        """1 where this is its answer, else 0."""
        return np.where(self.answer == answer, 1.0, 0.0)

    def upper(self, answer: NDArray[np.int64], level: ArrayLike) -> Floats:
        """0 where it answers otherwise, else 1."""
        return np.where((self.answer == answer) | (self.sampled == 0), 1.0, 0.0)

    def upper_of_others(self, answer: NDArray[np.int64], level: ArrayLike) -> Floats:
        """0 where this is its answer, else 1."""
        return np.where(self.answer == answer, 0.0, 1.0)

    def kept(self, keep: NDArray[np.bool_]) -> "Stated":
        """As if it was asked on some inputs only."""
        return replace(self, selection=self.selection * keep[:, None])

    def repeated(self, rows: int) -> "Stated":
        """What is stated about one input, in several rows."""
        return replace(self, selection=np.repeat(self.selection, rows, axis=0), radius=np.repeat(self.radius, rows))

    def confident(self, confidence: float) -> "Stated":
        """Itself: it never passes."""
        return self


def gather_stated(tallies: Sequence[Tally], stage: Stage, answers: int, plan: SamplingPlan) -> Stated:
    """What a network stated about some inputs, in the form that rules read."""
    pairs = np.array([_pair(tally.counts.get(plain(stage), {})) for tally in tallies], dtype=np.int64)
    answer, number = np.divmod(pairs, BINS)
    selection = ((answer[:, None] == np.arange(answers)) & (pairs >= 0)[:, None]).astype(np.int64)
    return Stated(selection.reshape(-1, answers), np.where(pairs < 0, 0.0, number * STEP), plan)


def _pair(counts: dict[int, Counts]) -> int:
    """The one vote of a stream, or -1."""
    return next((int(votes.argmax()) for votes in counts.values() if votes.any()), -1)
