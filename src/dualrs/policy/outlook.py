"""Outlook: what the bounds of some votes may become at the last look, if the votes to come are kind.

Enters: votes so far. Leaves: votes that a rule can read, whose bounds are hopes and not bounds: for deciding whether to
sample on, never for a certificate.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualrs.theory.bounds import Floats, lower, upper
from dualrs.theory.looks import shares
from dualrs.votes import Counts, Votes

UNLIKELY = 0.002  # that an answer is likelier than hoped; a smaller number gives up later, and more rarely in vain


@dataclass(frozen=True)
class Outlook(Votes):
    """One input in several rows; those marked ``hopeful`` read the bounds of the last look, the others those of now."""

    hopeful: NDArray[np.bool_] = field(kw_only=True)  # (rows,)

    def lower(self, answer: NDArray[np.int64], level: ArrayLike) -> Floats:
        """The lower bound now or, in hopeful rows, the one that more votes may reach."""
        counts, seen = _of(self.estimation, answer), _of(self.selection + self.estimation, answer)
        hoped = counts + self._to_come * upper(seen, self._asked, UNLIKELY)
        return self._best(np.maximum, super().lower(answer, level), lower(hoped, self.plan.n, self._last(level)))

    def upper(self, answer: NDArray[np.int64], level: ArrayLike) -> Floats:
        """The upper bound now or, in hopeful rows, the one that more votes may reach."""
        return self._best(np.minimum, super().upper(answer, level), self._hoped_upper(answer, level))

    def upper_of_others(self, answer: NDArray[np.int64], level: ArrayLike) -> Floats:
        """As `upper`, for the answer other than a given one that has the most votes so far."""
        others = self.estimation.copy()
        np.put_along_axis(others, answer[:, None], -1, axis=1)
        hoped = self._hoped_upper(np.asarray(others.argmax(axis=1)), level)
        return self._best(np.minimum, super().upper_of_others(answer, level), hoped)

    def _hoped_upper(self, answer: NDArray[np.int64], level: ArrayLike) -> Floats:
        counts, seen = _of(self.estimation, answer), _of(self.selection + self.estimation, answer)
        hoped = counts + self._to_come * lower(seen, self._asked, UNLIKELY)
        return upper(hoped, self.plan.n, self._last(level))

    @property
    def _asked(self) -> NDArray[np.int64]:
        return np.asarray((self.selection + self.estimation).sum(axis=1))

    @property
    def _to_come(self) -> NDArray[np.int64]:
        return np.asarray(self.plan.n - self.sampled)

    def _last(self, level: ArrayLike) -> Floats:
        return np.asarray(np.asarray(level) * shares(len(self.plan.looks))[-1])

    def _best(self, better: Callable[[Floats, Floats], Floats], now: Floats, then: Floats) -> Floats:
        return np.where(self.hopeful, better(now, then), now)


def _of(counts: Counts, answer: NDArray[np.int64]) -> Counts:
    return np.asarray(np.take_along_axis(counts, answer[:, None], axis=1)[:, 0])
