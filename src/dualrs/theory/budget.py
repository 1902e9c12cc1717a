"""ErrorBudget: the only place where the error probability alpha is split among bounds.

Enters: the probability alpha with which a certificate may be wrong. Leaves: the level of each bound of each
rule. The arguments are in docs/guarantees.md.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dualrs.errors import BadSetting
from dualrs.theory.bounds import Floats


class StageLevels(NamedTuple):
    """Levels of the router's and of the classifier's lower bound."""

    router: float
    classifier: float


class FusionLevels(NamedTuple):
    """Levels of the bounds of rule `fusion`."""

    chosen: float  # r_A, the expert that the router selected
    other: float  # r_j, each expert it did not select
    router_lower: float  # L_A
    router_upper: float  # U_j, each j


class StageBounds(NamedTuple):
    """Levels of the one-sided bounds at a stage of a cascade; one number, or one per input."""

    lower: Floats
    upper: Floats


@dataclass(frozen=True)
class ErrorBudget:
    """The probability ``alpha`` with which one certificate may be wrong, and its division among bounds."""

    alpha: float

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise BadSetting(f"alpha must lie strictly between 0 and 1, got {self.alpha}")

    def split(self, classifier: float, router: float) -> StageLevels:
        """Union bound over the two stages (Theorem 2): shares in the ratio ``classifier : router``."""
        total = classifier + router
        if min(classifier, router) < 0 or not 0 < total < math.inf:
            raise BadSetting(
                f"the shares of a split must be finite, not negative, not both zero; got {classifier}:{router}"
            )
        return StageLevels(router=self.alpha * router / total, classifier=self.alpha * classifier / total)

    def nosplit(self) -> StageLevels:
        """Both stages at the full alpha: a false claim needs a failure of the bottleneck's own bound."""
        return StageLevels(router=self.alpha, classifier=self.alpha)

    def fusion(self, candidates: int) -> FusionLevels:
        """Levels of rule `fusion`; no factor for the number of candidates.

        The bottleneck is either r_A (alpha) or one j, with r_j (alpha/2), L_A and U_j (alpha/4 each); two
        candidates need no U_j, so L_A gets alpha/2.
        """
        a = self.alpha
        router = a / 2 if candidates == 2 else a / 4
        return FusionLevels(chosen=a, other=a / 2, router_lower=router, router_upper=router)

    def cascade(self, stages: int) -> tuple[StageBounds, ...]:
        """Levels of rule `cascade` at each stage, the noisiest first: a_m = alpha/K and b_k = alpha (K - k + 1)/K.

        A false claim needs a failure within one clause, which is either all lower bounds together, or the lower bounds
        of the stages before k with the upper bound of k: a_1 + ... + a_K and a_1 + ... + a_(k-1) + b_k are at most
        alpha, and b_k >= a_k. Neither sum can be exceeded.
        """
        share = self.alpha / stages
        return tuple(StageBounds(np.asarray(share), np.asarray(share * (stages - k))) for k in range(stages))

    def multiscale(self) -> StageBounds:
        """Levels of rule `multiscale`, the same at every stage; no factor for the number of stages."""
        half = np.asarray(self.alpha / 2)
        return StageBounds(lower=half, upper=half)

    def multiscale_of_authors(self, stage: ArrayLike) -> StageBounds:
        """What the authors of Multiscale spend on each side where the cascade ends at a stage; more than alpha in all.

        Stages count from 0.
        """
        level = self.alpha / (np.asarray(stage) + 1)
        return StageBounds(lower=level, upper=level)


def pair_level(level: Floats) -> Floats:
    """Level of each of the two bounds of a pair form, so that together they have ``level``: a union bound."""
    return level / 2


def smallest_n(level: float) -> int:
    """Fewest votes with which a bound of this level can exceed 1/2, all of them agreeing."""
    n = max(1, math.floor(-math.log2(level)))
    while level ** (1 / n) <= 0.5:
        n += 1
    return n
