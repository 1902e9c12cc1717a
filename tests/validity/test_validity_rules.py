"""Every rule errs no more often than alpha, on problems whose true radius is known and which leave it no slack.

Event: a certificate names a class with a radius above the true one, or names a class other than G's.
Probability: at most alpha = 0.1 over the noise, whatever the dependence between the stages: own noise for
each model, the same noise for all, or the negative of the router's noise for the experts.
False alarm: an honest rule is rejected with probability at most 1e-6 per case (see verdict.py); seeds are fixed.
"""

from types import SimpleNamespace

import numpy as np
import pytest
from half_spaces import (
    COUPLINGS,
    N,
    Y,
    class_boundary,
    class_coin_toss,
    edge,
    equal_boundaries,
    friendly_coin_toss,
    hostile_coin_toss,
    no_majority,
    rival_boundary,
    routing_boundary,
    three_tied_candidates,
    three_tied_classes,
    three_way_tie,
)
from scipy.special import ndtri
from verdict import ALPHA, TRIALS, judge

from dualrs.schemes import DualVotes, rule
from dualrs.votes import SamplingPlan, Votes

# The level that a rule gives to each bound: a problem is placed on the edge of the bound which it tests.
CHOSEN = {"cohen": 1, "paper": 1 / 2, "paper-1:4": 1 / 5, "nosplit": 1, "fusion": 1, "fusion-pair": 1 / 2}
ROUTER_OF_TWO = {"paper": 1 / 2, "paper-1:4": 4 / 5, "nosplit": 1, "fusion": 1 / 2, "fusion-pair": 1 / 2}
ROUTER_OF_THREE = {"paper": 1 / 2, "paper-1:4": 4 / 5, "nosplit": 1, "fusion": 1 / 4, "fusion-pair": 1 / 4}
RIVAL = {"paper": 1 / 2, "paper-1:4": 1 / 2, "nosplit": 1 / 2, "fusion": 1 / 2, "fusion-pair": 1 / 4}
TWO_STAGE = tuple(ROUTER_OF_TWO)

PROBLEMS = {
    "the class changes first": lambda name: class_boundary(CHOSEN[name] * ALPHA),
    "the routing changes first between two": lambda name: routing_boundary(ROUTER_OF_TWO[name] * ALPHA),
    "the routing changes first among three": lambda name: routing_boundary(ROUTER_OF_THREE[name] * ALPHA, 3),
    "class and routing change together": lambda name: equal_boundaries(min(CHOSEN[name], ROUTER_OF_TWO[name]) * ALPHA),
    "the routing and its only rival change together": lambda name: rival_boundary(
        ROUTER_OF_TWO[name] * ALPHA, RIVAL[name] * ALPHA, 2
    ),
    "the routing and one rival of two change together": lambda name: rival_boundary(
        ROUTER_OF_THREE[name] * ALPHA, RIVAL[name] * ALPHA, 3
    ),
    "the router has no majority": lambda name: no_majority(RIVAL[name] * ALPHA),
    "the router has no majority and a three-way tie ahead": lambda name: three_way_tie(ALPHA / 4),
    "the router tosses a coin between friends": lambda name: friendly_coin_toss(RIVAL[name] * ALPHA),
    "the router tosses a coin between foes": lambda name: hostile_coin_toss(),
    "the class is a coin toss": lambda name: class_coin_toss(),
    "the class is a tie of three": lambda name: three_tied_classes(),
    "the router is at a tie of three": lambda name: three_tied_candidates(),
}


def seed(case):
    return list(PROBLEMS).index(case)


UNDECIDED_ROUTERS = (
    "the router has no majority",
    "the router has no majority and a three-way tie ahead",
    "the router tosses a coin between friends",
)


@pytest.mark.parametrize("name", TWO_STAGE)
@pytest.mark.parametrize("coupling", COUPLINGS)
@pytest.mark.parametrize("case", PROBLEMS)
def test_two_stage_rule_errs_no_more_often_than_alpha(case, coupling, name):
    """P[claimed radius > true radius, or wrong class] <= 0.1; false alarm 1e-6."""
    problem = PROBLEMS[case](name)
    verdict = judge(rule(name).certify(problem.draw(TRIALS, coupling, seed(case)), ALPHA), problem)
    assert not verdict.rejected, verdict


@pytest.mark.parametrize("case", ["the class changes first", "the class is a coin toss", "the class is a tie of three"])
def test_cohen_errs_no_more_often_than_alpha(case):
    """P[claimed radius > true radius, or wrong class] <= 0.1 for one expert alone; false alarm 1e-6."""
    problem = PROBLEMS[case]("cohen")
    verdict = judge(rule("cohen").certify(problem.draw(TRIALS, "independent", seed(case)).experts[0], ALPHA), problem)
    assert not verdict.rejected, verdict


@pytest.mark.parametrize(
    ("case", "coupling", "name", "share"),
    [
        ("the class changes first", "independent", "nosplit", 1),
        ("the class changes first", "independent", "fusion", 1),
        ("the class changes first", "shared", "paper", 1 / 2),
        ("the routing changes first between two", "independent", "nosplit", 1),
        ("the routing changes first between two", "independent", "paper-1:4", 4 / 5),
        ("class and routing change together", "shared", "nosplit", 1),
        ("the routing and its only rival change together", "antithetic", "fusion", 1),
        ("the routing and one rival of two change together", "antithetic", "fusion", 3 / 4),
        ("the router tosses a coin between foes", "independent", "nosplit", 1),
        ("the class is a coin toss", "independent", "fusion", 1),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{value:.0%} of alpha",
)
def test_problems_are_sharp(case, coupling, name, share):
    """The rule does err, about as often as its levels allow there: a problem that forgives would test nothing."""
    problem = PROBLEMS[case](name)
    verdict = judge(rule(name).certify(problem.draw(TRIALS, coupling, seed(case)), ALPHA), problem)
    assert 0.85 * share * ALPHA < verdict.rate < 1.10 * share * ALPHA, verdict


@pytest.mark.parametrize("coupling", COUPLINGS)
@pytest.mark.parametrize("case", UNDECIDED_ROUTERS)
def test_fusion_claims_much_where_the_router_alone_would_abstain(case, coupling):
    """What is judged above is not empty: most inputs are certified by fusion, and few or none by the others."""
    votes = PROBLEMS[case]("fusion").draw(TRIALS, coupling, seed(case))
    claimed = {name: (~rule(name).certify(votes, ALPHA).abstained).mean() for name in TWO_STAGE}
    assert claimed["fusion"] > 0.8
    assert max(claimed["paper"], claimed["nosplit"]) < 0.15


@pytest.mark.parametrize("name", TWO_STAGE)
@pytest.mark.parametrize("case", PROBLEMS)
def test_true_radius_in_closed_form_is_where_the_search_finds_the_first_change(case, name):
    problem = PROBLEMS[case](name)
    assert problem.label == Y
    assert problem.searched_radius() == pytest.approx(problem.radius, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", TWO_STAGE)
@pytest.mark.parametrize("angle", [0, 60, 90, 180], ids=lambda a: f"normals at {a} degrees")
def test_rules_hold_in_space_where_router_and_expert_have_normals_of_their_own(name, angle):
    """Half-spaces in R^3 read the same noisy points; G differs beyond either plane, so the nearer one decides.

    P[claimed radius > true radius, or wrong class] <= 0.1; false alarm 1e-6.
    """
    trials, plan = 4000, SamplingPlan(n0=20, n=N)
    turn = np.deg2rad(angle)
    router_normal, expert_normal = np.array([1.0, 0, 0]), np.array([np.cos(turn), np.sin(turn), 0])
    router_cut = float(ndtri(edge(190, ROUTER_OF_TWO[name] * ALPHA)))
    expert_cut = float(ndtri(edge(190, CHOSEN[name] * ALPHA)))
    rng = np.random.default_rng(angle)
    parts = []
    for size in (plan.n0, plan.n):
        points = rng.standard_normal((trials, size, 3))
        routed = np.count_nonzero(points @ router_normal < router_cut, axis=1)
        for_y = np.count_nonzero(points @ expert_normal < expert_cut, axis=1)
        none, every = np.zeros_like(routed), np.full_like(routed, size)
        answers = ([routed, size - routed], [none, for_y, size - for_y], [none, none, every])
        parts.append([np.stack(counts, axis=1) for counts in answers])
    router, *experts = (Votes(1.0, selection, estimation, plan) for selection, estimation in zip(*parts, strict=True))
    truth = SimpleNamespace(label=Y, radius=min(router_cut, expert_cut))
    verdict = judge(rule(name).certify(DualVotes(router, tuple(experts)), ALPHA), truth)
    assert not verdict.rejected, verdict
