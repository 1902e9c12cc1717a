"""Aims: which votes of a smoothed model to move, and to which answers, so that it answers otherwise.

Every kind of run knows its own weak spots; an attack tries one after the other.
"""

from collections.abc import Sequence
from typing import NamedTuple

from dualrs.theory.bounds import Floats as Floats
from dualrs.votes import Stage


class Move(NamedTuple):
    """Make these answers likely at one stage.

    Where they stand for several classes, one of which has to win, ``ways`` has the answers of each; the move may be
    ``aimed`` at one of them. To win is to have more votes than every other class or, for a ``majority``, than all of
    them together.
    """

    stage: Stage
    sigma: float
    answers: tuple[int, ...]
    ways: tuple[tuple[int, ...], ...] = ()
    majority: bool = False
    aimed: int | None = None

    def followed(self, shares: Floats) -> float:
        """How far votes with these shares follow it, from 0 to 1: above one half they do.

        That is the share of the strongest way, or of the one aimed at, among its votes and those that stand against it.
        """
        own = self._own(shares)
        votes, against = (float(shares[side].sum()) for side in (own, self._against(own, shares)))
        return votes / max(votes + against, 1e-12)

    def sides(self, shares: Floats) -> tuple[list[int], list[int]]:
        """The answers to raise and those to lower, where answers are so likely; aimed at nothing, any way will do."""
        if self.aimed is None:
            return list(self.answers), _but(self.answers, len(shares))
        own = self._own(shares)
        return own, self._against(own, shares)

    def strongest(self, shares: Floats) -> list[int]:
        """The numbers of the ways, the likeliest first."""
        return sorted(range(len(self.ways)), key=lambda number: -shares[list(self.ways[number])].sum())

    def _own(self, shares: Floats) -> list[int]:
        if not self.ways:
            return list(self.answers)
        return list(self.ways[self.strongest(shares)[0] if self.aimed is None else self.aimed])

    def _against(self, own: Sequence[int], shares: Floats) -> list[int]:
        if self.majority or not self.ways:
            return _but(own, len(shares))
        others = [list(way) for way in self.ways if list(way) != list(own)]
        return max([*others, _but(self.answers, len(shares))], key=lambda side: float(shares[side].sum()))


class Aim(NamedTuple):
    """Moves that change the answer of the whole model if all of them succeed."""

    what: str
    moves: tuple[Move, ...]


def but(answer: int, answers: int) -> tuple[int, ...]:
    """All answers but one."""
    return tuple(_but((answer,), answers))


def _but(left_out: Sequence[int], answers: int) -> list[int]:
    others = set(left_out)  # of a thousand answers, all but one may be left out
    return [k for k in range(answers) if k not in others]
