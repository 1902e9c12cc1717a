"""PREDICT, for one sigma and for two stages, against scipy's exact binomial test."""

import numpy as np
import pytest
from scipy.stats import binomtest

from dualrs.certificates import ABSTAIN, Outcome, check_predict, predict, predict_dual
from dualrs.errors import BadSetting, TooFewVotes
from dualrs.schemes import DualVotes
from dualrs.votes import SamplingPlan, Votes

N = 60
PLAN = SamplingPlan(n0=3, n=N)


def random_votes(rng, rows, answers, sigma=0.5):
    sharpness = rng.choice([0.1, 1.0, 20.0], size=rows)
    p = np.stack([rng.dirichlet(np.full(answers, s)) for s in sharpness])
    return Votes(sigma, rng.multinomial(PLAN.n0, p), rng.multinomial(N, p), PLAN)


def decision(counts, alpha):
    """The most frequent answer and whether the test of the top two rejects a tie."""
    first, second = sorted(counts)[-1], sorted(counts)[-2]
    if first + second == 0:
        return 0, False
    return int(np.argmax(counts)), binomtest(first, first + second, 0.5).pvalue <= alpha


@pytest.mark.parametrize("alpha", [0.001, 0.05, 0.5])
@pytest.mark.parametrize("classes", [2, 3, 10])
def test_one_sigma_against_the_exact_test(alpha, classes):
    votes = random_votes(np.random.default_rng(classes), 150, classes)
    decided = 0
    for row, prediction in enumerate(predict(votes, alpha)):
        answer, sure = decision(votes.estimation[row].tolist(), alpha)
        assert prediction.prediction == (answer if sure else ABSTAIN)
        assert prediction.outcome is (Outcome.PREDICTED if sure else Outcome.CLASS_UNDECIDED)
        assert prediction.sigma_c == 0.5
        decided += sure
    assert 0 < decided < len(votes)


@pytest.mark.parametrize("alpha", [0.001, 0.1])
@pytest.mark.parametrize("candidates", [2, 3, 5])
def test_two_stages_each_at_half_of_alpha(alpha, candidates):
    rng = np.random.default_rng(candidates)
    sigmas = np.linspace(0.2, 1.0, candidates)
    experts = tuple(random_votes(rng, 150, 4, float(s)) for s in sigmas)
    votes = DualVotes(random_votes(rng, 150, candidates, 1.0), experts)
    seen = set()
    for row, prediction in enumerate(predict_dual(votes, alpha)):
        chosen, routed = decision(votes.router.estimation[row].tolist(), alpha / 2)
        answer, sure = decision(experts[chosen].estimation[row].tolist(), alpha / 2)
        outcome = Outcome.ROUTER_UNDECIDED if not routed else Outcome.PREDICTED if sure else Outcome.CLASS_UNDECIDED
        assert prediction.outcome is outcome
        assert prediction.prediction == (answer if outcome is Outcome.PREDICTED else ABSTAIN)
        assert prediction.sigma_c == sigmas[chosen]
        seen.add(outcome)
    assert seen == set(Outcome) - {Outcome.CERTIFIED, Outcome.STAGE_UNDECIDED}


@pytest.mark.parametrize("n", [1, 2, 9, 10, 60, 1001])
def test_p_value_of_every_count_is_that_of_the_exact_test(n):
    """Put alpha on either side of scipy's p-value: the verdict flips there and nowhere else."""
    for first in range((n + 1) // 2, n + 1, max(1, n // 40)):
        exact = binomtest(first, n, 0.5).pvalue
        votes = Votes(0.5, np.array([[1, 0]]), np.array([[first, n - first]]), SamplingPlan(1, n))
        if exact * (1 + 1e-9) < 1:
            assert not predict(votes, exact * (1 + 1e-9))[0].abstained
        if exact > 1e-300:
            assert predict(votes, exact * (1 - 1e-9))[0].abstained


def test_tie_abstains_even_at_a_careless_alpha():
    votes = Votes(0.5, np.array([[1, 0]]), np.array([[5, 5]]), SamplingPlan(1, 10))
    assert predict(votes, 0.999)[0].abstained


def test_expert_without_votes_abstains():
    plan = SamplingPlan(1, 10)
    router = Votes(1.0, np.array([[1, 0]]), np.array([[0, 10]]), plan)
    sampled = Votes(0.25, np.array([[1, 0]]), np.array([[10, 0]]), plan)
    empty = Votes(0.5, np.array([[0, 0]]), np.array([[0, 0]]), plan)
    assert predict_dual(DualVotes(router, (sampled, empty)), 0.1)[0].outcome is Outcome.CLASS_UNDECIDED


def test_alpha_is_checked():
    votes = Votes(0.5, np.array([[1, 0]]), np.array([[5, 5]]), SamplingPlan(1, 10))
    with pytest.raises(BadSetting):
        predict(votes, 0)
    with pytest.raises(BadSetting):
        predict_dual(DualVotes(votes, (votes, votes)), 1)


@pytest.mark.parametrize("stages", [1, 2])
@pytest.mark.parametrize("alpha", [0.001, 0.05, 2**-10])
def test_too_few_votes_are_refused_exactly_where_unanimous_votes_decide_nothing(stages, alpha):
    for n in range(1, 20):
        plan = SamplingPlan(0, n)
        votes = Votes(0.5, np.zeros((1, 2), dtype=int), np.array([[n, 0]]), plan)
        found = predict(votes, alpha) if stages == 1 else predict_dual(DualVotes(votes, (votes, votes)), alpha)
        if found[0].abstained:
            with pytest.raises(TooFewVotes, match=f"n = {n} cannot decide"):
                check_predict(plan, alpha, stages)
        else:
            check_predict(plan, alpha, stages)
