"""Evidence taken away never improves a certificate; a name given to an answer never matters."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_votes import RULES, another, crowded, crowds, move

from dualrs.schemes import DualVotes, rule
from dualrs.votes import Votes

ROUNDING = 1e-9


def assert_no_better(after, before):
    assert (after.radius <= before.radius * (1 + ROUNDING) + 1e-12).all()
    assert before.abstained[~after.abstained].sum() == 0


@crowded
@given(crowds(classes=st.integers(2, 10)))
def test_a_vote_less_for_the_class_never_improves_cohen(crowd):
    votes = crowd.votes.experts[0]
    label = votes.selection.argmax(axis=1)
    fewer = move(crowd.rng, votes, label, another(crowd.rng, label, votes.answers))
    assert_no_better(rule("cohen").certify(fewer, crowd.alpha), rule("cohen").certify(votes, crowd.alpha))


@pytest.mark.parametrize("name", RULES)
@crowded
@given(crowd=crowds())
def test_a_vote_less_for_the_class_at_the_chosen_expert_never_improves(name, crowd):
    """In the pair form the vote also goes to a rival class, which can only raise the largest other count."""
    label, votes = crowd.label, crowd.votes
    experts = []
    for i, expert in enumerate(votes.experts):
        fewer = move(crowd.rng, expert, label, another(crowd.rng, label, expert.answers))
        rows = (crowd.chosen == i)[:, None]
        experts.append(replace(expert, estimation=np.where(rows, fewer.estimation, expert.estimation)))
    after = rule(name).certify(DualVotes(votes.router, tuple(experts)), crowd.alpha)
    assert_no_better(after, rule(name).certify(votes, crowd.alpha))


@pytest.mark.parametrize("name", RULES)
@crowded
@given(crowd=crowds())
def test_a_vote_less_for_the_class_at_any_expert_never_improves(name, crowd):
    label, votes = crowd.label, crowd.votes
    experts = tuple(move(crowd.rng, e, label, another(crowd.rng, label, e.answers)) for e in votes.experts)
    after = rule(name).certify(DualVotes(votes.router, experts), crowd.alpha)
    assert_no_better(after, rule(name).certify(votes, crowd.alpha))


@pytest.mark.parametrize("name", RULES)
@crowded
@given(crowd=crowds())
def test_a_vote_less_for_the_chosen_candidate_never_improves(name, crowd):
    """Under fusion the vote lowers L_A, hence every E_j, and raises the U_j of the candidate that gets it."""
    votes = crowd.votes
    router = move(crowd.rng, votes.router, crowd.chosen, another(crowd.rng, crowd.chosen, votes.router.answers))
    after = rule(name).certify(DualVotes(router, votes.experts), crowd.alpha)
    assert_no_better(after, rule(name).certify(votes, crowd.alpha))


@pytest.mark.parametrize("name", ["fusion", "fusion-pair"])
@crowded
@given(crowd=crowds())
def test_an_expert_left_unsampled_never_improves(name, crowd):
    votes = crowd.votes
    experts = []
    for i, expert in enumerate(votes.experts):
        keep = ((crowd.chosen == i) | (crowd.rng.random(len(votes)) < 0.5))[:, None]
        experts.append(replace(expert, selection=expert.selection * keep, estimation=expert.estimation * keep))
    after = rule(name).certify(DualVotes(votes.router, tuple(experts)), crowd.alpha)
    assert_no_better(after, rule(name).certify(votes, crowd.alpha))


@pytest.mark.parametrize("name", RULES)
@crowded
@given(crowd=crowds())
def test_a_smaller_alpha_never_improves(name, crowd):
    after = rule(name).certify(crowd.votes, crowd.alpha / 2)
    assert_no_better(after, rule(name).certify(crowd.votes, crowd.alpha))


@pytest.mark.parametrize("name", RULES)
@crowded
@given(crowd=crowds())
def test_order_of_classes_and_of_candidates_does_not_matter(name, crowd):
    """Where the selection votes have no tie, which the lower index would win."""
    votes = crowd.votes
    classes, candidates = (crowd.rng.permutation(m) for m in (votes.experts[0].answers, len(votes.experts)))

    def reorder(v: Votes, order):
        return replace(v, selection=v.selection[:, order], estimation=v.estimation[:, order])

    shuffled = DualVotes(
        reorder(votes.router, candidates), tuple(reorder(votes.experts[i], classes) for i in candidates)
    )
    before, after = (rule(name).certify(v, crowd.alpha) for v in (votes, shuffled))

    def decided(counts):
        top_two = np.sort(counts, axis=1)[:, -2:]
        return top_two[:, 1] > top_two[:, 0]

    same = decided(votes.router.selection) & np.all([decided(e.selection) for e in votes.experts], axis=0)
    np.testing.assert_array_equal(after.radius[same], before.radius[same])
    claimed = same & ~before.abstained
    np.testing.assert_array_equal(classes[after.prediction[claimed]], before.prediction[claimed])
