"""Moving sigma: what a probability under one sigma says about a point nearby where sigma is another.

Enters: a lower bound on a probability under N(x, sigma^2), in so many dimensions, and which other sigmas may hold how
near. Leaves: the radius within which the probability stays above one half. This is Neyman and Pearson between two
Gaussians of different width, as Sukenik et al. 2022 use it.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammainccinv, gammaincinv, gammaln, ndtr, ndtri, xlogy

from dualrs.theory.bounds import Floats
from dualrs.theory.radius import gaussian_radius

SLACK = 1e-7  # taken off one half; integrals are exact to 1e-9 and better (tests/unit/theory/test_moving.py)
SMALLEST_STEP, LARGEST_STEP = 1e-5, 1.0  # of |ln(ratio)|: the integrals were examined between these

_NODES = 160  # of Gauss and Legendre
_TAIL = 1e-18  # of the chi distribution, left out at either end
_STEPS = 3  # of the secant
_HALVINGS = 30


def mass_nearby(distance: ArrayLike, ratio: ArrayLike, mass: ArrayLike, dimensions: int) -> Floats:
    """Upper bound on what an event of probability ``mass`` under N(0, 1) may have under N(distance, ratio^2).

    Both in so many dimensions, in units of the first sigma. The bound is 1 for a ``ratio`` beyond what was examined.

    Guarantee: for every measurable T with P0(T) <= mass, P1(T) is at most this value, up to the error of a quadrature.
    With S = {dP1 >= l dP0} for any l >= 0, P1(T) <= P1(S) + l (mass - P0(S)), because dP1 - l dP0 is positive on S and
    negative elsewhere. S is a ball about c = distance / (1 - ratio^2) where ratio < 1, and what lies outside of one
    where ratio > 1. The bound is exact where P0(S) = mass; the search for that ball decides how tight it is and never
    whether it holds.
    """
    a, s, q = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in (distance, ratio, mass)))
    examined = (np.abs(np.log(s)) >= SMALLEST_STEP) & (np.abs(np.log(s)) <= LARGEST_STEP)
    s = np.where(examined, s, 2.0)
    centre = a / (1 - s**2)
    inside = s < 1
    aimed = ndtri(np.where(inside, q, 1 - q))  # the ball's mass under P0, as a quantile: nearly linear in its radius

    spread = np.sqrt((dimensions + 2 * centre**2) / (2 * (dimensions + centre**2)))
    middle = np.sqrt(dimensions + centre**2)
    before, radius = middle, np.maximum(middle + aimed * spread, 0.1 * middle)
    at_before = _quantile(_ball(before, np.abs(centre), 1.0, dimensions))
    for _ in range(_STEPS):
        here = _quantile(_ball(radius, np.abs(centre), 1.0, dimensions))
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = (here - at_before) / (radius - before)
        slope = np.where(np.isfinite(slope) & (slope > 0), slope, 1 / spread)
        before, at_before = radius, here
        radius = np.clip(radius + (aimed - here) / slope, 0.5 * radius, 2 * radius)

    ball0 = _ball(radius, np.abs(centre), 1.0, dimensions)
    ball1 = _ball(radius, np.abs(centre) * s**2, s, dimensions)
    mass0, mass1 = np.where(inside, ball0, 1 - ball0), np.where(inside, ball1, 1 - ball1)
    end = centre + radius  # a point of the sphere, on which dP1 / dP0 is constant
    log_ratio = -dimensions * np.log(s) - (end - a) ** 2 / (2 * s**2) + end**2 / 2
    bound = mass1 + np.exp(np.clip(log_ratio, -700, 700)) * (q - mass0)
    return np.asarray(np.where(examined, bound, 1.0))


class Moved(NamedTuple):
    """How far a class stands where sigma moves, and the number of the sigma that ends it, -1 if none does."""

    radius: Floats
    level: NDArray[np.int64]


def moving_radius(
    sigmas: Floats, level: NDArray[np.int64], p_lower: Floats, apart: Callable[[int], float], dimensions: int
) -> Moved:
    """Radius within which an answer of probability >= ``p_lower`` keeps more than half of the mass, whatever sigma is.

    Sigma is ``sigmas[level]`` at the input, and ``sigmas[level + k]`` no closer than ``apart(|k|)``, which rises.

    Guarantee: closer than the radius the answer has probability above 1/2 under the sigma that holds there. For each
    sigma j let d_j be how far it is, and a_j how far the answer stands under it. Then the radius is at most
    max(d_j, a_j) for every j: a point nearer than d_j has another sigma, one nearer than a_j has the answer. No shape
    of the bound in sigma is assumed, as all sigmas are finitely many and each is tried.
    Assumes: `mass_nearby` rises with the distance. Proof: let S be its ball, or complement of a ball, at a distance a.
    Its mass under P0 does not change as x1 moves on along the line, and its mass under P1 grows as long as x1 comes
    closer to the centre of the ball (ratio < 1, and the centre lies beyond x1) or goes further from it (ratio > 1, and
    the centre lies on the other side of the input): a Gaussian's mass of a ball falls with its distance.
    """
    sigma = sigmas[level]
    found = gaussian_radius(sigma, p_lower)
    limit = np.full(len(found), -1, dtype=np.int64)
    reach = float(found.max(initial=0.0))
    farthest = next((k for k in range(1, len(sigmas)) if apart(k) >= reach), len(sigmas))
    for offset in [sign * k for k in range(farthest - 1, 0, -1) for sign in (-1, 1)]:
        nearest, other = max(apart(abs(offset)), 0.0), level + offset
        rows = np.flatnonzero((found > nearest) & (other >= 0) & (other < len(sigmas)))
        if not len(rows):
            continue
        ratio = sigmas[other[rows]] / sigma[rows]

        def fall(distance: Floats, rows: NDArray[np.int64], ratio: Floats) -> NDArray[np.bool_]:
            bound = mass_nearby(distance / sigma[rows], ratio, 1 - p_lower[rows], dimensions)
            return ~np.asarray(bound < 0.5 - SLACK)  # NaN is no bound

        short = fall(found[rows], rows, ratio)
        rows, ratio = rows[short], ratio[short]
        low, high = np.full(len(rows), nearest), found[rows]
        limit[rows], found[rows] = other[rows], nearest
        # Most sigmas that far away end it as soon as they may hold; of the others it is found where.
        within = ~fall(low, rows, ratio)
        rows, ratio, low, high = rows[within], ratio[within], low[within], high[within]
        for _ in range(_HALVINGS if len(rows) else 0):
            half = (low + high) / 2
            bad = fall(half, rows, ratio)
            low, high = np.where(bad, low, half), np.where(bad, half, high)
        found[rows] = low
    return Moved(found, limit)


def _ball(radius: Floats, centre: Floats, sigma: ArrayLike, dimensions: int) -> Floats:
    """The mass that N(0, sigma^2) has in a ball at a distance: a non-central chi-square, also where that is huge.

    Along the line to the centre the ball is an interval that depends on the rest v, which has a chi distribution; with
    v = radius * sin(angle) the integrand is smooth up to the ball's edge.
    """
    s = np.broadcast_to(sigma, radius.shape)
    if dimensions == 1:
        return np.asarray(ndtr((radius - centre) / s) - ndtr((-radius - centre) / s))
    low, high, log_norm = _chi(dimensions - 1)
    nodes, weights = _gauss()
    first, last = (np.arcsin(np.minimum(end * s / radius, 1.0)) for end in (low, high))
    angle = ((last - first)[..., None] * nodes + (last + first)[..., None]) / 2
    rest = radius[..., None] * np.sin(angle) / s[..., None]  # in units of sigma
    half_chord = radius[..., None] * np.cos(angle)
    density = np.exp(xlogy(dimensions - 2, rest) - rest**2 / 2 - log_norm)
    near, far = ((centre[..., None] + side * half_chord) / s[..., None] for side in (-1, 1))
    chord = ndtr(-near) - ndtr(-far)
    return np.asarray((density * chord * half_chord / s[..., None]) @ weights * (last - first) / 2)


@lru_cache(maxsize=8)
def _chi(degrees: int) -> tuple[float, float, float]:
    """Between which ends a chi distribution lies but for `_TAIL` at either, and the log of what its density is over."""
    half = degrees / 2
    low, high = (float(np.sqrt(2 * inverse(half, _TAIL))) for inverse in (gammaincinv, gammainccinv))
    return low, high, float((half - 1) * np.log(2) + gammaln(half))


@lru_cache(maxsize=1)
def _gauss() -> tuple[Floats, Floats]:
    return np.polynomial.legendre.leggauss(_NODES)


def _quantile(mass: Floats) -> Floats:
    """Of the normal distribution, finite."""
    return np.asarray(ndtri(np.clip(mass, 1e-300, 1 - 1e-16)))
