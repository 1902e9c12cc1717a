"""Looks: the sample sizes at which a bound may be read, and the share of its level that each look spends.

Enters: how many votes a stream may get at most. Leaves: the looks, fixed before the first vote, and bounds that hold at
all of them together, so that sampling may stop at any look and for any reason. docs/guarantees.md has the argument.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualrs.theory.bounds import Floats, lower, upper

GRAIN = 100  # votes at the first look; all but the last are multiples of it
GROWTH = 2 ** (1 / 3)  # from look to look: close enough that few votes are drawn past the one that decides
EARLY = 0.25  # share of a level that all looks but the last spend together; 0.3 loses n = 10,000 a miss at three sigmas


def planned_looks(n: int) -> tuple[int, ...]:
    """The looks of a stream of at most ``n`` votes: n, and down from there, each a fifth smaller, to 100."""
    early, size = set[int](), n / GROWTH
    while size > GRAIN / 2:
        early.add(max(1, round(size / GRAIN)) * GRAIN)
        size /= GROWTH
    return (*sorted(look for look in early if look < n), n)


def shares(looks: tuple[int, ...]) -> Floats:
    """The share of a bound's level that each of several looks spends, the early ones by their votes; they sum to 1."""
    if len(looks) == 1:
        return np.ones(1)
    early = np.array(looks[:-1], dtype=np.float64)
    return np.append(EARLY * early / early.sum(), 1 - EARLY)


def lower_at_looks(k: ArrayLike, looks: tuple[int, ...], reached: NDArray[np.bool_], level: ArrayLike) -> Floats:
    """The best lower bound over the looks that were reached; 0 where none was. ``k`` and ``reached`` are (..., looks).

    Guarantee: if k at each look counts the first votes of one stream of probability p, P[the bound > p] <= level over
    the votes, for every p and however it was decided which looks are reached: a union bound over all looks.
    Assumes: looks fixed before the votes; independent votes.
    """
    return np.asarray(np.where(reached, lower(k, looks, _spent(level, looks)), 0.0).max(axis=-1))


def upper_at_looks(k: ArrayLike, looks: tuple[int, ...], reached: NDArray[np.bool_], level: ArrayLike) -> Floats:
    """The best upper bound over the looks that were reached; 1 where none was. As `lower_at_looks`."""
    return np.asarray(np.where(reached, upper(k, looks, _spent(level, looks)), 1.0).min(axis=-1))


def _spent(level: ArrayLike, looks: tuple[int, ...]) -> Floats:
    """The level of each look, shape (..., looks): fixed by the plan, and not by where sampling stopped."""
    return np.asarray(np.asarray(level)[..., None] * shares(looks))
