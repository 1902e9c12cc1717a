"""Policies, which say what votes an input needs next."""

import numpy as np
import pytest

from dualrs.schemes import Assigned, Dual, Labels, Single, rule
from dualrs.votes import Part, SamplingPlan, Stage, Stream, Tally

SIGMAS = (0.25, 0.5, 1.0)
DUAL = Dual(SIGMAS, 2, 1.0)
PLAN = SamplingPlan(n0=10, n=2500)
ALPHA = 0.001


def both(stage, sigma):
    return [Stream(stage, Part.SELECTION, sigma), Stream(stage, Part.ESTIMATION, sigma)]


def fill(tally, stream, counts, plan=PLAN):
    """Put votes into a tally, unit by unit, in the proportions of ``counts``."""
    shares = np.asarray(counts) / np.sum(counts)
    for unit in plan.units("x", stream):
        votes = np.floor(shares * unit.votes).astype(np.int64)
        votes[np.argmax(shares)] += unit.votes - votes.sum()
        tally.add(unit, votes[None])


def steps(policy, votes):
    """What a policy asks for, step by step, given the votes that it will get."""
    tally, asked = Tally(), []
    for wanted in policy(tally):
        assert all(upto == PLAN.votes(stream.part) for stream, upto in wanted.items())
        asked.append(list(wanted))
        for stream in wanted:
            fill(tally, stream, votes[stream.stage, stream.sigma])
    return asked


def two_stages(sigma):
    """The router's selection votes first; then the rest of the router together with the expert that they choose."""
    selection, estimation = both(Stage.ROUTER, 1.0)
    return [[selection], [estimation, *both(Stage.CLASS, sigma)]]


# Votes by which the router chooses 0.5 and hesitates towards 1.0, and every expert is for class 1.
HESITANT = {
    (Stage.ROUTER, 1.0): (0, 60, 40),
    (Stage.CLASS, 0.25): (0, 1),
    (Stage.CLASS, 0.5): (0, 1),
    (Stage.CLASS, 1.0): (0, 1),
}
SURE = HESITANT | {(Stage.ROUTER, 1.0): (0, 1, 0), (Stage.CLASS, 0.5): (1, 2)}
HOPELESS = HESITANT | {(Stage.CLASS, 0.5): (50, 51)}


def test_one_sigma_needs_both_parts_at_once():
    policy = Single((0.5,), 2).policy(PLAN, rule("cohen"), ALPHA)
    assert steps(policy, HESITANT) == [both(Stage.CLASS, 0.5)]


@pytest.mark.parametrize("name", ["paper", "nosplit", "paper-1:4"])
def test_rules_of_two_stages_need_the_router_and_the_expert_it_selects(name):
    policy = DUAL.policy(PLAN, rule(name), ALPHA)
    assert steps(policy, HESITANT) == two_stages(0.5)


def test_fusion_also_wants_the_rivals_that_could_help():
    policy = DUAL.policy(PLAN, rule("fusion"), ALPHA)
    *before, rivals = steps(policy, HESITANT)
    assert before == two_stages(0.5)
    # estimation only: the class is chosen already. The router rules 0.25 out further than the class holds.
    assert rivals == [Stream(Stage.CLASS, Part.ESTIMATION, 1.0)]


@pytest.mark.parametrize(
    "votes",
    [pytest.param(SURE, id="router sure of its choice"), pytest.param(HOPELESS, id="class undecided anyway")],
)
def test_fusion_leaves_rivals_alone_where_they_cannot_help(votes):
    policy = DUAL.policy(PLAN, rule("fusion"), ALPHA)
    assert [s for step in steps(policy, votes) for s in step] == [*both(Stage.ROUTER, 1.0), *both(Stage.CLASS, 0.5)]


def test_all_votes_are_those_of_the_router_and_of_every_expert_at_once():
    assert steps(DUAL.policy(PLAN, rule("fusion"), ALPHA, votes="all"), HOPELESS) == [
        both(Stage.ROUTER, 1.0) + [stream for sigma in SIGMAS for stream in both(Stage.CLASS, sigma)]
    ]


def test_selection_votes_choose_the_expert_whatever_the_estimation_votes_say():
    tally = Tally()
    wanted = DUAL.policy(PLAN, rule("paper"), ALPHA)(tally)
    next(wanted)
    fill(tally, Stream(Stage.ROUTER, Part.SELECTION, 1.0), (0, 0, 1))
    fill(tally, Stream(Stage.ROUTER, Part.ESTIMATION, 1.0), (1, 0, 0))
    assert list(next(wanted)) == two_stages(1.0)[1]


def test_ties_among_the_selection_votes_go_to_the_first():
    policy = DUAL.policy(PLAN, rule("paper"), ALPHA)
    assert steps(policy, HESITANT | {(Stage.ROUTER, 1.0): (0, 1, 1)}) == two_stages(0.5)


def test_prediction_needs_no_selection_votes():
    assert steps(DUAL.predict_policy(PLAN, rule("fusion"), ALPHA), HESITANT) == [
        [Stream(Stage.ROUTER, Part.ESTIMATION, 1.0)],
        [Stream(Stage.CLASS, Part.ESTIMATION, 0.5)],
    ]
    assert steps(Single((0.25,), 2).predict_policy(PLAN, rule("cohen"), ALPHA), HESITANT) == [
        [Stream(Stage.CLASS, Part.ESTIMATION, 0.25)]
    ]


def test_labels_need_every_expert_at_once():
    streams = Labels((0.25, 0.5), 2)
    assert steps(streams.wanted(PLAN), HESITANT) == [[Stream(Stage.CLASS, Part.ESTIMATION, s) for s in (0.25, 0.5)]]


def test_assigning_needs_the_router_alone():
    assert steps(Assigned(SIGMAS, 0, 1.0).wanted(PLAN), HESITANT) == [[Stream(Stage.ROUTER, Part.ESTIMATION, 1.0)]]


@pytest.mark.parametrize("units", [1, 2, 3], ids=lambda u: f"{u} of 3 units of the rival")
def test_fusion_goes_on_where_a_rival_was_being_sampled(units):
    """As after a kill: some units of the rival's votes are on record, the others are not."""
    tally = Tally()
    for (stage, sigma), counts in HESITANT.items():
        if (stage, sigma) in ((Stage.ROUTER, 1.0), (Stage.CLASS, 0.5)):
            for stream in both(stage, sigma):
                fill(tally, stream, counts)
    rival = Stream(Stage.CLASS, Part.ESTIMATION, 1.0)
    fill(tally, rival, (0, 1))
    kept = dict(list(tally.counts[rival].items())[:units])
    tally.counts[rival] = kept
    asked = [s for step in DUAL.policy(PLAN, rule("fusion"), ALPHA)(tally) for s in step]
    # The rival is asked for as long as it is incomplete, and nothing is asked for that an unbroken run would not.
    unbroken = [*both(Stage.ROUTER, 1.0), *both(Stage.CLASS, 0.5), rival]
    assert set(asked) <= set(unbroken)
    assert units == 3 or rival in asked
