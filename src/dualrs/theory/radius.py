"""Radii from probabilities: how far an input may move before a smoothed answer can change.

Both functions rest on one fact (Salman et al. 2019, Lemma 2): for a model h under Gaussian noise d of
standard deviation sigma and any event T, ``x -> sigma * Phi^-1(P[h(x + d) in T])`` is 1-Lipschitz in L2.
"""

from decimal import ROUND_FLOOR, Decimal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from dualrs.theory.bounds import Floats

RADII = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5)  # at which certified accuracy is reported


def gaussian_radius(sigma: ArrayLike, p_lower: ArrayLike) -> Floats:
    """Radius within which an answer of probability at least ``p_lower`` keeps more than half of the mass.

    Positive iff ``p_lower > 1/2``; a value of zero or below certifies nothing.
    """
    return np.asarray(sigma * ndtri(p_lower), dtype=np.float64)


def pair_radius(sigma: ArrayLike, p_lower: ArrayLike, q_upper: ArrayLike) -> Floats:
    """Radius within which an answer of probability >= ``p_lower`` beats one of probability <= ``q_upper``.

    The larger answer falls, and the smaller rises, by at most 1 unit of ``sigma * Phi^-1`` per unit of distance.
    """
    return np.asarray(np.asarray(sigma) / 2 * (ndtri(p_lower) - ndtri(q_upper)), dtype=np.float64)


def above_radius(sigma: ArrayLike, p_lower: ArrayLike, threshold: ArrayLike) -> Floats:
    """Radius within which an answer of probability at least ``p_lower`` stays above a threshold."""
    return np.asarray(sigma * (ndtri(p_lower) - ndtri(threshold)), dtype=np.float64)


def below_radius(sigma: ArrayLike, q_upper: ArrayLike, threshold: ArrayLike) -> Floats:
    """Radius within which an answer of probability at most ``q_upper`` stays below a threshold."""
    return np.asarray(sigma * (ndtri(threshold) - ndtri(q_upper)), dtype=np.float64)


def exclusion_radius(sigma: ArrayLike, q_upper: ArrayLike, answers: int) -> Floats:
    """Radius within which an answer of probability <= ``q_upper`` stays below ``1 / answers``.

    The most probable of ``answers`` answers has probability at least ``1 / answers``, so within this radius
    the excluded one cannot be it.
    """
    return below_radius(sigma, q_upper, 1 / answers)


def round_down(radius: float, digits: int = 4) -> str:
    """Format a radius with ``digits`` decimals, never above its value."""
    if not np.isfinite(radius):
        return str(radius)
    return str(Decimal(radius).quantize(Decimal(1).scaleb(-digits), rounding=ROUND_FLOOR))
