"""Every rule errs no more often than alpha on votes gathered under looks, however sampling was made to stop.

Event: a certificate names a class with a radius above the true one, or names a class other than G's.
Probability: at most alpha = 0.1 over the noise, with noise shared between the router and the expert at its sigma, or
not, or opposed. Votes go to the last look of every stream. That is the worst stop: a bound is the best over the looks
that were reached, so whoever stops earlier, even one who knows the truth and stops at the first false claim, claims
falsely in these trials only (tests/property/test_looks_cost.py).
False alarm: an honest rule is rejected with probability at most 1e-6 per case (see verdict.py); seeds are fixed.
"""

import numpy as np
import pytest
from adaptive_trials import (
    COUPLINGS,
    LOOKS,
    class_boundary,
    class_coin_toss,
    cut_at,
    draw,
    each,
    edge,
    equal_boundaries,
    failure,
    friendly_coin_toss,
    hostile_coin_toss,
    no_majority,
    rival_boundary,
    routing_boundary,
    sharp,
    stopped_at_random,
    three_way_tie,
)
from half_spaces import Y
from verdict import ALPHA, judge

from dualrs.schemes import rule
from dualrs.theory.looks import shares

# The share of alpha that a rule gives to each bound: a problem is placed on the edge of the bound which it tests.
CHOSEN = {"paper": 1 / 2, "nosplit": 1, "fusion": 1, "fusion-pair": 1 / 2}
ROUTER_OF_TWO = {"paper": 1 / 2, "nosplit": 1, "fusion": 1 / 2, "fusion-pair": 1 / 2}
ROUTER_OF_THREE = {"paper": 1 / 2, "nosplit": 1, "fusion": 1 / 4, "fusion-pair": 1 / 4}
RIVAL = {"paper": 1 / 2, "nosplit": 1 / 2, "fusion": 1 / 2, "fusion-pair": 1 / 4}
TWO_STAGE = tuple(CHOSEN)

PROBLEMS = {
    "the class changes first": lambda name: class_boundary(edge(CHOSEN[name] * ALPHA)),
    "the routing changes first between two": lambda name: routing_boundary(edge(ROUTER_OF_TWO[name] * ALPHA)),
    "the routing changes first among three": lambda name: routing_boundary(edge(ROUTER_OF_THREE[name] * ALPHA), 3),
    "class and routing change together": lambda name: equal_boundaries(edge(ROUTER_OF_TWO[name] * ALPHA)),
    "the routing and its only rival change together": lambda name: rival_boundary(edge(RIVAL[name] * ALPHA)),
    "the routing and one rival of two change together": lambda name: rival_boundary(edge(RIVAL[name] * ALPHA), 3),
    "the router has no majority": lambda name: no_majority(edge(RIVAL[name] * ALPHA, 0.6, 0.66)),
    "the router has no majority and a three-way tie ahead": lambda name: three_way_tie(edge(ALPHA / 4, 0.78, 0.85)),
    "the router tosses a coin between friends": lambda name: friendly_coin_toss(edge(RIVAL[name] * ALPHA)),
    "the router tosses a coin between foes": lambda name: hostile_coin_toss(),
    "the class is a coin toss": lambda name: class_coin_toss(),
}
# Where nothing votes at the router's sigma but the router, or fusion alone has something to say, the rest is idle.
ALONE = (
    "the routing changes first between two",
    "the routing changes first among three",
    "the router has no majority and a three-way tie ahead",
    "the router tosses a coin between foes",
)
FOR_FUSION = (
    "the routing and its only rival change together",
    "the routing and one rival of two change together",
    "the router has no majority",
    "the router has no majority and a three-way tie ahead",
    "the router tosses a coin between friends",
)
CASES = [
    pytest.param(case, coupling, name, id=f"{name}, {case}, {coupling}")
    for case in PROBLEMS
    for coupling in (COUPLINGS[:1] if case in ALONE else COUPLINGS)
    for name in (TWO_STAGE[2:] if case in FOR_FUSION else TWO_STAGE)
]


def seed(case):
    return 200 + list(PROBLEMS).index(case)


@pytest.mark.parametrize(("case", "coupling", "name"), CASES)
def test_two_stage_rule_errs_no_more_often_than_alpha(case, coupling, name):
    """P[claimed radius > true radius, or wrong class, at any look] <= 0.1; false alarm 1e-6."""
    problem = PROBLEMS[case](name)
    verdict = judge(rule(name).certify(draw(problem, coupling, seed(case)), ALPHA), problem)
    assert not verdict.rejected, verdict


@pytest.mark.parametrize("problem", [class_boundary(edge(ALPHA)), class_coin_toss()], ids=["on the edge", "coin toss"])
def test_cohen_errs_no_more_often_than_alpha(problem):
    """P[claimed radius > true radius, or wrong class, at any look] <= 0.1 for one expert; false alarm 1e-6."""
    verdict = judge(rule("cohen").certify(draw(problem, "apart", 220).experts[0], ALPHA), problem)
    assert not verdict.rejected, verdict
    assert verdict.rate > 0.06


@pytest.mark.parametrize(
    ("case", "coupling", "name"),
    [
        ("the class changes first", "shared", "nosplit"),
        ("the class changes first", "shared", "fusion"),
        ("the routing changes first between two", "apart", "nosplit"),
        ("class and routing change together", "shared", "nosplit"),
        ("the routing and its only rival change together", "antithetic", "fusion"),
    ],
)
def test_problems_are_sharp(case, coupling, name):
    """The rule errs about as often as its levels allow: as one bound at its edge, whose looks are not disjoint."""
    problem = PROBLEMS[case](name)
    verdict = judge(rule(name).certify(draw(problem, coupling, seed(case)), ALPHA), problem)
    assert verdict.rate > sharp(ALPHA), verdict
    assert not verdict.rejected, verdict


@pytest.mark.parametrize("level", [ALPHA, ALPHA / 2, ALPHA / 4])
def test_edge_is_where_the_looks_fail_together_nearly_as_often_as_their_level_allows(level):
    assert 0.8 * level < failure(edge(level), level * shares(LOOKS)) <= level


@pytest.mark.parametrize("name", TWO_STAGE)
@pytest.mark.parametrize("coupling", COUPLINGS[:2])
def test_stages_that_stop_at_random_err_no_more_often_than_alpha(name, coupling):
    """Each stream of each trial at a look of its own. P[false claim] <= 0.1; false alarm 1e-6."""
    case = "the class changes first"
    problem = PROBLEMS[case](name)
    votes = stopped_at_random(draw(problem, coupling, seed(case)), seed=1)
    verdict = judge(rule(name).certify(votes, ALPHA), problem)
    assert not verdict.rejected, verdict


@pytest.mark.parametrize("name", ["nosplit", "fusion"])
def test_who_stops_at_the_first_false_claim_gains_nothing_over_going_on(name):
    """The adversary who knows the truth: false at some stop if and only if false at the end, trial by trial."""
    case = "the routing and its only rival change together"
    problem = PROBLEMS[case](name)
    votes = draw(problem, "shared", seed(case), 2000)
    false = np.stack(
        [
            judge_rows(rule(name).certify(each(lambda v, k=k: cut_at(v, k), votes), ALPHA), problem)
            for k in range(1, len(LOOKS) + 1)
        ]
    )
    np.testing.assert_array_equal(false.any(axis=0), false[-1])
    assert false[0].any()


def judge_rows(certificates, problem):
    """Which trials claim falsely."""
    wrong = (certificates.prediction != problem.label) | (certificates.radius > problem.radius)
    return ~certificates.abstained & wrong


@pytest.mark.parametrize("case", PROBLEMS)
def test_true_radius_in_closed_form_is_where_the_search_finds_the_first_change(case):
    problem = PROBLEMS[case]("fusion")
    assert problem.label == Y
    assert problem.searched_radius() == pytest.approx(problem.radius, rel=1e-9, abs=1e-9)
