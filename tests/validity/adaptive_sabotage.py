"""Ways to read votes gathered under looks with one mistake each, for the tests to catch.

Each takes a rule and the votes of all looks, and gives the certificates of every stop that sampling may make: the
adversary, who knows the truth, stops where the claim is false. Where stopping earlier never claims more, as with the
library itself, the last stop stands for all (test_validity_adaptive.py).
"""

from dataclasses import replace

import numpy as np
import pytest
from adaptive_trials import LOOKS, each
from verdict import ALPHA, Verdict

from dualrs.theory import looks as theory
from dualrs.votes import SamplingPlan

LAST_SHARE = 0.75


def honest(rule, votes):
    """What the library claims."""
    return [rule.certify(votes, ALPHA)]


def full_alpha_at_every_look(rule, votes):
    """No look knows of the others: each spends the whole level."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(theory, "shares", lambda looks: np.ones(len(looks)))
        return honest(rule, votes)


def last_share_at_the_stop(rule, votes):
    """Wherever sampling stopped is taken for the last look, with its share of the level."""

    def ended(v, k):
        segments = v.segments[:, :k]
        plan = SamplingPlan(v.plan.n0, LOOKS[k - 1], LOOKS[:k])
        return replace(v, plan=plan, estimation=segments.sum(axis=1), segments=segments)

    later = range(2, len(LOOKS) + 1)
    first = rule.certify(each(lambda v: _bare(v, 1), votes), LAST_SHARE * ALPHA)
    return [first, *(rule.certify(each(lambda v, k=k: ended(v, k), votes), ALPHA) for k in later)]


def fixed_level_at_the_stop(rule, votes):
    """The counts at the stop, taken for those of a run whose n was fixed to be just that."""
    stops = range(1, len(LOOKS) + 1)
    return [rule.certify(each(lambda v, k=k: _bare(v, k), votes), ALPHA) for k in stops]


def shared_selection_in_the_bounds(rule, votes):
    """The shared samples that selected candidate and class are counted in the estimation too; here n0 = n of them."""
    return honest(rule, each(lambda v: replace(v, selection=v.estimation, plan=replace(v.plan, n0=v.plan.n)), votes))


def _bare(votes, k):
    """The counts at one look, without a word of the others."""
    plan = SamplingPlan(votes.plan.n0, LOOKS[k - 1])
    return replace(votes, plan=plan, estimation=votes.segments[:, :k].sum(axis=1), segments=None)


def judge_any(stops, problem):
    """Verdict on an adversary: an error is a trial in which some stop claims falsely."""
    false = np.zeros(len(stops[0]), dtype=bool)
    for found in stops:
        wrong = (found.prediction != problem.label) | (found.radius > problem.radius)
        false |= ~found.abstained & wrong
    return Verdict(int(false.sum()), len(false))
