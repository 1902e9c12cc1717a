"""Radii against half-spaces, for which they are exact, and the rounding that must never flatter."""

from decimal import Decimal
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualrs.theory.radius import exclusion_radius, gaussian_radius, pair_radius, round_down

phi = NormalDist().cdf
quantile = NormalDist().inv_cdf


@pytest.mark.parametrize("sigma", [0.12, 0.25, 1.0])
@pytest.mark.parametrize("steps", [-1.0, 0.01, 0.3, 3.0])
def test_gaussian_radius_of_a_half_space_is_its_margin(sigma, steps):
    margin = steps * sigma
    assert float(gaussian_radius(sigma, phi(margin / sigma))) == pytest.approx(margin, rel=1e-9)


@pytest.mark.parametrize(
    ("p", "sign"),
    [
        pytest.param(0.5, 0, id="exactly one half gives exactly zero"),
        pytest.param(np.nextafter(0.5, 1), 1, id="the next number above one half gives a positive radius"),
        pytest.param(np.nextafter(0.5, 0), -1, id="the next number below one half gives a negative one"),
    ],
)
def test_gaussian_radius_changes_sign_at_one_half(p, sign):
    assert np.sign(gaussian_radius(1.0, p)) == sign


def test_probability_zero_is_minus_infinity_in_every_form():
    assert gaussian_radius(1.0, 0.0) == -np.inf
    assert pair_radius(1.0, 0.0, 0.3) == -np.inf
    assert pair_radius(1.0, 0.0, 1.0) == -np.inf
    assert exclusion_radius(1.0, 1.0, 3) == -np.inf


def test_pair_radius_is_the_distance_to_a_tie_of_two_opposite_half_spaces():
    """y where t < c, the rival where t > d: they tie half way between the two cuts."""
    sigma, c, d = 0.5, 0.2, 0.9
    p, q = phi(c / sigma), 1 - phi(d / sigma)
    assert float(pair_radius(sigma, p, q)) == pytest.approx((c + d) / 2, rel=1e-9)


def test_pair_radius_against_everything_else_is_the_gaussian_radius():
    p = np.array([0.3, 0.5, 0.77, 0.999])
    np.testing.assert_allclose(pair_radius(0.25, p, 1 - p), gaussian_radius(0.25, p), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("answers", [2, 3, 5, 10])
def test_exclusion_radius_is_where_a_half_space_reaches_its_share(answers):
    """An answer given where t > c has probability 1/answers at distance c - sigma * Phi^-1(1 - 1/answers)."""
    sigma, c = 0.5, 1.7
    radius = float(exclusion_radius(sigma, 1 - phi(c / sigma), answers))
    assert 1 - phi((c - radius) / sigma) == pytest.approx(1 / answers, rel=1e-9)
    assert exclusion_radius(sigma, 1 / answers, answers) == 0


def test_radii_are_proportional_to_sigma():
    p, q = np.array([0.6, 0.9]), np.array([0.3, 0.05])
    np.testing.assert_allclose(gaussian_radius(0.5, p), 2 * gaussian_radius(0.25, p))
    np.testing.assert_allclose(pair_radius(0.5, p, q), 2 * pair_radius(0.25, p, q))
    np.testing.assert_allclose(exclusion_radius(0.5, q, 3), 2 * exclusion_radius(0.25, q, 3))


def test_sigma_may_be_an_array():
    sigma, p = np.array([0.25, 0.5]), np.array([0.8, 0.8])
    assert gaussian_radius(sigma, p) == pytest.approx([0.25 * quantile(0.8), 0.5 * quantile(0.8)])


@given(st.floats(min_value=-1e6, max_value=1e6), st.integers(min_value=0, max_value=8))
def test_rounding_goes_down_and_by_less_than_one_digit(radius, digits):
    shown = Decimal(round_down(radius, digits))
    lost = Fraction(radius) - Fraction(shown)  # exact, as a difference of decimals would itself be rounded
    assert 0 <= lost < Fraction(1, 10**digits)
    assert -shown.as_tuple().exponent == digits


@given(st.integers(min_value=0, max_value=10**9))
def test_rounding_keeps_or_undercuts_a_decimal_as_written(ticks):
    """0.29 is stored below or above 0.29: what is shown follows what is stored, not what was typed."""
    radius = ticks / 10**4
    shown = Decimal(round_down(radius))
    assert shown <= Decimal(radius)
    assert shown in (Decimal(ticks).scaleb(-4), Decimal(ticks - 1).scaleb(-4))


@pytest.mark.parametrize(
    ("radius", "shown"),
    [
        pytest.param(0.12349999, "0.1234", id="what ordinary rounding would push up"),
        pytest.param(0.99999, "0.9999", id="what ordinary rounding would push to the next integer"),
        pytest.param(0.25, "0.2500", id="an exact value"),
        pytest.param(0.0, "0.0000", id="zero"),
        pytest.param(-0.00001, "-0.0001", id="a negative value goes away from zero"),
        pytest.param(1e-12, "0.0000", id="a tiny positive value"),
        pytest.param(float("inf"), "inf", id="no limit"),
        pytest.param(float("-inf"), "-inf", id="no support at all"),
    ],
)
def test_rounding_of_known_values(radius, shown):
    assert round_down(radius) == shown
