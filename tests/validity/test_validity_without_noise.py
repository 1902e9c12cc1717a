"""Rules err no more often than alpha where some networks see no noise and state their radius; twins are caught.

Event, probability and false alarm as in test_validity_rules.py.
"""

from dataclasses import replace

import numpy as np
import pytest
from half_spaces import COUPLINGS
from verdict import ALPHA, TRIALS, judge
from without_noise import (
    certified_router,
    certified_router_between_friends,
    certified_router_first,
    core_agrees_longer,
    core_gives_way,
    core_is_chosen,
    first_of_two_stages,
    router_leaves_for_the_core,
    second_stage_before_the_core,
    stage_before_the_core,
    stage_falls_silent,
    stages_stop_where_the_core_gives_way,
)

from dualrs.certificates import Certificates, Radii
from dualrs.certificates.cascade import cascade
from dualrs.certificates.fusion import fusion
from dualrs.certificates.two_stage import nosplit, paper
from dualrs.votes import Stated

RULES = {"paper": paper, "nosplit": nosplit, "fusion": fusion}


def honest(name):
    if name == "cascade":
        return lambda votes: Certificates.conclude(cascade([*votes.falling, *votes.last], ALPHA))
    return lambda votes: Certificates.conclude(RULES[name](votes, ALPHA))


# problem: (the rule, the problem on the edge of its level)
PROBLEMS = {
    "paper, the router leaves for the core": ("paper", router_leaves_for_the_core(ALPHA / 2)),
    "nosplit, the router leaves for the core": ("nosplit", router_leaves_for_the_core(ALPHA)),
    "fusion, the router leaves for the core": ("fusion", router_leaves_for_the_core(ALPHA / 2)),
    "fusion, the core agrees longer": ("fusion", core_agrees_longer(ALPHA)),
    "fusion, the core is chosen": ("fusion", core_is_chosen(ALPHA / 2)),
    "nosplit, the core gives way": ("nosplit", core_gives_way()),
    "fusion, the core gives way": ("fusion", core_gives_way()),
    "ace, the class changes first": ("nosplit", certified_router(ALPHA)),
    "ace, the router changes first": ("nosplit", certified_router_first()),
    "ace with fusion, the class changes first": ("fusion", certified_router(ALPHA)),
    "ace with fusion, between friends": ("fusion", certified_router_between_friends(ALPHA / 2)),
    "cascade, all stages give way together": ("cascade", stages_stop_where_the_core_gives_way(ALPHA / 2)),
    "cascade, the only stage before the core": ("cascade", stage_before_the_core(ALPHA)),
    "cascade, the first of two stages": ("cascade", first_of_two_stages(ALPHA)),
    "cascade, the second stage before the core": ("cascade", second_stage_before_the_core(ALPHA / 2)),
    "cascade, the stage falls silent": ("cascade", stage_falls_silent()),
}
every_problem = pytest.mark.parametrize("case", PROBLEMS)


@pytest.mark.parametrize("coupling", COUPLINGS)
@every_problem
def test_rule_errs_no_more_often_than_alpha(case, coupling):
    name, problem = PROBLEMS[case]
    verdict = judge(honest(name)(problem.draw(TRIALS, coupling, list(PROBLEMS).index(case))), problem)
    assert not verdict.rejected, verdict


SHARP = {
    "ace, the class changes first": 1,
    "nosplit, the router leaves for the core": 1,
    "fusion, the core is chosen": 1 / 2,
    "cascade, the only stage before the core": 1,
    "cascade, the first of two stages": 1,
    "cascade, the second stage before the core": 1 / 2,
}


@pytest.mark.parametrize("case", SHARP)
def test_problem_is_sharp(case):
    """A level that is spent in full is seen to be; so nothing more could be given away there."""
    name, problem = PROBLEMS[case]
    verdict = judge(honest(name)(problem.draw(TRIALS, "independent", 50)), problem)
    assert 0.85 * SHARP[case] * ALPHA < verdict.rate < 1.10 * SHARP[case] * ALPHA, verdict


@every_problem
def test_true_radius_is_where_the_predictor_first_changes(case):
    _, problem = PROBLEMS[case]
    t = np.linspace(0, problem.radius, 2001)[:-1]
    assert (problem.predictor(np.concatenate([t, -t])) == problem.label).all()
    beyond = np.array([problem.radius, -problem.radius]) * (1 + 1e-9)
    assert (problem.predictor(beyond) != problem.label).any()


# What must be caught


def of_its_own_class(name):
    """The radius within which the core keeps its own favourite class, and not y."""

    def twin(votes):
        if name == "cascade":
            votes = replace(votes, stated=favourite(votes.stated))
        else:
            experts = tuple(favourite(e) if isinstance(e, Stated) else e for e in votes.experts)
            votes = replace(votes, experts=experts)
        return honest(name)(votes)

    return twin


def favourite(stated):
    made = object.__new__(Stated)
    made.__dict__.update(stated.__dict__)
    object.__setattr__(made, "stays", lambda answer: stated.radius)
    return made


def routing_ignored(votes):
    """The radius of the class alone, as if the router's choice stood everywhere."""
    return honest("nosplit")(replace(votes, router=replace(votes.router, radius=votes.router.radius + np.inf)))


def stages_before_ignored(votes):
    """The radius of the core alone."""
    core, rows = votes.stated, len(votes)
    never, unnamed = np.full(rows, np.inf), np.full(rows, np.nan)
    return Certificates.conclude(Radii(core.answer, np.zeros(rows), core.radius, never, unnamed, evidence=()))


def at_alpha_times(factor, name):
    """Levels handed out as if what is stated had left some over."""

    def twin(votes):
        if name == "cascade":
            return Certificates.conclude(cascade([*votes.falling, *votes.last], factor * ALPHA))
        return Certificates.conclude(RULES[name](votes, factor * ALPHA))

    return twin


TWINS = {
    "fusion with the core's own class": ("fusion", of_its_own_class("fusion"), router_leaves_for_the_core(ALPHA / 2)),
    "cascade with the core's own class": ("cascade", of_its_own_class("cascade"), stage_falls_silent()),
    "ace without the routing": ("nosplit", routing_ignored, certified_router_first()),
    "cascade without the stages before": ("cascade", stages_before_ignored, stage_before_the_core(ALPHA)),
    "ace at twice alpha": ("nosplit", at_alpha_times(2, "nosplit"), certified_router(2 * ALPHA)),
    "cascade at twice alpha": ("cascade", at_alpha_times(2, "cascade"), stage_before_the_core(2 * ALPHA)),
}


@pytest.mark.parametrize("name", TWINS)
def test_sabotaged_twin_is_caught(name):
    """The same verdict accepts the rule and rejects its twin on the same votes."""
    rule, sabotaged, problem = TWINS[name]
    votes = problem.draw(TRIALS, "independent", 100 + list(TWINS).index(name))
    accepted, caught = judge(honest(rule)(votes), problem), judge(sabotaged(votes), problem)
    assert not accepted.rejected, accepted
    assert caught.rejected, caught
