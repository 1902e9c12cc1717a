"""PREDICT names a class other than the smoothed one with probability at most alpha, and its twins do not.

Event: a class is named, and it is not that of the smoothed model (of G, for two stages) at the input.
Probability: at most alpha = 0.1 over the noise. False alarm: 1e-6 per case (see verdict.py); seeds are fixed.
"""

import numpy as np
import pytest
from half_spaces import (
    COUPLINGS,
    class_coin_toss,
    hostile_coin_toss,
    three_tied_candidates,
    three_tied_classes,
)
from verdict import ALPHA, TRIALS, judge_predictions

from dualrs.certificates import predict, predict_dual
from dualrs.schemes import rule

PROBLEMS = {
    "the class is a coin toss": class_coin_toss,
    "the class is a tie of three": three_tied_classes,
    "the router tosses a coin between foes": hostile_coin_toss,
    "the router is at a tie of three": three_tied_candidates,
}
ONE_STAGE = ("the class is a coin toss", "the class is a tie of three")


def seed(case):
    return 40 + list(PROBLEMS).index(case)


@pytest.mark.parametrize("coupling", COUPLINGS)
@pytest.mark.parametrize("case", PROBLEMS)
def test_two_stage_prediction_is_wrong_no_more_often_than_alpha(case, coupling):
    """P[a class is named and is not G's] <= 0.1; false alarm 1e-6."""
    problem = PROBLEMS[case]()
    verdict = judge_predictions(predict_dual(problem.draw(TRIALS, coupling, seed(case)), ALPHA).prediction, problem)
    assert verdict.errors > 0  # the problem is hard enough to be wrong at all
    assert not verdict.rejected, verdict


@pytest.mark.parametrize("case", ONE_STAGE)
def test_prediction_at_one_sigma_is_wrong_no_more_often_than_alpha(case):
    """P[a class is named and is not the smoothed one] <= 0.1; false alarm 1e-6."""
    problem = PROBLEMS[case]()
    verdict = judge_predictions(
        predict(problem.draw(TRIALS, "independent", seed(case)).experts[0], ALPHA).prediction, problem
    )
    assert verdict.errors > 0
    assert not verdict.rejected, verdict


@pytest.mark.parametrize("name", ["nosplit", "fusion", "fusion-pair"])
@pytest.mark.parametrize("coupling", COUPLINGS)
@pytest.mark.parametrize("case", PROBLEMS)
def test_class_of_a_certificate_is_a_prediction_too(case, coupling, name):
    """Returning y wherever R > 0: P[a class is named and is not G's] <= 0.1; false alarm 1e-6."""
    problem = PROBLEMS[case]()
    verdict = judge_predictions(
        rule(name).certify(problem.draw(TRIALS, coupling, seed(case)), ALPHA).prediction, problem
    )
    assert not verdict.rejected, verdict


def most_frequent(votes):
    return votes.estimation.argmax(axis=1)


# Between two classes only one side of the two-sided test is an error, so PREDICT has a factor of two in hand,
# and four in two stages; a twin has to waste more than that.
TWINS = {
    "one sigma at four times alpha": (
        class_coin_toss,
        lambda votes: predict(votes.experts[0], ALPHA).prediction,
        lambda votes: predict(votes.experts[0], 4 * ALPHA).prediction,
    ),
    "one sigma without abstaining": (
        class_coin_toss,
        lambda votes: predict(votes.experts[0], ALPHA).prediction,
        lambda votes: most_frequent(votes.experts[0]),
    ),
    "two stages at eight times alpha": (
        hostile_coin_toss,
        lambda votes: predict_dual(votes, ALPHA).prediction,
        lambda votes: predict_dual(votes, 8 * ALPHA).prediction,
    ),
    "two stages without a test of the router": (
        hostile_coin_toss,
        lambda votes: predict_dual(votes, ALPHA).prediction,
        lambda votes: np.where(
            most_frequent(votes.router) == 0,
            predict(votes.experts[0], ALPHA / 2).prediction,
            predict(votes.experts[1], ALPHA / 2).prediction,
        ),
    ),
}


@pytest.mark.parametrize("twin", TWINS)
def test_sabotaged_prediction_is_caught(twin):
    """The same verdict accepts PREDICT and rejects its twin on the same votes."""
    build, honest, sabotaged = TWINS[twin]
    problem = build()
    votes = problem.draw(TRIALS, "independent", 50)
    accepted, caught = (judge_predictions(how(votes), problem) for how in (honest, sabotaged))
    assert not accepted.rejected, accepted
    assert caught.rejected, caught
