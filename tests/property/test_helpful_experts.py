"""Sampling only the experts that can help loses nothing of rule fusion."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from random_votes import crowded, crowds

from dualrs.schemes import DualVotes, rule


def keep(votes, kept):
    """Only the votes of some experts, (candidates, inputs); the rest was not sampled."""
    experts = tuple(
        replace(e, selection=e.selection * k[:, None], estimation=e.estimation * k[:, None])
        for e, k in zip(votes.experts, kept, strict=True)
    )
    return DualVotes(votes.router, experts)


@pytest.mark.parametrize("name", ["fusion", "fusion-pair"])
@crowded
@given(crowd=crowds())
def test_sampling_the_helpful_experts_only_gives_the_radius_of_sampling_all(name, crowd):
    found, votes = rule(name), crowd.votes
    first = np.arange(len(votes.experts))[:, None] == crowd.chosen
    helpful = found.helpful(keep(votes, first), crowd.alpha)
    everything = found.certify(votes, crowd.alpha)
    thrifty = found.certify(keep(votes, first | helpful), crowd.alpha)
    np.testing.assert_array_equal(thrifty.radius, everything.radius)
    np.testing.assert_array_equal(thrifty.prediction, everything.prediction)
    assert not (helpful & first).any()  # the chosen one has been sampled
    assert not helpful[:, everything.r_c <= 0].any()  # nothing helps a class that is undecided


@pytest.mark.parametrize("name", ["fusion", "fusion-pair"])
@crowded
@given(crowd=crowds())
def test_no_expert_is_helpful_once_all_are_sampled(name, crowd):
    assert not rule(name).helpful(crowd.votes, crowd.alpha).any()


@pytest.mark.parametrize("name", ["fusion", "fusion-pair"])
@crowded
@given(crowd=crowds())
def test_each_helpful_expert_would_raise_the_radius_if_it_agreed_with_every_vote(name, crowd):
    """Were all experts but one to agree fully, the one called helpful is what stands between E_j and more."""
    found, votes = rule(name), crowd.votes
    first = np.arange(len(votes.experts))[:, None] == crowd.chosen
    helpful = found.helpful(keep(votes, first), crowd.alpha)
    unanimous = []
    for i, expert in enumerate(votes.experts):
        counts = np.zeros_like(expert.estimation)
        counts[crowd.rows, crowd.label] = expert.plan.n
        unanimous.append(replace(expert, estimation=np.where(first[i][:, None], expert.estimation, counts)))
    agreed = DualVotes(votes.router, tuple(unanimous))
    best = found.certify(agreed, crowd.alpha)
    for j in range(len(votes.experts)):
        without = np.ones_like(first)
        without[j] = first[j]
        lone = found.certify(keep(agreed, without), crowd.alpha)
        # not helpful: leaving j out changes nothing, whatever its votes would have been
        np.testing.assert_array_equal(lone.radius[~helpful[j]], best.radius[~helpful[j]])
        # helpful: j alone now holds the claim below r_A
        assert (lone.r_sigma < lone.r_c)[helpful[j]].all()
