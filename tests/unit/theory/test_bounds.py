"""Clopper-Pearson bounds against their definition, at the edges, and against the coverage they promise."""

import numpy as np
import pytest
from scipy.stats import beta, binom

from dualrs.theory.bounds import lower, upper

LEVELS = (0.5, 0.1, 0.05, 0.001, 0.00025, 1e-7)
SIZES = (1, 2, 7, 100, 1000, 10_000)


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [
        pytest.param(0, 0, 0.0, 1.0, id="no vote at all says nothing"),
        pytest.param(0, 10, 0.0, 1 - 0.001 ** (1 / 10), id="no vote for it leaves only the upper bound"),
        pytest.param(10, 10, 0.001 ** (1 / 10), 1.0, id="every vote for it leaves only the lower bound"),
        pytest.param(0, 1, 0.0, 0.999, id="one vote, against"),
        pytest.param(1, 1, 0.001, 1.0, id="one vote, in favour"),
    ],
)
def test_edges(k, n, low, high):
    assert float(lower(k, n, 0.001)) == pytest.approx(low, rel=1e-13)
    assert float(upper(k, n, 0.001)) == pytest.approx(high, rel=1e-13)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("level", LEVELS)
def test_bounds_are_quantiles_of_the_beta_distribution(n, level):
    k = np.unique(np.linspace(0, n, 57).astype(int))
    inner = k[k > 0]
    np.testing.assert_allclose(lower(inner, n, level), beta.ppf(level, inner, n - inner + 1), rtol=1e-9)
    inner = k[k < n]
    np.testing.assert_allclose(upper(inner, n, level), beta.isf(level, inner + 1, n - inner), rtol=1e-9)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("level", LEVELS)
def test_bounds_solve_the_binomial_equation_that_defines_them(n, level):
    """L(k) is the p under which k votes or more have probability `level`; U(k) that for k votes or fewer."""
    k = np.unique(np.linspace(0, n, 57).astype(int))
    np.testing.assert_allclose(binom.sf(k[1:] - 1, n, lower(k[1:], n, level)), level, rtol=1e-7)
    np.testing.assert_allclose(binom.cdf(k[:-1], n, upper(k[:-1], n, level)), level, rtol=1e-7)


@pytest.mark.parametrize("n", [1, 5, 40, 200])
@pytest.mark.parametrize("level", [0.3, 0.05, 0.001])
def test_bounds_fail_no_more_often_than_their_level(n, level):
    """The exact probability of failure, summed over all counts, on a grid of true probabilities.

    The grid contains values just inside each bound, where the probability of failure is largest.
    """
    k = np.arange(n + 1)
    edges = lower(k, n, level)
    p = np.concatenate([np.linspace(0, 1, 401), edges * (1 - 1e-9), 1 - edges * (1 - 1e-9)])[:, None]
    weight = binom.pmf(k, n, p)
    too_high = (weight * (lower(k, n, level) > p)).sum(axis=1)
    too_low = (weight * (upper(k, n, level) < p)).sum(axis=1)
    slack = 1 + 1e-9  # of the summation
    assert too_high.max() <= level * slack
    assert too_low.max() <= level * slack
    # and they are not needlessly wide: at the edges the failure is all that the level allows
    assert too_high.max() >= level * (1 - 1e-6)
    assert too_low.max() >= level * (1 - 1e-6)


@pytest.mark.parametrize("n", SIZES)
def test_bounds_enclose_the_share_of_the_votes(n):
    k = np.arange(n + 1)
    for level in LEVELS[1:]:  # at level 1/2 a bound is the median, on either side of the share
        assert (lower(k, n, level) <= k / n).all()
        assert (upper(k, n, level) >= k / n).all()


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("level", LEVELS)
def test_more_votes_for_it_raise_both_bounds(n, level):
    k = np.arange(n + 1)
    assert (np.diff(lower(k, n, level)) > 0).all()
    assert (np.diff(upper(k, n, level)) > 0).all()


@pytest.mark.parametrize("n", SIZES)
def test_a_larger_level_tightens_both_bounds(n):
    k = np.unique(np.linspace(0, n, 57).astype(int))[:, None]
    levels = np.array(sorted(LEVELS))
    assert (np.diff(lower(k, n, levels), axis=1) >= 0).all()
    assert (np.diff(upper(k, n, levels), axis=1) <= 0).all()


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("level", LEVELS)
def test_upper_bound_of_the_votes_against_is_the_mirror_of_the_lower_bound(n, level):
    k = np.arange(n + 1)
    np.testing.assert_allclose(upper(n - k, n, level), 1 - lower(k, n, level), rtol=1e-9, atol=1e-15)


def test_counts_sizes_and_levels_broadcast():
    k, n, level = np.array([[3], [5]]), np.array([10, 20, 0]), np.array([0.1, 0.01, 0.1])
    k = np.minimum(k, n)
    for bound in (lower, upper):
        table = bound(k, n, level)
        assert table.shape == (2, 3)
        assert table[1, 1] == bound(5, 20, 0.01)
    assert (lower(k, n, level)[:, 2] == 0).all()
    assert (upper(k, n, level)[:, 2] == 1).all()
