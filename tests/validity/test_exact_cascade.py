"""Rule cascade at small n, summed over all outcomes: it errs with probability at most alpha, and not much less.

Event: a radius above the one that the true probabilities allow, or any where they allow none.
Probability: at most alpha, under whatever dependence between the stages; computed, so that no test here has a false
alarm. The probabilities are those at which bounds fail as often as their levels allow.
"""

import numpy as np
import pytest
from exact_cascades import Rule, false_claims, law, placed_points, random_points, worst_error, worst_of

ALPHA = 0.1
LARGE = 0.6  # at which five votes can claim something
NEAR = 1e-6  # what the hair inside the bounds costs
FORMS = {
    "two stages, plain majority": (None, None),
    "two stages, thresholds of 1/2": (0.5, 0.5),
    "two stages, other thresholds": (0.7, 0.6),
    "three stages, plain majority": (None, None, None),
    "three stages, thresholds of 1/2": (0.5, 0.5, 0.5),
    "three stages, other thresholds": (0.8, 0.6, 0.7),
    "three stages, thresholds and plain majority": (0.6, 0.75, None),
}


def worst(rule, n, count=400, seed=0):
    """The largest error over many points, under the worst dependence at each."""
    tables, points = rule.tables(n), placed_points(rule, n, count, np.random.default_rng(seed))
    return max(worst_error(tables, point, rule.thresholds, n) for point in points)


@pytest.mark.parametrize("alpha", [0.02, ALPHA, 0.3])
@pytest.mark.parametrize("form", FORMS)
def test_cascade_errs_no_more_often_than_alpha(form, alpha):
    """And as often as that, but for little: neither sum of levels leaves anything."""
    rule = Rule(FORMS[form], alpha)
    found = max(worst(rule, 30), worst(rule, 45, seed=1))
    assert found <= alpha * (1 + NEAR)
    assert found >= 0.98 * alpha


@pytest.mark.parametrize("form", FORMS)
def test_three_kinds_of_outcomes_are_all_there_is(form):
    """The worst error from every combination of outcomes, each given to the rule as it is, is the one above."""
    rule = Rule(FORMS[form], LARGE)
    n = 8 if rule.stages == 2 else 5
    tables, errors = rule.tables(n), []
    for point in random_points(rule.stages, 12, np.random.default_rng(2)):
        false = false_claims(rule, point, n)
        laws = [law(n, p, q) for p, q in zip(point.p, point.q, strict=True)]
        errors.append(worst_of(false, laws))
        assert errors[-1] == pytest.approx(worst_error(tables, point, rule.thresholds, n), abs=1e-12)
        independent = false.astype(float)
        for p in reversed(laws):
            independent = independent @ p
        assert independent <= errors[-1] + 1e-12
        assert errors[-1] <= LARGE * (1 + NEAR)
    assert max(errors) > 0


def levels(alpha, stages, *, lower=1.0, upper=None):
    """The levels of the rule, the lower ones times a factor, the upper ones perhaps all the same."""
    share = alpha / stages
    return tuple((lower * share, share * (stages - k) if upper is None else upper) for k in range(stages))


@pytest.mark.parametrize(
    ("form", "changed", "least"),
    [
        ("two stages, thresholds of 1/2", levels(ALPHA, 2, lower=1.5), 1.45),
        ("three stages, thresholds of 1/2", levels(ALPHA, 3, lower=1.5), 1.45),
        ("three stages, plain majority", levels(ALPHA, 3, lower=1.5), 1.2),
        ("two stages, thresholds of 1/2", levels(ALPHA, 2, lower=2, upper=ALPHA), 1.95),
        ("three stages, thresholds of 1/2", levels(ALPHA, 3, lower=3, upper=ALPHA), 2.9),
        ("three stages, thresholds of 1/2", levels(ALPHA, 3, upper=ALPHA), 1.3),
        ("three stages, thresholds and plain majority", levels(ALPHA, 3, upper=ALPHA), 1.3),
        ("two stages, thresholds of 1/2", levels(ALPHA, 2, upper=1.1 * ALPHA), 1.09),
    ],
    ids=[
        "a times 1.5, two stages",
        "a times 1.5, three stages",
        "a times 1.5, plain majority",
        "everything at alpha, two stages",
        "everything at alpha, three stages",
        "b at alpha, three stages",
        "b at alpha, plain majority",
        "b at 1.1 alpha, two stages",
    ],
)
def test_other_levels_err_more_often(form, changed, least):
    """Each sabotaged twin exceeds alpha by what its levels add up to, but for little.

    The halves of a pair form often fail on one and the same event, which leaves a sixth of alpha or so in hand.
    """
    assert worst(Rule(FORMS[form], ALPHA, changed), 30) >= least * ALPHA


def test_unsabotaged_levels_are_those_of_the_rule():
    for stages in (2, 3):
        rule = Rule((0.5,) * stages, ALPHA)
        assert rule.spent == [pytest.approx(pair) for pair in levels(ALPHA, stages)]
