"""Where sigma moves: the mass of balls to high precision, the bound against brute force, and the radius."""

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import ncx2

from dualrs.theory.moving import LARGEST_STEP, SMALLEST_STEP, _ball, mass_nearby, moving_radius
from dualrs.theory.radius import gaussian_radius

DIMENSIONS = 3072


def exact_ball(radius, centre, dimensions):
    """The mass of a ball at a distance under N(0, 1): the Poisson mixture of chi-squares, in 30 digits."""
    with mpmath.workdps(30):
        half = mpmath.mpf(centre) ** 2 / 2
        reach = int(30 * mpmath.sqrt(half + 1)) + 40
        terms = range(max(0, int(half) - reach), int(half) + reach)
        weight = mpmath.exp(-half + terms[0] * mpmath.log(half) - mpmath.loggamma(terms[0] + 1))
        total = mpmath.mpf(0)
        for number in terms:
            total += weight * mpmath.gammainc(
                mpmath.mpf(dimensions) / 2 + number, 0, mpmath.mpf(radius) ** 2 / 2, regularized=True
            )
            weight *= half / (number + 1)
        return float(total)


@pytest.mark.parametrize("dimensions", [1, 2, 3, 27, 3072])
@pytest.mark.parametrize("centre", [0.01, 1.0, 12.0])
@pytest.mark.parametrize("place", [-3.0, -0.5, 2.0])
def test_mass_of_a_ball_to_thirty_digits(dimensions, centre, place):
    square = dimensions + centre**2 + place * np.sqrt(2 * (dimensions + 2 * centre**2))
    radius = np.sqrt(max(square, 0.01))
    found = _ball(np.array(radius), np.array(centre), 1.0, dimensions)
    assert float(found) == pytest.approx(exact_ball(radius, centre, dimensions), abs=1e-11)


@pytest.mark.parametrize("dimensions", [2, 300, 3072, 150_528])
def test_mass_of_far_and_large_balls(dimensions):
    """Against scipy where it can, up to the distances of neighbouring sigmas; beyond, against twice the nodes below."""
    for centre in (30.0, 300.0):
        square = dimensions + centre**2 + np.array([-3.0, 0.0, 3.0]) * np.sqrt(2 * (dimensions + 2 * centre**2))
        found = _ball(np.sqrt(square), np.full(3, centre), 1.0, dimensions)
        assert found == pytest.approx(ncx2.cdf(square, dimensions, centre**2), abs=1e-9)


def far_ball(radius, centre, dimensions, nodes):
    """The same integral over the rest itself, by the midpoint rule, in 30 digits: another substitution, other nodes."""
    with mpmath.workdps(30):
        degrees, middle = dimensions - 1, mpmath.sqrt(dimensions - 1)
        low, high = max(middle - 9, 0), middle + 9
        log_norm = (mpmath.mpf(degrees) / 2 - 1) * mpmath.log(2) + mpmath.loggamma(mpmath.mpf(degrees) / 2)
        total, width = mpmath.mpf(0), (high - low) / nodes
        for number in range(nodes):
            rest = low + (number + mpmath.mpf(1) / 2) * width
            half_chord = mpmath.sqrt(mpmath.mpf(radius) ** 2 - rest**2)
            chord = mpmath.ncdf(half_chord - centre) - mpmath.ncdf(-half_chord - centre)
            total += mpmath.exp((degrees - 1) * mpmath.log(rest) - rest**2 / 2 - log_norm) * chord
        return float(total * width)


@pytest.mark.parametrize("centre", [1e3, 1e5])
def test_mass_of_balls_as_far_as_the_nearest_sigmas_put_them(centre):
    """At the smallest step of ln sigma the centre is 50,000 sigmas away, and scipy's series hardly ends."""
    square = DIMENSIONS + centre**2 + 2 * np.sqrt(2 * (DIMENSIONS + 2 * centre**2))
    found = _ball(np.array(np.sqrt(square)), np.array(centre), 1.0, DIMENSIONS)
    assert float(found) == pytest.approx(far_ball(np.sqrt(square), centre, DIMENSIONS, 400), abs=1e-9)


def textbook(distance, ratio, mass, dimensions):
    """Neyman and Pearson by quantiles of non-central chi-squares, as papers write it."""
    lambda0, lambda1 = (scale * distance**2 / (1 - ratio**2) ** 2 for scale in (1, ratio**2))
    if ratio < 1:
        return ncx2.cdf(ncx2.ppf(mass, dimensions, lambda0) / ratio**2, dimensions, lambda1)
    return ncx2.sf(ncx2.ppf(1 - mass, dimensions, lambda0) / ratio**2, dimensions, lambda1)


@pytest.mark.parametrize("dimensions", [1, 3, 27, 3072])
@pytest.mark.parametrize("ratio", [0.37, 0.9, 0.99, 1.01, 1.1, 2.7])
@pytest.mark.parametrize("distance", [0.1, 1.0])
def test_bound_is_that_of_neyman_and_pearson(dimensions, ratio, distance):
    """In one dimension the search may stop short of the ball; the bound holds, and is a little looser."""
    loose = 1e-6 if dimensions > 1 else 1e-4
    for mass in (1e-4, 0.05, 0.4):
        found, exact = mass_nearby(distance, ratio, mass, dimensions), textbook(distance, ratio, mass, dimensions)
        assert exact - 1e-9 <= found <= exact + loose


@pytest.mark.parametrize("ratio", [1 - 1.1e-5, 1 + 1.1e-5])
def test_bound_goes_over_into_that_of_one_sigma(ratio):
    """As near as sigmas may be, two Gaussians differ from equal ones by at most sqrt(d / 2) ln(ratio): Pinsker."""
    for distance, mass in ((0.3, 0.3), (1.0, 0.05), (3.0, 1e-4)):
        alike = ndtr(distance + ndtri(mass))
        assert mass_nearby(distance, ratio, mass, DIMENSIONS) == pytest.approx(alike, abs=5e-4)


@pytest.mark.parametrize("ratio", [0.8, 1.25])
def test_no_event_beats_the_bound(ratio):
    """Half-spaces, balls and what lies outside of them, of equal mass before."""
    rng = np.random.default_rng(0)
    dimensions, distance, mass = 3, 0.7, 0.1
    bound = mass_nearby(distance, ratio, mass, dimensions)
    before = rng.standard_normal((400_000, dimensions))
    after = ratio * rng.standard_normal((400_000, dimensions)) + [distance, 0, 0]
    for centre in ((0, 0, 0), (2, 0, 0), (-2, 0, 0), (20, 0, 0), (0, 3, 0)):
        for sign in (1, -1):
            far = sign * np.linalg.norm(before - centre, axis=1)
            share = np.mean(sign * np.linalg.norm(after - centre, axis=1) <= np.quantile(far, mass))
            assert share <= bound + 0.003  # five standard deviations


def test_bound_rises_with_the_distance():
    """The step of the proof that the radius rests on."""
    for ratio in (0.7, 0.999, 1.001, 1.4):
        for dimensions in (1, 27, 3072):
            rising = mass_nearby(np.linspace(1e-3, 4, 200), ratio, 0.05, dimensions)
            assert (np.diff(rising) >= -1e-9).all()


@pytest.mark.parametrize("log_ratio", [0.0, SMALLEST_STEP / 2, 2 * LARGEST_STEP, -2 * LARGEST_STEP])
def test_nothing_is_claimed_for_sigmas_that_were_not_examined(log_ratio):
    assert mass_nearby(0.1, np.exp(log_ratio), 0.01, DIMENSIONS) == 1


def levels(rate, step, count=801, middle=1.0):
    return middle * np.exp(rate * step * (np.arange(count) - count // 2))


@pytest.mark.parametrize(
    ("sigma", "rate", "p", "radius"),
    [(0.5, 0.01, 0.99, 1.0825), (1.0, 0.01, 0.99993, 2.986), (1.0, 0.1, 0.99993, 0.4745)],
)
def test_radius_is_that_of_a_continuous_sigma_as_levels_get_finer(sigma, rate, p, radius):
    found = []
    for step in (0.05, 0.005):
        sigmas = levels(rate, step, int(8 / step) | 1, sigma)
        middle = np.array([len(sigmas) // 2])
        found.append(
            moving_radius(sigmas, middle, np.array([p]), lambda k, step=step: (k - 1) * step, DIMENSIONS).radius[0]
        )
    assert found[0] < found[1] < radius + 1e-4
    assert found[1] == pytest.approx(radius, abs=0.006)
    assert found[0] == pytest.approx(radius, abs=0.05)


def test_radius_never_exceeds_that_of_a_constant_sigma_nor_what_any_level_allows():
    sigmas, step = levels(0.02, 0.1, 81), 0.1
    level, p = np.array([10, 40, 70, 0, 80]), np.array([0.9, 0.99, 0.6, 0.999, 0.8])
    found = moving_radius(sigmas, level, p, lambda k: (k - 1) * step, DIMENSIONS)
    assert (found.radius <= gaussian_radius(sigmas[level], p)).all()
    for row, (place, share, radius) in enumerate(zip(level, p, found.radius, strict=True)):
        for other in set(range(len(sigmas))) - {place}:
            away = (abs(other - place) - 1) * step
            if away < radius:  # then the class has to stand there
                ratio = sigmas[other] / sigmas[place]
                assert mass_nearby(radius / sigmas[place], ratio, 1 - share, DIMENSIONS) < 0.5
        assert found.level[row] == -1 or abs(found.level[row] - place) * step - step <= radius + 1e-9


def test_nothing_is_certified_of_a_coin_toss():
    found = moving_radius(levels(0.01, 0.1), np.array([400, 400]), np.array([0.5, 0.3]), lambda k: (k - 1) * 0.1, 27)
    assert (found.radius <= 0).all()
