"""Setting: a rule in a situation, and what all situations have in common: how votes are drawn, and what is false."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dualrs.certificates import Certificates
from dualrs.theory.looks import planned_looks
from dualrs.votes import SamplingPlan

Errors = Callable[[int, Generator], int]  # number of trials, randomness -> how many claim falsely


@dataclass(frozen=True)
class Setting:
    """A rule in a situation; ``weight`` is its share of trials, 1 for most."""

    rule: str
    what: str
    alpha: float
    make: Callable[[], Errors]
    weight: float = 1.0
    twin: bool = False


@dataclass(frozen=True)
class Votes:
    """How votes are drawn: at a fixed n, or at looks."""

    name: str
    alpha: float
    n: int
    looks: tuple[int, ...] = ()

    def plan(self, n0: int = 1) -> SamplingPlan:
        """The plan for so many selection votes."""
        return SamplingPlan(n0, self.n, self.looks)


# At n = 268 a fair coin is taken for a loaded one as often as the levels .1, .08 and .05 allow.
FIXED = (Votes("n 268", 0.1, 268), Votes("n 1,000", 0.01, 1000), Votes("n 10,000", 0.001, 10_000))
LOOKS = (Votes("looks to 400", 0.1, 400, (100, 200, 400)), Votes("looks to 1,000", 0.01, 1000, planned_looks(1000)))


class Known(Protocol):
    """A problem whose truth is known."""

    @property
    def label(self) -> int:
        """The answer at the input."""

    @property
    def radius(self) -> float:
        """How far it holds."""


def false_claims(found: Certificates, problem: Known) -> NDArray[np.bool_]:
    """Which trials name a class with a radius above the true one, or name a class other than the predictor's."""
    wrong = (found.prediction != problem.label) | (found.radius > problem.radius)
    return np.asarray(~found.abstained & wrong)
