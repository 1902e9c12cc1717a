"""Hopes: what the bounds of some votes may become at the last look, if the votes to come are kind.

Enters: votes so far on one input. Leaves: something of the shape of bounds, for deciding whether to sample on. No
certificate can be concluded from it, as it is no `Votes`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualrs.theory.bounds import Floats, lower, upper
from dualrs.theory.looks import shares
from dualrs.votes import Counts, Votes

PATIENCE = 0.02  # a smaller number gives a goal up later, and more rarely in vain


@dataclass(frozen=True)
class Hopes:
    """A row per input; those marked ``hopeful`` read the bounds of the last look, the others those of now.

    ``unlikely`` is the chance that an answer is likelier than is hoped for: 0 hopes for the best that any votes could
    show, 1/2 expects what the votes so far suggest. By default it is that at which more votes are not worth their cost.
    """

    votes: Votes
    hopeful: NDArray[np.bool_]  # (rows,)
    unlikely: float | Floats | None = None  # one for all, or one for each row

    @classmethod
    def of(cls, one: Votes, hopeful: NDArray[np.bool_], unlikely: float | Floats | None = None) -> "Hopes":
        """One input in as many rows as there are cases."""
        return _Cases(one, hopeful, float(not_worth_it(one)[0]) if unlikely is None else unlikely)

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
        """Selection votes, shape (rows, answers)."""
        return self.votes.selection

    @property
    def sampled(self) -> NDArray[np.int64]:
        """Estimation votes so far; shape (rows,)."""
        return self.votes.sampled

    def lower(self, answer: NDArray[np.int64], level: ArrayLike) -> Floats:
        """The lower bound now or, in hopeful rows, the one that more votes may reach."""
        likely = upper(self._seen(answer), self._asked, self._chance)
        then = lower(self._hoped(answer, likely), self.votes.plan.n, self._last(level))
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
        likely = lower(self._seen(answer), self._asked, self._chance)
        return upper(self._hoped(answer, likely), self.votes.plan.n, self._last(level))

    def _hoped(self, answer: NDArray[np.int64], likely: Floats) -> Floats:
        """The count at the last look, if the votes to come are as is likely."""
        return np.asarray(_of(self.votes.estimation, answer) + self._to_come * likely)

    @property
    def _chance(self) -> float | Floats:
        return not_worth_it(self.votes) if self.unlikely is None else self.unlikely

    def _seen(self, answer: NDArray[np.int64]) -> Counts:
        return _of(self.votes.selection + self.votes.estimation, answer)

    @property
    def _asked(self) -> NDArray[np.int64]:
        return np.asarray((self.votes.selection + self.votes.estimation).sum(axis=1))

    @property
    def _to_come(self) -> NDArray[np.int64]:
        return np.asarray(self.votes.plan.n - self.sampled)

    def _last(self, level: ArrayLike) -> Floats:
        return np.asarray(np.asarray(level) * shares(self.votes.plan.looks)[-1])

    def _best(self, better: Callable[[Floats, Floats], Floats], now: Floats, then: Floats) -> Floats:
        return np.where(self.hopeful, better(now, then), now)


def not_worth_it(votes: Votes) -> Floats:
    """The chance of success that is too small for the votes that are still to come: in proportion to how many."""
    return np.asarray(PATIENCE * (1 - votes.sampled / votes.plan.n))


def _of(counts: Counts, answer: NDArray[np.int64]) -> Counts:
    return np.asarray(np.take_along_axis(counts, answer[:, None], axis=1)[:, 0])


class _Heard(NamedTuple):
    """The votes for an answer, or for the strongest of others, on one input."""

    at_looks: list[int]  # estimation votes up to each look that was reached
    sampled: int  # all estimation votes
    seen: int  # with the selection votes


class _Side(NamedTuple):
    """A kind of bounds on a probability: which is the better of several, what holds without votes."""

    bound: Callable[[float, int, float], float]
    opposite: Callable[[float, int, float], float]  # how likely an answer may be that is hoped for
    best: Callable[[list[float]], float]
    nothing: float


class _Cases(Hopes):
    """The votes on one input, in as many rows as there are cases.

    A run reads its bounds at every look, a few numbers at a time, where arrays would cost more than what is in them. So
    the numbers are Python's own, and a bound that was read before, as those of earlier looks were, is remembered.
    """

    @cached_property
    def selection(self) -> Counts:
        """Selection votes, the same in every row."""
        return self.votes.selection.repeat(len(self), axis=0)

    @cached_property
    def sampled(self) -> NDArray[np.int64]:
        """Estimation votes so far, the same in every row."""
        return self.votes.sampled.repeat(len(self))

    def lower(self, answer: NDArray[np.int64], level: ArrayLike) -> Floats:
        """The lower bound now or, in hopeful rows, the one that more votes may reach."""
        return self._in_rows(_LOWER, self._for, answer, level)

    def upper(self, answer: NDArray[np.int64], level: ArrayLike) -> Floats:
        """The upper bound now or, in hopeful rows, the one that more votes may reach."""
        return self._in_rows(_UPPER, self._for, answer, level)

    def upper_of_others(self, answer: NDArray[np.int64], level: ArrayLike) -> Floats:
        """As `upper`, for the class other than a given one that has the most votes so far."""
        return self._in_rows(_UPPER, self._against, answer, level)

    def _in_rows(
        self, side: _Side, heard: Callable[[int], _Heard], answer: NDArray[np.int64], level: ArrayLike
    ) -> Floats:
        """A bound for each row; most rows ask for the same, so few bounds differ."""
        rows = len(self)
        asked = answer.tolist(), *(_listed(each, rows) for each in (level, self._chance, self.hopeful))
        about = {one: heard(one) for one in set(asked[0])}
        known: dict[tuple[int, float, float, bool], float] = {}
        for case in zip(*asked, strict=True):
            if case not in known:
                known[case] = self._bound(side, about[case[0]], *case[1:])
        return np.array([known[case] for case in zip(*asked, strict=True)])

    def _bound(self, side: _Side, heard: _Heard, level: float, unlikely: float, hopeful: bool) -> float:
        plan, spent = self.votes.plan, _shares(self.votes.plan.looks)
        reached = zip(heard.at_looks, plan.looks, spent, strict=False)
        bounds = [side.nothing, *[side.bound(count, look, level * share) for count, look, share in reached]]
        if hopeful:
            sampled = int(self.votes.sampled[0])
            likely = side.opposite(heard.seen, sampled + int(self.votes.selection.sum()), unlikely)
            bounds.append(side.bound(heard.sampled + (plan.n - sampled) * likely, plan.n, level * spent[-1]))
        return side.best(bounds)

    def _for(self, answer: int) -> _Heard:
        return self._heard(self._reached[:, answer], answer)

    def _against(self, answer: int) -> _Heard:
        others, last = self._reached[:, : self.classes].copy(), self.votes.estimation[0, : self.classes].copy()
        others[:, answer], last[answer] = 0, -1
        return self._heard(others.max(axis=1), int(last.argmax()))

    def _heard(self, at_looks: Counts, answer: int) -> _Heard:
        count = int(self.votes.estimation[0, answer])
        return _Heard(at_looks.tolist(), count, count + int(self.votes.selection[0, answer]))

    @cached_property
    def _reached(self) -> Counts:
        """Counts up to each look that was reached, shape (looks, answers)."""
        return np.asarray(self.votes.at_looks[0, self.votes.reached[0]])


_REMEMBERED = 1 << 16  # bounds, of every input of a run


@lru_cache(_REMEMBERED)
def _lower(count: float, n: int, level: float) -> float:
    return float(lower(count, n, level))


@lru_cache(_REMEMBERED)
def _upper(count: float, n: int, level: float) -> float:
    return float(upper(count, n, level))


@lru_cache
def _shares(looks: tuple[int, ...]) -> list[float]:
    found: list[float] = shares(looks).tolist()
    return found


def _listed(value: ArrayLike, rows: int) -> list[Any]:
    """One value for all rows, or one for each, as numbers of Python."""
    found = np.asarray(value).tolist()
    return found if isinstance(found, list) else [found] * rows


_LOWER = _Side(_lower, _upper, max, 0.0)
_UPPER = _Side(_upper, _lower, min, 1.0)
