"""What looks cost and what they never give: radii from votes gathered under looks, against those of a fixed n."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from random_looks import crowds_under_looks, cut
from random_votes import RULES

from dualrs.schemes import DualVotes, rule
from dualrs.theory import looks as theory
from dualrs.votes import SamplingPlan

crowded = settings(max_examples=4, deadline=None)  # an example is a thousand inputs, at several looks each


def each(change, votes):
    """A change of every model's votes."""
    return DualVotes(change(votes.router), tuple(map(change, votes.experts)))


def fixed(votes, plan=None):
    """The counts of votes under looks as if n had been fixed."""
    return replace(votes, plan=plan or SamplingPlan(votes.plan.n0, votes.plan.n), segments=None)


def assert_no_better(after, before):
    assert (after.radius <= before.radius).all()
    assert (after.prediction == before.prediction)[~after.abstained].all()


@pytest.mark.parametrize("name", RULES)
@crowded
@given(crowd=crowds_under_looks())
def test_stopping_earlier_anywhere_never_improves(name, crowd):
    """So of all ways to stop, the one that errs most is not to stop: validity need be tested there only."""
    after = rule(name).certify(crowd.stopped(), crowd.alpha)
    assert_no_better(after, rule(name).certify(crowd.votes, crowd.alpha))


@crowded
@given(crowd=crowds_under_looks())
def test_cohen_is_never_above_a_fixed_n_at_whichever_look_is_best(crowd):
    """Every look spends less than the whole level, so its bound is below that of a run fixed to end there."""
    votes = crowd.votes.experts[0]
    best = np.zeros(len(votes))
    for number, look in enumerate(crowd.plan.looks, start=1):
        some = fixed(cut(votes, np.full(len(votes), number)), SamplingPlan(crowd.plan.n0, look))
        best = np.maximum(best, rule("cohen").certify(some, crowd.alpha).radius)
    found = rule("cohen").certify(votes, crowd.alpha).radius
    assert (found <= best).all()
    assert (found < best)[best > 0].all()


@pytest.mark.parametrize("name", RULES)
@crowded
@given(crowd=crowds_under_looks())
def test_rule_is_never_above_itself_at_the_full_level_at_every_look(name, crowd):
    found = rule(name).certify(crowd.votes, crowd.alpha)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(theory, "shares", lambda looks: np.ones(len(looks)))
        full = rule(name).certify(crowd.votes, crowd.alpha)
    assert_no_better(found, full)
    assert (found.radius < full.radius)[full.radius > 0].all()


@pytest.mark.parametrize("name", RULES)
@crowded
@given(crowd=crowds_under_looks())
def test_rule_is_never_above_a_fixed_n_where_no_look_was_luckier_than_the_whole(name, crowd):
    """The same fifty votes again and again: nothing to gain from a look, only its price."""

    def evenly(votes):
        fifty = crowd.rng.multinomial(50, votes.estimation / votes.plan.n)
        segments = fifty[:, None] * (np.diff(votes.plan.looks, prepend=0) // 50)[:, None]
        return replace(votes, estimation=segments.sum(axis=1), segments=segments)

    even = each(evenly, crowd.votes)
    adaptive = rule(name).certify(even, crowd.alpha)
    at_n = rule(name).certify(each(fixed, even), crowd.alpha)
    assert_no_better(adaptive, at_n)
    assert (adaptive.radius < at_n.radius)[at_n.radius > 0].all()


@pytest.mark.parametrize("name", RULES)
@crowded
@given(crowd=crowds_under_looks())
def test_one_look_is_a_fixed_n_exactly(name, crowd):
    once = SamplingPlan(crowd.plan.n0, crowd.plan.n, (crowd.plan.n,))
    found = rule(name).certify(each(lambda v: fixed(v, once), crowd.votes), crowd.alpha)
    expected = rule(name).certify(each(fixed, crowd.votes), crowd.alpha)
    np.testing.assert_array_equal(found.radius, expected.radius)
    np.testing.assert_array_equal(found.prediction, expected.prediction)
