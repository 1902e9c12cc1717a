"""Hopes: what the bounds of some votes may become at the last look, if the votes to come are kind.

Enters: votes so far on one input. Leaves: something of the shape of bounds, for deciding whether to sample on. No
certificate can be concluded from it, as it is no `Votes`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualrs.theory.bounds import Floats, lower, upper
from dualrs.theory.looks import shares
from dualrs.votes import Counts, Votes

UNLIKELY = 0.002  # that an answer is likelier than hoped; a smaller number gives up later, and more rarely in vain


@final
@dataclass(frozen=True)
class Hopes:
    """One input in several rows; those marked ``hopeful`` read the bounds of the last look, the others those of now.

    ``unlikely`` is the chance that an answer is likelier than is hoped for: 0 hopes for the best that any votes could
    show, 1/2 expects what the votes so far suggest.
    """

    votes: Votes
    hopeful: NDArray[np.bool_]  # (rows,)
    unlikely: float | Floats = UNLIKELY  # one for all, or one for each row

    @classmethod
    def of(cls, one: Votes, hopeful: NDArray[np.bool_], unlikely: float | Floats = UNLIKELY) -> "Hopes":
        """The votes on one input in as many rows as there are cases."""
        rows = len(hopeful)
        repeated = replace(
            one,
            selection=np.repeat(one.selection, rows, axis=0),
            estimation=np.repeat(one.estimation, rows, axis=0),
            segments=None if one.segments is None else np.repeat(one.segments, rows, axis=0),
            joint=None,
        )
        return cls(repeated, hopeful, unlikely)

    def __len__(self) -> int:
        return len(self.hopeful)

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise."""
        return self.votes.sigma

    @property
    def answers(self) -> int:
        """How many different answers the model can give."""
        return self.votes.answers

    @property
    def classes(self) -> int:
        """How many of them may be predicted."""
        return self.votes.classes

    @property
    def selection(self) -> Counts:
        """Selection votes, the same in every row."""
        return self.votes.selection

    @property
    def sampled(self) -> NDArray[np.int64]:
        """Estimation votes so far; shape (rows,)."""
        return self.votes.sampled

    def lower(self, answer: NDArray[np.int64], level: ArrayLike) -> Floats:
        """The lower bound now or, in hopeful rows, the one that more votes may reach."""
        likely = upper(self._seen(answer), self._asked, self.unlikely)
        hoped = _of(self.votes.estimation, answer) + self._to_come * likely
        then = lower(hoped, self.votes.plan.n, self._last(level))
        return self._best(np.maximum, self.votes.lower(answer, level), then)

    def upper(self, answer: NDArray[np.int64], level: ArrayLike) -> Floats:
        """The upper bound now or, in hopeful rows, the one that more votes may reach."""
        return self._best(np.minimum, self.votes.upper(answer, level), self._hoped_upper(answer, level))

    def upper_of_others(self, answer: NDArray[np.int64], level: ArrayLike) -> Floats:
        """As `upper`, for the class other than a given one that has the most votes so far."""
        others = self.votes.estimation[:, : self.classes].copy()
        np.put_along_axis(others, answer[:, None], -1, axis=1)
        hoped = self._hoped_upper(np.asarray(others.argmax(axis=1)), level)
        return self._best(np.minimum, self.votes.upper_of_others(answer, level), hoped)

    def _hoped_upper(self, answer: NDArray[np.int64], level: ArrayLike) -> Floats:
        likely = lower(self._seen(answer), self._asked, self.unlikely)
        hoped = _of(self.votes.estimation, answer) + self._to_come * likely
        return upper(hoped, self.votes.plan.n, self._last(level))

    def _seen(self, answer: NDArray[np.int64]) -> Counts:
        return _of(self.votes.selection + self.votes.estimation, answer)

    @property
    def _asked(self) -> NDArray[np.int64]:
        return np.asarray((self.votes.selection + self.votes.estimation).sum(axis=1))

    @property
    def _to_come(self) -> NDArray[np.int64]:
        return np.asarray(self.votes.plan.n - self.sampled)

    def _last(self, level: ArrayLike) -> Floats:
        return np.asarray(np.asarray(level) * shares(len(self.votes.plan.looks))[-1])

    def _best(self, better: Callable[[Floats, Floats], Floats], now: Floats, then: Floats) -> Floats:
        return np.where(self.hopeful, better(now, then), now)


def _of(counts: Counts, answer: NDArray[np.int64]) -> Counts:
    return np.asarray(np.take_along_axis(counts, answer[:, None], axis=1)[:, 0])
