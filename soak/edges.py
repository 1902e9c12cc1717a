"""Where a bound fails most often: there problems are placed, so that rules err as often as they can.

Enters: a sampling plan and the level of a bound. Leaves: a probability at which that bound fails about as often as its
level allows; discreteness takes a part of it, and looks a little more, as their failures overlap.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.stats import binom

from dualrs.theory.bounds import lower
from dualrs.theory.looks import shares
from dualrs.votes import SamplingPlan

_INSIDE = 1 - 1e-9  # a hair below a bound that may come out: then it fails
_TRIED = 8  # counts on either side, of which the one that fails most often is taken
_WIDEST = 2000  # votes up to which the failure under looks is computed exactly; beyond, one count is as good as another


@dataclass(frozen=True)
class Spot:
    """What a problem is placed for: how votes are drawn, and alpha."""

    plan: SamplingPlan
    alpha: float

    def edge(self, share: float, near: float) -> float:
        """A probability near a given one at which a lower bound with a share of alpha fails most often."""
        return _edge(self.plan.looks, share * self.alpha, near)


@cache
def _edge(looks: tuple[int, ...], level: float, near: float) -> float:
    n, spent = looks[-1], level * shares(looks)
    k = min(n, round(near * n))

    def inside(count: int) -> float:
        return float(lower(count, n, spent[-1])) * _INSIDE

    if len(looks) == 1 or n > _WIDEST:
        return inside(k)
    return max(map(inside, range(k - _TRIED, k + _TRIED + 1)), key=lambda p: failure(p, looks, spent.tolist()))


def failure(p: float, looks: Sequence[int], levels: Sequence[float]) -> float:
    """Exact probability that a lower bound fails at some look: the law of the count, less what has failed before."""
    alive, before, lost = np.ones(1), 0, 0.0
    for n, level in zip(looks, levels, strict=True):
        alive = np.convolve(alive, binom.pmf(np.arange(n - before + 1), n - before, p))
        before = n
        failed = lower(np.arange(n + 1), n, level) > p
        lost += float(alive[failed].sum())
        alive = np.where(failed, 0.0, alive)
    return lost
