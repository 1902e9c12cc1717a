"""Aims: which votes of a smoothed model to move, and to which answers, so that it answers otherwise.

Every kind of run knows its own weak spots; an attack tries one after the other.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualrs.theory.bounds import Floats as Floats
from dualrs.votes import Stage

Shares = Mapping[tuple[Stage, float], Floats]  # of the votes that each answer has at the input, stage by stage


class Move(NamedTuple):
    """Make these answers likely at one stage.

    Where they stand for several classes, one of which has to win, ``ways`` has the answers of each.
    """

    stage: Stage
    sigma: float
    answers: tuple[int, ...]
    ways: tuple[tuple[int, ...], ...] = ()

    def followed(self, shares: Floats) -> float:
        """How far votes with these shares follow it, from 0 to 1: above one half they do.

        That is the share of the strongest way among its own votes and those against the move.
        """
        against = 1.0 - shares[list(self.answers)].sum()
        own = max(float(shares[list(way)].sum()) for way in self.ways or (self.answers,))
        return own / max(own + float(against), 1e-12)


class Aim(NamedTuple):
    """Moves that change the answer of the whole model if all of them succeed."""

    what: str
    moves: tuple[Move, ...]


def but(answer: int, answers: int) -> tuple[int, ...]:
    """All answers but one."""
    return tuple(k for k in range(answers) if k != answer)


def likeliest_but(answer: int, shares: NDArray[np.floating]) -> int:
    """The answer with the most votes except for one."""
    others = shares.copy()
    others[answer] = -1.0
    return int(others.argmax())
