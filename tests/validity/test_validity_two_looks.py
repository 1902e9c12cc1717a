"""Votes that a longer run goes on from: its certificates are those of its own n, and two looks are paid for twice.

One class at one sigma, on problems whose true radius is known; the first n votes of the longer run are those of the
shorter one, which was certified before. Event: a certificate claims more than the true radius. Probability: at most
alpha = 0.1 for each run, also where the longer one is only begun after the shorter one was seen. Taking the better of
the two for an input is a second look; it needs levels that sum to alpha. False alarm: 1e-6 (see verdict.py).
"""

import numpy as np
import pytest
from half_spaces import N, class_boundary
from verdict import ALPHA, TRIALS, Verdict, judge

from dualrs.schemes import rule
from dualrs.votes import SamplingPlan, Votes

MORE = 10 * N
PROBLEM = class_boundary(ALPHA)  # on the edge of the bound of the shorter run


@pytest.fixture(scope="module")
def looks():
    """Votes of both runs; selection votes are the same."""
    source = np.random.default_rng(19)
    expert, sigma = PROBLEM.experts[0], PROBLEM.sigmas[0]
    selection, first, rest = (
        expert.count(source.standard_normal((TRIALS, size)), sigma, PROBLEM.classes)
        for size in (PROBLEM.plan.n0, N, MORE - N)
    )
    n0 = PROBLEM.plan.n0
    return [Votes(sigma, selection, counts, SamplingPlan(n0, n)) for counts, n in ((first, N), (first + rest, MORE))]


def certified(looks, levels):
    return [rule("cohen").certify(votes, level) for votes, level in zip(looks, levels, strict=True)]


def verdict(*claims):
    """On the larger of some certificates for each input."""
    false = np.max([c.radius for c in claims], axis=0) > PROBLEM.radius
    return Verdict(int(false.sum()), TRIALS)


def test_either_run_holds_at_its_own_alpha(looks):
    for certificates in certified(looks, (ALPHA, ALPHA)):
        judged = judge(certificates, PROBLEM)
        assert judged.errors == verdict(certificates).errors
        assert not judged.rejected, judged
        assert judged.rate > 0.8 * ALPHA  # the problem is sharp for both


def test_the_longer_run_holds_where_it_is_begun_because_of_the_shorter_one(looks):
    """The event is a certificate that is issued and false, so that not issuing it costs nothing."""
    short, long = certified(looks, (ALPHA, ALPHA))
    for begun in (short.radius <= PROBLEM.radius, short.radius > PROBLEM.radius):
        judged = Verdict(int((begun & (long.radius > PROBLEM.radius)).sum()), TRIALS)
        assert not judged.rejected, judged


def test_twin_that_takes_the_better_of_two_looks_is_caught(looks):
    """Whoever goes on where the first look claims too little, and stops where it claims enough, is the same twin."""
    judged = verdict(*certified(looks, (ALPHA, ALPHA)))
    assert judged.rejected
    assert judged.rate > 1.4 * ALPHA


@pytest.mark.parametrize("share", [0.5, 0.2], ids=["halves", "a fifth for the first look"])
def test_levels_that_sum_to_alpha_pay_for_both_looks(looks, share):
    judged = verdict(*certified(looks, (share * ALPHA, (1 - share) * ALPHA)))
    assert not judged.rejected, judged
