"""Aims: which votes of a smoothed model to move, and to which answers, so that it answers otherwise.

Every kind of run knows its own weak spots; an attack tries one after the other.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualrs.theory.bounds import Floats
from dualrs.votes import Stage

Shares = Mapping[tuple[Stage, float], Floats]  # of the votes that each answer has at the input, stage by stage


class Move(NamedTuple):
    """Make these answers likely at one stage."""

    stage: Stage
    sigma: float
    answers: tuple[int, ...]


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
