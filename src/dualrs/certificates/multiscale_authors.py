"""`multiscale-authors`: the cascade with the levels and the interval of its authors' code, for comparison only.

Written from https://github.com/jh-jeong/smoothing-multiscale (certify.py and third_party/core_mdds.py, commit f3cb1d5).
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import chdtri

from dualrs.certificates.certificate import Radii
from dualrs.certificates.multiscale import classes_at, conclude, descend, descending
from dualrs.certificates.selection import Indices, demand_one_look
from dualrs.theory.bounds import Floats
from dualrs.theory.budget import ErrorBudget
from dualrs.theory.radius import gaussian_radius
from dualrs.votes import Votes

SMALLEST_CELL = 5  # votes below which the authors' code pools classes


def multiscale_authors(votes: Sequence[Votes], alpha: float) -> Radii[Votes]:
    """The cascade as its authors evaluate it: stage s, from 0, at alpha/(s + 1) a side, and a passed stage by Goodman.

    Guarantee: none at level alpha. The first stage alone may err with probability alpha to stop too early and, besides,
    go on where it should not; and Goodman's interval holds only as n grows.
    """
    demand_one_look("multiscale-authors", *votes)
    stages, budget = descending(votes), ErrorBudget(alpha)
    stop = descend(stages, [budget.multiscale_of_authors(s) for s in range(len(stages))])
    levels = budget.multiscale_of_authors(stop)  # that of the last stage, also for the stages before it
    y = classes_at(stages, stop)
    passed = [-gaussian_radius(v.sigma, _others_upper(v, y, levels.upper)) for v in stages]
    return conclude(stages, stop, levels, passed)


def _others_upper(votes: Votes, y: Indices, level: Floats) -> Floats:
    """Their upper end for the classes other than ``y``."""
    n = np.maximum(votes.sampled, 1)
    cells, largest = _pooled(votes.estimation, y)
    chi2 = chdtri(1, 2 * level / cells)
    goodman = (2 * largest + chi2 + np.sqrt(chi2**2 + 4 * largest * chi2 * (1 - largest / n))) / (2 * (chi2 + n))
    # With two cells or fewer they take the complement of the stage's own class, whether or not that is y.
    own = votes.lower(np.asarray(votes.selection.argmax(axis=1)), level)
    return np.where(cells <= 2, 1 - own, goodman)


def _pooled(counts: Indices, y: Indices) -> tuple[Indices, Indices]:
    """How many cells are left when classes other than ``y`` with few votes are pooled, and the largest of these cells.

    In descending order, classes below five votes are added up until they have five; what is left over joins the last
    cell. The cell of ``y`` counts, but is not among the largest.
    """
    others = counts.copy()
    np.put_along_axis(others, y[:, None], 0, axis=1)
    others = -np.sort(-others, axis=1)
    zeros = np.zeros(len(counts), dtype=np.int64)
    cells, largest, last, pool = zeros + 1, zeros, zeros, zeros
    for count in others.T:
        pool = pool + count  # a large class comes before any pool has begun
        full = pool >= SMALLEST_CELL
        cells = cells + full
        last = np.where(full, pool, last)
        largest = np.maximum(largest, last)
        pool = np.where(full, 0, pool)
    return cells, np.maximum(largest, last + np.where(cells > 1, pool, 0))
