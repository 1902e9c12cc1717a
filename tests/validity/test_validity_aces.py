"""Rule aces errs no more often than alpha where the truth is known, and its twins with one mistake are caught.

The two-stage problems of half_spaces.py serve: the router is the selector, candidate 0 the smoothed classifier, and
candidate 1, which always gives one class, the core network. Event, probability and false alarm as in
test_validity_rules.py; a class that the core gives counts as a claim about the input.
"""

from dataclasses import replace

import numpy as np
import pytest
from half_spaces import (
    COUPLINGS,
    OTHER,
    class_boundary,
    class_coin_toss,
    equal_boundaries,
    hostile_coin_toss,
    routing_boundary,
)
from verdict import ALPHA, TRIALS, judge

from dualrs.certificates import Certificates, Radii
from dualrs.certificates.aces import aces
from dualrs.schemes import AcesVotes
from dualrs.votes import SamplingPlan

THRESHOLD = 0.5  # the only one
PROBLEMS = {
    "the class changes first": class_boundary(ALPHA / 2),
    "the choice changes first": routing_boundary(ALPHA / 2),
    "class and choice change together": equal_boundaries(ALPHA / 2),
    "the class is a coin toss": class_coin_toss(),
    "the choice is a coin toss": hostile_coin_toss(),
}


def drawn(problem, coupling, seed):
    votes = problem.draw(TRIALS, coupling, seed)
    expert = votes.experts[0]
    core = np.tile(np.eye(expert.answers, dtype=np.int64)[OTHER], (TRIALS, 1))
    return AcesVotes(votes.router, expert, core, thresholds=(THRESHOLD,))


def honest(votes):
    return aces(votes, ALPHA, THRESHOLD)


@pytest.mark.parametrize("coupling", COUPLINGS)
@pytest.mark.parametrize("case", PROBLEMS)
def test_aces_errs_no_more_often_than_alpha(case, coupling):
    problem = PROBLEMS[case]
    verdict = judge(honest(drawn(problem, coupling, list(PROBLEMS).index(case))), problem)
    assert not verdict.rejected, verdict


@pytest.mark.parametrize(
    ("case", "share"),
    [("the class changes first", 1 / 2), ("the choice changes first", 1 / 2), ("the choice is a coin toss", 1 / 2)],
    ids=lambda value: value if isinstance(value, str) else f"{value:.0%} of alpha",
)
def test_problems_are_sharp(case, share):
    problem = PROBLEMS[case]
    verdict = judge(honest(drawn(problem, "independent", list(PROBLEMS).index(case))), problem)
    assert 0.85 * share * ALPHA < verdict.rate < 1.10 * share * ALPHA, verdict


def choice_ignored(votes):
    """The radius of the class alone, as if the selector could not change its mind."""
    found = honest(votes)
    return Certificates.conclude(
        Radii(
            votes.classifier.selection.argmax(axis=1),
            found.sigma_c,
            found.r_c,
            np.full(len(votes), np.inf),
            np.full(len(votes), np.nan),
            evidence=(),
        )
    )


def selection_reused(votes):
    """The votes that bound the choice make it too; at 1.5 alpha, which by itself does no harm at this problem."""
    selector = votes.selector
    plan = SamplingPlan(selector.plan.n, selector.plan.n)
    return aces(
        replace(votes, selector=replace(selector, selection=selector.estimation, plan=plan)), 1.5 * ALPHA, THRESHOLD
    )


TWINS = {
    "at four times alpha, class first": (lambda votes: aces(votes, 4 * ALPHA, THRESHOLD), class_boundary(ALPHA)),
    "at four times alpha, choice first": (lambda votes: aces(votes, 4 * ALPHA, THRESHOLD), routing_boundary(ALPHA)),
    "without the choice": (choice_ignored, routing_boundary(ALPHA / 2)),
    "choosing by the votes that bound the choice": (selection_reused, hostile_coin_toss()),
}


@pytest.mark.parametrize("name", TWINS)
def test_sabotaged_twin_is_caught(name):
    """The same verdict accepts the rule and rejects its twin on the same votes."""
    sabotaged, problem = TWINS[name]
    votes = drawn(problem, "independent", 100 + list(TWINS).index(name))
    accepted, caught = judge(honest(votes), problem), judge(sabotaged(votes), problem)
    assert not accepted.rejected, accepted
    assert caught.rejected, caught
