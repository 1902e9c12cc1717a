"""What the selection votes choose, and what they are refused for."""

import numpy as np
import pytest

from dualrs.certificates.selection import candidate_and_class, top
from dualrs.errors import UnusableVotes
from dualrs.schemes import DualVotes, rule
from dualrs.votes import SamplingPlan, Votes

PLAN = SamplingPlan(n0=4, n=10)


def votes(selection, estimation, sigma=0.5):
    return Votes(sigma, np.array(selection), np.array(estimation), PLAN)


def test_most_frequent_selection_vote_is_chosen_and_ties_go_to_the_lower_index():
    table = votes([[0, 4, 0], [2, 2, 0], [1, 1, 2], [0, 2, 2]], [[10, 0, 0]] * 4)
    assert top(table).tolist() == [1, 0, 2, 1]


def test_estimation_votes_have_no_say_in_the_choice():
    """Whatever the estimation votes are, the candidate and the class stay those of the selection votes."""
    router = votes([[3, 1]], [[0, 10]], sigma=1.0)
    experts = (votes([[0, 4, 0]], [[10, 0, 0]]), votes([[4, 0, 0]], [[0, 0, 10]]))
    chosen, label = candidate_and_class(DualVotes(router, experts))
    assert (chosen.tolist(), label.tolist()) == ([0], [1])


def test_class_is_that_of_the_chosen_expert_input_by_input():
    router = votes([[4, 0], [0, 4]], [[10, 0], [0, 10]], sigma=1.0)
    experts = (votes([[0, 4, 0]] * 2, [[0, 10, 0]] * 2), votes([[0, 0, 4]] * 2, [[0, 0, 10]] * 2))
    chosen, label = candidate_and_class(DualVotes(router, experts))
    assert (chosen.tolist(), label.tolist()) == ([0, 1], [1, 2])


@pytest.mark.parametrize("name", ["paper", "nosplit", "fusion", "fusion-pair"])
@pytest.mark.parametrize("part", ["selection", "estimation"])
@pytest.mark.parametrize("stage", ["router", "expert"])
def test_missing_votes_of_a_stage_that_is_needed_are_named_with_the_input(name, part, stage):
    router = votes([[4, 0]] * 2, [[10, 0]] * 2, sigma=1.0)
    expert = votes([[4, 0, 0]] * 2, [[10, 0, 0]] * 2)
    getattr(router if stage == "router" else expert, part)[1] = 0
    dual = DualVotes(router, (expert, votes([[4, 0, 0]] * 2, [[10, 0, 0]] * 2)))
    with pytest.raises(UnusableVotes, match="input 1 has no"):
        rule(name).certify(dual, 0.5)


@pytest.mark.parametrize("part", ["selection", "estimation"])
def test_missing_votes_are_named_for_one_sigma_too(part):
    table = votes([[4, 0]] * 2, [[10, 0]] * 2)
    getattr(table, part)[1] = 0
    with pytest.raises(UnusableVotes, match=f"input 1 has no {part} votes at sigma 0.5"):
        rule("cohen").certify(table, 0.5)


def test_expert_that_was_not_chosen_may_lack_votes():
    router = votes([[4, 0]], [[10, 0]], sigma=1.0)
    dual = DualVotes(router, (votes([[4, 0, 0]], [[10, 0, 0]]), votes([[0, 0, 0]], [[0, 0, 0]])))
    for name in ("paper", "nosplit", "fusion", "fusion-pair"):
        assert not rule(name).certify(dual, 0.5)[0].abstained
