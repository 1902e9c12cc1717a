"""How alpha is spent: what each rule's levels add up to, and the fewest votes that a level can work with."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualrs.errors import BadSetting, DualrsError
from dualrs.theory.budget import ErrorBudget, pair_level, smallest_n

alphas = st.floats(min_value=1e-9, max_value=0.999)
shares = st.floats(min_value=1e-3, max_value=1e3)


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 1.5, math.inf, math.nan])
def test_alpha_outside_the_open_unit_interval_is_refused(alpha):
    with pytest.raises(BadSetting, match="alpha must lie strictly between 0 and 1"):
        ErrorBudget(alpha)


@given(alphas, shares, shares)
def test_split_shares_add_up_to_alpha_in_the_given_ratio(alpha, classifier, router):
    levels = ErrorBudget(alpha).split(classifier, router)
    assert levels.router + levels.classifier == pytest.approx(alpha, rel=1e-12)
    assert levels.classifier / levels.router == pytest.approx(classifier / router, rel=1e-9)


def test_even_split_is_one_half_each():
    assert ErrorBudget(0.001).split(1, 1) == (0.0005, 0.0005)


def test_split_names_the_classifier_first_and_the_router_second():
    levels = ErrorBudget(0.001).split(1, 4)
    assert levels.classifier == pytest.approx(0.0002)
    assert levels.router == pytest.approx(0.0008)


def test_split_one_to_nothing_leaves_all_to_the_classifier():
    assert ErrorBudget(0.001).split(1, 0) == (0, 0.001)


@pytest.mark.parametrize(
    "split",
    [
        pytest.param((0, 0), id="nothing to nothing"),
        pytest.param((-1, 2), id="a negative share of the class"),
        pytest.param((2, -1), id="a negative share of the router"),
        pytest.param((math.inf, 1), id="an infinite share"),
        pytest.param((math.nan, 1), id="a share that is no number"),
    ],
)
def test_impossible_split_is_refused(split):
    with pytest.raises(BadSetting, match="shares of a split"):
        ErrorBudget(0.1).split(*split)


def test_settings_are_refused_as_errors_of_the_package_and_as_value_errors():
    assert issubclass(BadSetting, DualrsError)
    assert issubclass(BadSetting, ValueError)


@given(alphas)
def test_nosplit_gives_both_stages_all_of_alpha(alpha):
    assert ErrorBudget(alpha).nosplit() == (alpha, alpha)


@given(alphas, st.integers(min_value=3, max_value=100))
def test_fusion_spends_alpha_on_each_bottleneck_whatever_the_number_of_candidates(alpha, candidates):
    """The bottleneck is r_A, or one j with r_j, L_A and U_j: each of the two cases may use alpha, and does."""
    levels = ErrorBudget(alpha).fusion(candidates)
    assert levels.chosen == alpha
    assert levels.other + levels.router_lower + levels.router_upper == pytest.approx(alpha, rel=1e-12)
    assert levels == (alpha, alpha / 2, alpha / 4, alpha / 4)


@given(alphas)
def test_fusion_of_two_candidates_needs_no_upper_bound_and_gives_its_share_to_the_lower(alpha):
    levels = ErrorBudget(alpha).fusion(2)
    assert levels.chosen == alpha
    assert levels.other + levels.router_lower == pytest.approx(alpha, rel=1e-12)
    assert levels.router_lower == alpha / 2


@pytest.mark.parametrize(
    ("level", "votes"),
    [
        pytest.param(0.001, 10, id="the usual alpha of 0.001 needs 10"),
        pytest.param(0.0005, 11, id="half of it needs 11"),
        pytest.param(0.00025, 12, id="a quarter of it needs 12"),
        pytest.param(0.1, 4, id="0.1 needs 4"),
        pytest.param(0.5, 2, id="one half needs 2, as one vote bounds by exactly one half"),
        pytest.param(0.51, 1, id="just above one half needs 1"),
        pytest.param(0.999, 1, id="nearly one needs 1"),
        pytest.param(1e-300, 997, id="a level near the end of the floats"),
    ],
)
def test_smallest_number_of_votes(level, votes):
    assert smallest_n(level) == votes


@pytest.mark.parametrize("power", range(1, 1000, 7))
def test_smallest_number_of_votes_at_exact_powers_of_one_half(power):
    """`power` unanimous votes bound by exactly 1/2, which certifies nothing: one more is needed."""
    assert smallest_n(0.5**power) == power + 1


@given(st.floats(min_value=1e-12, max_value=0.999))
def test_smallest_number_of_votes_is_the_first_that_passes_one_half(level):
    votes = smallest_n(level)
    assert level ** (1 / votes) > 0.5
    assert votes == 1 or level ** (1 / (votes - 1)) <= 0.5


@given(alphas, st.integers(min_value=1, max_value=20))
def test_cascade_spends_alpha_on_each_clause(alpha, stages):
    """All lower bounds together, or those before a stage and its upper bound; which is never below the lower one."""
    levels = ErrorBudget(alpha).cascade(stages)
    assert len(levels) == stages
    lowers = [float(level.lower) for level in levels]
    assert sum(lowers) == pytest.approx(alpha, rel=1e-12)
    for k, level in enumerate(levels):
        assert sum(lowers[:k]) + float(level.upper) == pytest.approx(alpha, rel=1e-12)
        assert level.upper >= level.lower


def test_cascade_levels_of_three_stages():
    levels = [(float(level.lower), float(level.upper)) for level in ErrorBudget(0.3).cascade(3)]
    assert levels == [pytest.approx((0.1, 0.3)), pytest.approx((0.1, 0.2)), pytest.approx((0.1, 0.1))]


@given(alphas)
def test_both_bounds_of_a_pair_have_the_level_together(alpha):
    for level in ErrorBudget(alpha).cascade(3):
        assert 2 * float(pair_level(level.lower)) == float(level.lower)
