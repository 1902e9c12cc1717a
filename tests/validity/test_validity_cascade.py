"""Rule cascade errs no more often than alpha on stages that disagree, pass and have thresholds; its twins do.

Event: a certificate names a class with a radius above the true one, or another class than the cascade.
Probability: at most alpha = 0.1 over the noise, whatever the dependence between stages: apart, the same noise, its
negative, and noise of an adversary under which never two bounds of a clause fail together (staged.py).
False alarm: an honest rule is rejected with probability at most 1e-6 per case (see verdict.py); seeds are fixed.
"""

from dataclasses import replace

import numpy as np
import pytest
from half_spaces import OTHER, Steps, Y, always
from scipy.special import ndtri
from scipy.stats import binom
from staged import (
    COUPLINGS,
    FIXED,
    PASS,
    Staged,
    blocked,
    coin_toss,
    disagreeing,
    failed_rows,
    failing,
    nobody,
    own_boundaries,
    pair_boundary,
    shipped,
)
from staged_runs import carried_out, form_of, two_confidences
from staged_sabotage import (
    at_levels,
    below_one_half,
    best_of,
    class_chosen_again,
    class_of_the_stages_asked,
    honest,
    passes_left_out,
)
from verdict import ALPHA, TRIALS, judge

from dualrs.schemes import CascadeVotes, rule
from dualrs.votes import SamplingPlan

TWO, THREE = shipped(ALPHA, 2), shipped(ALPHA, 3)
HALF, HALVES = (0.5, 0.5), (0.5, 0.5, 0.5)

PROBLEMS = {
    "both stages stop answering": own_boundaries(TWO, HALF),
    "both stages stop answering, the last by majority": own_boundaries(TWO, (0.5, None)),
    "three stages stop answering": own_boundaries(THREE, HALVES),
    "three stages stop answering, other thresholds and no pass": own_boundaries(THREE, (0.7, 0.6, 0.5), rest=OTHER),
    "three stages stop answering, the last by majority": own_boundaries(THREE, (0.6, 0.55, None)),
    "the first of two is taken by another class": blocked(TWO, HALF, 0),
    "the first of two is taken, the last by majority": blocked(TWO, (0.6, None), 0),
    "the first of three is taken by another class": blocked(THREE, (0.5, 0.6, None), 0),
    "the second of three is taken where the first stops": blocked(THREE, (0.5, 0.6, 0.5), 1),
    "the second of three is taken, the last by majority": blocked(THREE, (0.6, 0.5, None), 1),
    "three classes at the last of two stages": pair_boundary(TWO),
    "three classes at the last of three stages": pair_boundary(THREE),
    "stages that disagree": disagreeing(THREE, (0.6, 0.5, 0.5)),
    "a coin toss, and another class below": coin_toss(HALF),
    "a coin toss, and the same class below": coin_toss(HALF, below=Y),
    "a coin toss at another threshold": coin_toss((0.6, 0.5, None)),
    "no stage is sure": nobody((0.5, 0.6, 0.5), THREE),
}
CASES = [
    pytest.param(case, coupling, id=f"{case}, {coupling}")
    for case, problem in PROBLEMS.items()
    for coupling in (COUPLINGS if problem.roles else COUPLINGS[:3])
]


def seed(case):
    return 500 + list(PROBLEMS).index(case)


@pytest.mark.parametrize(("case", "coupling"), CASES)
def test_cascade_errs_no_more_often_than_alpha(case, coupling):
    """P[claimed radius > true radius, or wrong class] <= 0.1; false alarm 1e-6."""
    problem = PROBLEMS[case]
    verdict = judge(problem.certify(problem.draw(TRIALS, coupling, seed(case)), ALPHA), problem)
    assert not verdict.rejected, verdict


@pytest.mark.parametrize(
    ("case", "coupling"),
    [
        ("both stages stop answering", "antithetic"),
        ("both stages stop answering", "disjoint"),
        ("three stages stop answering", "disjoint"),
        ("three stages stop answering, other thresholds and no pass", "disjoint"),
        ("the first of two is taken by another class", "independent"),
        ("the second of three is taken where the first stops", "disjoint"),
        ("the second of three is taken, the last by majority", "antithetic"),
    ],
)
def test_problems_are_sharp(case, coupling):
    """The rule does err, about as often as its levels allow there."""
    problem = PROBLEMS[case]
    verdict = judge(problem.certify(problem.draw(TRIALS, coupling, seed(case)), ALPHA), problem)
    assert 0.85 * ALPHA < verdict.rate < 1.10 * ALPHA, verdict


def test_votes_of_the_adversary_are_those_of_each_stage_by_itself():
    """Never two bounds of the clause fail in one trial; each fails as often as by itself. False alarm below 1e-5."""
    problem = PROBLEMS["the second of three is taken where the first stops"]
    votes = problem.draw(TRIALS, "disjoint", 1)
    failed = [failed_rows(v, r) for v, r in zip(votes, problem.roles, strict=True) if r is not None]
    assert not np.logical_and(*failed).any()
    for stage, role, rows in zip(votes, problem.roles, failed, strict=False):
        p = failing(role, problem.plan)
        assert 1e-6 < binom.cdf(rows.sum(), TRIALS, p) < 1 - 1e-6
        share = role.probability  # of Y at one, of the other class at the other: all votes together are binomial
        count = stage.estimation[:, Y if role.kind == "lower" else OTHER].sum()
        assert 1e-6 < binom.cdf(count, TRIALS * problem.plan.n, share) < 1 - 1e-6


# Sampled as the library samples, with n fixed: a stage only where it can help


SILENT = ("three classes at the last of three stages",)  # where all pass until the last stage, which everything needs
LAZY = [case for case, problem in PROBLEMS.items() if len(problem.sigmas) == 3] + ["both stages stop answering"]


@pytest.mark.parametrize("case", LAZY)
def test_asking_only_where_it_helps_claims_what_all_votes_claim(case):
    """Trial by trial: so what is shown of all votes, on many more trials, holds of a lazy run."""
    problem = PROBLEMS[case]
    votes = problem.draw(60, "shared", seed(case))
    found, taken = carried_out(problem, votes, ALPHA)
    everything = problem.certify(votes, ALPHA)
    np.testing.assert_array_equal(found.prediction, everything.prediction)
    np.testing.assert_array_equal(found.radius, everything.radius)
    everywhere = 60 * len(problem.sigmas) * (problem.plan.n0 + problem.plan.n)
    assert taken < everywhere or (case in SILENT and taken == everywhere)


def test_stages_left_out_by_an_adversary_claim_no_more():
    """Whoever leaves stages out, and knows the truth: false with some of them only if false with all."""
    problem = PROBLEMS["three stages stop answering"]
    votes = problem.draw(2000, "antithetic", 2)
    false = judge_rows(problem.certify(votes, ALPHA), problem)
    for kept in np.ndindex(2, 2, 2):
        some = [silenced(v, not k) for v, k in zip(votes, kept, strict=True)]
        assert not (judge_rows(problem.certify(some, ALPHA), problem) & ~false).any()
    assert false.any()


def silenced(votes, gone):
    return replace(votes, estimation=votes.estimation * (not gone))


def judge_rows(certificates, problem):
    """Which trials claim falsely."""
    wrong = (certificates.prediction != problem.label) | (certificates.radius > problem.radius)
    return ~certificates.abstained & wrong


# What must be caught


def raised(stages, lower=1.0, upper=None):
    """The levels of the rule, the lower ones times a factor, the upper ones perhaps all the same."""
    return [(lower * a, b if upper is None else upper) for a, b in shipped(ALPHA, stages)]


def torn_with_passes():
    """Most of the votes that do not pass are for Y, and less than half of all: the first stage says nothing."""
    first = Steps((float(ndtri(0.45)), float(ndtri(0.60))), (Y, OTHER, PASS))
    return Staged((first, always(OTHER)), (1.0, 0.5), HALF, float(-ndtri(0.45)), (), SamplingPlan(10, FIXED.n))


# twin: (the mistake, the levels or the problem that it is caught on, the noise)
TWINS = {
    "lower bounds at 1.5 times their level, two stages": (
        at_levels(raised(2, 1.5)),
        own_boundaries(raised(2, 1.5), HALF),
        "antithetic",
    ),
    "lower bounds at 1.5 times their level, three stages": (
        at_levels(raised(3, 1.5)),
        own_boundaries(raised(3, 1.5), HALVES),
        "disjoint",
    ),
    "everything at alpha, two stages": (
        at_levels([(ALPHA, ALPHA)] * 2),
        own_boundaries([(ALPHA, ALPHA)] * 2, HALF),
        "independent",
    ),
    "everything at alpha, three stages": (
        at_levels([(ALPHA, ALPHA)] * 3),
        own_boundaries([(ALPHA, ALPHA)] * 3, HALVES),
        "independent",
    ),
    "everything at alpha, no stage is sure": (
        at_levels([(ALPHA, ALPHA)] * 3),
        nobody(HALVES, [(ALPHA, ALPHA)] * 3),
        "disjoint",
    ),
    "upper bounds at alpha without the sum": (
        at_levels(raised(3, upper=ALPHA)),
        blocked(raised(3, upper=ALPHA), (0.5, 0.6, 0.5), 1),
        "disjoint",
    ),
    "upper bounds at alpha without the sum, the last by majority": (
        at_levels(raised(3, upper=ALPHA)),
        blocked(raised(3, upper=ALPHA), (0.6, 0.5, None), 1),
        "antithetic",
    ),
    "the class chosen again by the estimation votes": (class_chosen_again, coin_toss(HALF, below=Y), "independent"),
    "the class of whichever stages were asked": (class_of_the_stages_asked, coin_toss(HALF, n0=100), "independent"),
    "passes left out of n": (passes_left_out, torn_with_passes(), "independent"),
}


@pytest.mark.parametrize("name", TWINS)
def test_sabotaged_twin_is_caught(name):
    """The same verdict accepts the rule and rejects its twin on the same votes."""
    sabotaged, problem, coupling = TWINS[name]
    votes = problem.draw(TRIALS, coupling, 600 + list(TWINS).index(name))
    accepted = judge(honest(votes, problem.thresholds), problem)
    caught = judge(sabotaged(votes, problem.thresholds), problem)
    assert not accepted.rejected, accepted
    assert caught.rejected, caught


def test_threshold_below_one_half_is_caught():
    """Two classes may exceed it, and the certificate of the smaller is false; the same votes at 1/2 are honest."""
    stages = (Steps((float(ndtri(0.49)),), (Y, OTHER)), always(OTHER))
    plan = SamplingPlan(10, FIXED.n)
    at_half = Staged(stages, (1.0, 0.5), HALF, np.inf, (), plan)  # OTHER at the first stage or at the second
    low = Staged(stages, (1.0, 0.5), (0.3, 0.3), float(-ndtri(0.49)), (), plan)
    assert at_half.label == low.label == OTHER
    votes = low.draw(TRIALS, "independent", 620)
    accepted, caught = judge(honest(votes, HALF), at_half), judge(below_one_half(0.3)(votes, HALF), low)
    assert not accepted.rejected, accepted
    assert caught.rejected, caught


def test_confidences_chosen_on_the_input_itself_are_caught():
    """Each confidence is honest on these votes; the better of the two, input by input, is not."""
    forms = ("cascade@0.5,0.5", "cascade-0.5,0.5@0.5,0.5")
    problem = two_confidences(TWO[0][1], TWO[1][0])
    votes = problem.draw(TRIALS, 621)
    for name in forms:
        verdict = judge(rule(name).certify(CascadeVotes(votes), ALPHA), problem)
        assert not verdict.rejected, verdict
    caught = judge(best_of(*forms)(votes, HALF), problem)
    assert caught.rejected, caught


@pytest.mark.parametrize("passing", [0, 1], ids=["none pass", "some pass"])
def test_true_radius_is_the_same_at_both_confidences(passing):
    problem = two_confidences(TWO[0][1], TWO[1][0])
    t = np.linspace(0, problem.radius, 2001)[:-1]
    assert (problem.predictor(np.concatenate([t, -t]), passing) == Y).all()
    beyond = np.array([problem.radius, -problem.radius]) * (1 + 1e-9)
    assert (problem.predictor(beyond, passing) != Y).any()


KNOWN = PROBLEMS | {name: problem for name, (_, problem, _) in TWINS.items()}


@pytest.mark.parametrize("case", KNOWN)
def test_true_radius_is_where_the_cascade_first_changes_its_answer(case):
    problem = KNOWN[case]
    if "no stage is sure" in case:
        assert problem.label < 0
        return
    assert problem.label == (OTHER if case == "passes left out of n" else Y)
    t = np.linspace(0, problem.radius, 2001)[:-1]
    assert (problem.predictor(np.concatenate([t, -t])) == problem.label).all()
    beyond = np.array([problem.radius, -problem.radius]) * (1 + 1e-9)
    assert (problem.predictor(beyond) != problem.label).any()


def test_twin_without_sabotage_is_the_rule_itself():
    problem = PROBLEMS["the second of three is taken where the first stops"]
    votes = problem.draw(TRIALS, "independent", 99)
    found, expected = at_levels(THREE)(votes, problem.thresholds), honest(votes, problem.thresholds)
    np.testing.assert_array_equal(found.radius, expected.radius)
    np.testing.assert_array_equal(found.prediction, expected.prediction)


def test_name_of_a_problem_is_its_rule():
    for problem in PROBLEMS.values():
        assert rule(form_of(problem).name).form == form_of(problem)
