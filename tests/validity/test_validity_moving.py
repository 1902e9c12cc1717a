"""Rule sukenik errs no more often than alpha where the truth is known, and its twins with one mistake are caught.

Event, probability and false alarm as in test_validity_rules.py: a class is certified at a radius within which G, under
the sigma that holds there, answers otherwise; at most alpha = 0.1; 1e-6 per case.
"""

from dataclasses import replace

import numpy as np
import pytest
from half_spaces import edge
from moving_sigmas import Moving
from verdict import ALPHA, TRIALS, judge, judge_predictions

from dualrs.certificates.rule import concluded
from dualrs.certificates.sukenik import sukenik
from dualrs.schemes import SCHEMES
from dualrs.schemes.input_dependent import SUKENIK

honest = concluded(sukenik)
PROBLEMS = {
    "sigma rises": Moving(edge(250, ALPHA), 1.0, rises=True, step=0.02),
    "sigma falls": Moving(edge(250, ALPHA), 1.0, rises=False),
    "sigma rises, an image of CIFAR-10": Moving(edge(240, ALPHA), 0.01, rises=True, step=0.054, dimensions=3072),
    "sigma falls, an image of CIFAR-10": Moving(edge(240, ALPHA), 0.02, rises=False, step=0.054, dimensions=3072),
    "sigma rises, in wide levels": Moving(edge(250, ALPHA), 0.3, rises=True, step=0.3),
    "a class with little more than half": Moving(edge(150, ALPHA), 0.3, rises=True),
}


def certified(rule, votes):
    """The certificates of all trials; each is a function of the selected class and the counts, so it is made once."""
    classifier = votes.classifier
    both = np.column_stack([classifier.selection.argmax(axis=1), classifier.estimation])
    _, first, place = np.unique(both, axis=0, return_index=True, return_inverse=True)
    few = replace(
        votes,
        levels=votes.levels[first],
        classifier=replace(classifier, selection=classifier.selection[first], estimation=classifier.estimation[first]),
    )
    return rule(few, ALPHA).rows(place)


@pytest.mark.parametrize("case", PROBLEMS)
def test_sukenik_errs_no_more_often_than_alpha(case):
    problem = PROBLEMS[case]
    verdict = judge(certified(honest, problem.draw(TRIALS, list(PROBLEMS).index(case))), problem)
    assert not verdict.rejected, verdict


@pytest.mark.parametrize("case", ["sigma rises", "sigma rises, an image of CIFAR-10"])
def test_problems_are_sharp(case):
    problem = PROBLEMS[case]
    verdict = judge(certified(honest, problem.draw(TRIALS, list(PROBLEMS).index(case))), problem)
    assert 0.6 * ALPHA < verdict.rate < 1.1 * ALPHA, verdict


def test_the_true_radius_is_that_of_the_bound():
    """What a rival search on the line finds, with another library, is what the classifier was built for."""
    for problem in PROBLEMS.values():
        assert problem.probability(np.array([0.0]))[0] == pytest.approx(problem.p, abs=1e-9)
        assert problem.radius == pytest.approx(problem.target[0], abs=3e-5)


def lower_end_only(votes, alpha):
    """As public code has it: only sigmas below that of the input are tried."""
    kept = int(votes.level[0]) + 1
    return honest(replace(votes, levels=votes.levels[:, :kept], by_level=votes.by_level[:kept]), alpha)


def half_the_rate(votes, alpha):
    """As if an image had to move twice as far through a level as it has to."""
    return honest(replace(votes, step=2 * votes.step), alpha)


def rounding_ignored(votes, alpha):
    """As if every input lay in the middle of its level."""
    found = honest(votes, alpha)
    return replace(found, radius=np.where(found.radius > 0, found.radius + votes.step / 2, 0.0))


def constant(votes, alpha):
    """As if sigma stayed what it is at the input."""
    found = honest(votes, alpha)
    return replace(found, radius=np.maximum(found.r_c, 0.0))


TWINS = {
    "the lower end only": (lower_end_only, "sigma rises"),
    "half the rate": (half_the_rate, "sigma rises"),
    "half the rate, CIFAR-10": (half_the_rate, "sigma falls, an image of CIFAR-10"),
    "rounding ignored": (rounding_ignored, "sigma rises, in wide levels"),
    "a constant sigma": (constant, "sigma rises"),
    "a constant sigma, falling": (constant, "sigma falls"),
}


@pytest.mark.parametrize("name", TWINS)
def test_sabotaged_twin_is_caught(name):
    """The same verdict accepts the rule and rejects its twin on the same votes."""
    sabotaged, case = TWINS[name]
    problem = PROBLEMS[case]
    votes = problem.draw(TRIALS, 100 + list(TWINS).index(name))
    accepted, caught = judge(certified(honest, votes), problem), judge(certified(sabotaged, votes), problem)
    assert not accepted.rejected, accepted
    assert caught.rejected, caught


def test_prediction_is_wrong_no_more_often_than_alpha():
    """P[a class is named and is not G's] <= 0.1 where the class is a coin toss; false alarm 1e-6."""
    problem = Moving(0.5 + 1e-6, 0.3, rises=True)
    kind = SCHEMES["input-dependent"]((0.5,), 3, lowest=0.1, highest=1.0, levels=401, step=0.04, dimensions=3)
    found = kind.predict(problem.draw(TRIALS, 7), SUKENIK, ALPHA)
    verdict = judge_predictions(found.prediction, problem)
    assert verdict.errors > 0
    assert not verdict.rejected, verdict
