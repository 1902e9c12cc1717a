"""The adaptive policy, on votes of models that are only probabilities: what it asks for, when it stops and resumes."""

import numpy as np
import pytest
from simulated_votes import Voters, adaptive_plan, expert, router, same_votes, votes_of

from dualrs.policy import Grid, Tolerance
from dualrs.schemes import Dual, Single, rule
from dualrs.theory.looks import planned_looks
from dualrs.votes import Part, SamplingPlan, Stage, Tally

ALPHA = 0.001
ONE = Single((0.5,), 3)
DUAL = Dual((0.25, 0.5, 1.0), 3, 1.0)
PLAN = adaptive_plan()
TWO_STAGE = ("paper", "paper-1:4", "nosplit", "fusion", "fusion-pair")


def models(router_p=(0.0, 1.0, 0.0), **experts):
    """Probabilities of a router, which is sure of 0.5, and of experts, which are sure of class 1, unless given."""
    sure = (0.0, 1.0, 0.0)
    p = {sigma: experts.get(f"at_{i}", sure) for i, sigma in enumerate(DUAL.sigmas)}
    return {(Stage.ROUTER, 1.0): router_p} | {(Stage.CLASS, sigma): p[sigma] for sigma in DUAL.sigmas}


def one(p):
    return {(Stage.CLASS, 0.5): p}


def run(probabilities, target, name=None, plan=PLAN, alpha=ALPHA, seed=0, share=True, streams=None):
    """Votes asked for of each stream, the certificate from them, and the voters."""
    streams = streams or (DUAL if (Stage.ROUTER, 1.0) in probabilities else ONE)
    found = rule(name or ("fusion" if streams is DUAL else "cohen"))
    voters = Voters(probabilities, seed, share)
    tally = voters.drive(streams.policy(plan, found, alpha, target=target), plan)
    return votes_of(tally), found.certify(streams.gather([tally], plan), alpha)[0], voters


# What is asked for


def test_one_sigma_begins_with_its_selection_votes_and_the_first_look():
    _, _, voters = run(one((0.0, 1.0, 0.0)), Grid((0.25,)))
    assert voters.asked == [{expert(0.5, Part.SELECTION): 20, expert(0.5): 100}]


def test_two_stages_begin_with_the_router_and_then_the_expert_that_it_selects():
    _, _, voters = run(models(), Grid((0.25,)), "paper")
    assert voters.asked == [
        {router(1.0, Part.SELECTION): 20},
        {router(1.0, Part.SELECTION): 20, router(1.0): 100, expert(0.5, Part.SELECTION): 20, expert(0.5): 100},
    ]


def test_looks_follow_one_another():
    """At a coin toss any radius at all is wanted to the end."""
    _, _, voters = run(one((0.45, 0.55, 0.0)), Tolerance(1e-9))
    assert [step[expert(0.5)] for step in voters.asked] == [100, 200, 300, 400, 500, 600, 800]


def test_router_and_expert_at_its_sigma_go_on_together():
    """So that they vote on the same copies."""
    probabilities = models((0.0, 0.05, 0.95), at_2=(0.05, 0.95, 0.0))
    _, _, voters = run(probabilities, Tolerance(1e-9), "nosplit")
    joint = [step for step in voters.asked[2:] if len(step) == 2]
    assert joint
    for step in joint:
        assert set(step) == {router(1.0), expert(1.0)}
        assert len(set(step.values())) == 1


@pytest.mark.parametrize("name", ["paper", "paper-1:4", "nosplit"])
@pytest.mark.parametrize("target", [Grid(), Tolerance(1e-9)], ids=str)
def test_rules_without_rivals_never_ask_for_one(name, target):
    votes, _, _ = run(models((0.05, 0.6, 0.35)), target, name)
    assert {s.sigma for s in votes if s.stage is Stage.CLASS} == {0.5}


def test_class_of_a_rival_is_not_chosen():
    """A rival has to agree with the class of the chosen expert, so its own favourite is never asked for."""
    votes, _, _ = run(models((0.0, 0.6, 0.4)), Tolerance(1e-9))
    assert expert(1.0) in votes
    assert expert(1.0, Part.SELECTION) not in votes


# When it stops


@pytest.mark.parametrize(
    ("probabilities", "target"),
    [
        pytest.param(one((0.0, 1.0, 0.0)), Grid((0.25, 0.5)), id="one sigma, all votes agree"),
        pytest.param(models(), Grid((0.25, 0.5)), id="two stages, all votes agree"),
        pytest.param(models(), Tolerance(5.0), id="any radius is near enough"),
        pytest.param(models((0.0, 0.97, 0.03)), Grid((0.0,)), id="any radius will do"),
    ],
)
def test_sure_cases_stop_at_the_first_look(probabilities, target):
    votes, certificate, _ = run(probabilities, target)
    assert {n for s, n in votes.items() if s.part is Part.ESTIMATION} == {100}
    assert not certificate.abstained


@pytest.mark.parametrize("name", TWO_STAGE)
@pytest.mark.parametrize(
    "probabilities",
    [
        pytest.param(models(at_1=(0.5, 0.5, 0.0)), id="the class is a coin toss"),
        pytest.param(models((0.0, 0.52, 0.48), at_2=(1.0, 0.0, 0.0)), id="the router is, between foes"),
        pytest.param(models((0.34, 0.33, 0.33), at_0=(1.0, 0, 0), at_2=(0, 0, 1.0)), id="the router, between three"),
    ],
)
def test_hopeless_cases_stop_at_the_first_look(probabilities, name):
    """Rivals too: one look is enough to hear that they disagree."""
    votes, certificate, _ = run(probabilities, Grid((0.5, 0.75)), name, plan=adaptive_plan(6400))
    assert certificate.radius < 0.5
    assert {n for s, n in votes.items() if s.part is Part.ESTIMATION} == {100}


def test_the_clearer_the_case_the_sooner_it_stops():
    """On either side of what is wanted: 0.25 needs p = 0.69."""
    asked = [
        run(one((1 - p, p, 0.0)), Grid((0.25,)), plan=adaptive_plan(25_600))[0][expert(0.5)]
        for p in (0.5, 0.65, 0.68, 0.7, 0.73, 0.95)
    ]
    assert asked[0] < asked[1] < asked[2]
    assert asked[3] > asked[4] > asked[5]
    assert asked[0] == asked[5] == 100


def test_hopeless_class_at_one_sigma_stops_at_the_first_look():
    votes, certificate, _ = run(one((0.5, 0.5, 0.0)), Grid((0.25,)), plan=adaptive_plan(6400))
    assert votes[expert(0.5)] == 100
    assert certificate.abstained


def test_grid_asks_for_no_more_than_its_largest_radius_within_reach():
    """p = 0.9 allows 0.5 * Phi^-1(0.9) = 0.64: 0.5 is reached sooner than 0.6, and 0.75 is given up."""
    votes = {r: run(one((0.1, 0.9, 0.0)), Grid(r), plan=adaptive_plan(25_600))[0] for r in [(0.25,), (0.5,), (0.6,)]}
    asked = [votes[r][expert(0.5)] for r in sorted(votes)]
    assert asked == sorted(set(asked))
    out_of_reach = run(one((0.1, 0.9, 0.0)), Grid((0.25, 0.75)), plan=adaptive_plan(25_600))
    assert out_of_reach[0][expert(0.5)] < 25_600
    assert 0.25 <= out_of_reach[1].radius < 0.75


def test_smaller_tolerance_takes_more_votes():
    asked = [
        run(one((0.1, 0.9, 0.0)), Tolerance(t), plan=adaptive_plan(25_600))[0][expert(0.5)]
        for t in (0.5, 0.1, 0.03, 1e-9)
    ]
    assert asked == sorted(asked)
    assert len(set(asked)) >= 3
    assert asked[-1] == 25_600


def test_radius_within_the_tolerance_of_what_the_whole_n_would_give():
    plan = adaptive_plan(25_600)
    _, early, _ = run(one((0.1, 0.9, 0.0)), Tolerance(0.05), plan=plan)
    _, late, _ = run(one((0.1, 0.9, 0.0)), Tolerance(1e-9), plan=plan)
    assert early.radius > late.radius - 0.05


def test_each_stage_goes_only_as_far_as_the_other_lets_it_matter():
    """The class could reach 1.5, but the router holds the radius near 0.84: the class need not go beyond that."""
    votes, certificate, _ = run(models((0.1, 0.8, 0.1)), Grid(), "nosplit", plan=adaptive_plan(25_600))
    assert 0.75 <= certificate.radius < 1
    alone, beyond, _ = run(models(), Grid(), "nosplit", plan=adaptive_plan(25_600))
    assert beyond.radius >= 1.5
    assert votes[expert(0.5)] < votes[router(1.0)]
    assert 5 * votes[expert(0.5)] < alone[expert(0.5)]
    # And the other way round.
    votes, certificate, _ = run(models(at_1=(0.2, 0.8, 0.0)), Grid(), "nosplit", plan=adaptive_plan(25_600))
    assert 0.25 <= certificate.radius < 0.5
    assert 5 * votes[router(1.0)] < votes[expert(0.5)]


# Rivals


def test_fusion_asks_a_rival_that_can_raise_the_radius_and_profits():
    hesitant = models((0.0, 0.6, 0.4))
    votes, certificate, _ = run(hesitant, Grid(), plan=adaptive_plan(3200))
    assert expert(1.0) in votes
    assert expert(0.25) not in votes  # the router has not one vote for it
    _, without, _ = run(hesitant, Grid(), "nosplit", plan=adaptive_plan(3200))
    assert certificate.radius >= 1.0 > 0.25 >= without.radius


@pytest.mark.parametrize("name", ["fusion", "fusion-pair"])
@pytest.mark.parametrize(
    "probabilities",
    [
        pytest.param(models(), id="the router is sure"),
        pytest.param(models((0.0, 0.6, 0.4), at_1=(0.5, 0.5, 0.0)), id="the class is undecided anyway"),
        pytest.param(models((0.02, 0.96, 0.02), at_1=(0.2, 0.8, 0.0)), id="the class ends before the routing does"),
    ],
)
def test_fusion_asks_no_rival_that_cannot(probabilities, name):
    votes, _, _ = run(probabilities, Grid((0.25, 0.5, 0.75)), name, plan=adaptive_plan(1600))
    assert {s.sigma for s in votes if s.stage is Stage.CLASS} == {0.5}


def test_rival_is_heard_before_much_is_spent_on_others():
    """One look of it may show that the target is out of reach, whatever the class and the routing could still do."""
    foes = models((0.34, 0.33, 0.33), at_0=(0.02, 0.98, 0.0), at_1=(1.0, 0.0, 0.0), at_2=(0.0, 0.0, 1.0))
    votes, _, voters = run(foes, Grid((0.5, 0.75)), plan=adaptive_plan(25_600))
    assert voters.asked[2] in ({expert(s): 100} for s in DUAL.sigmas)
    assert {n for s, n in votes.items() if s.part is Part.ESTIMATION} == {100}


def test_rival_that_disagrees_is_given_up_soon():
    votes, certificate, _ = run(models((0.0, 0.6, 0.4), at_2=(1.0, 0, 0)), Grid((0.5,)), plan=adaptive_plan(25_600))
    assert votes.get(expert(1.0), 0) <= 100
    assert certificate.radius < 0.5


# The end


@pytest.mark.parametrize("name", ["cohen", *TWO_STAGE])
@pytest.mark.parametrize(
    "target", [Grid(), Grid((0.0,)), Grid((0.3,)), Tolerance(0.01), Tolerance(1e-9)], ids=lambda t: str(t)[:20]
)
def test_it_ends_whatever_the_votes_with_no_more_than_n_of_any_stream(name, target):
    rng = np.random.default_rng(len(name))
    streams = ONE if name == "cohen" else DUAL
    for seed in range(6):
        probabilities = {
            (stream.stage, stream.sigma): rng.dirichlet([rng.choice([0.1, 1.0, 10.0])] * answers)
            for stream, answers in streams.streams.items()
        }
        votes, certificate, voters = run(probabilities, target, name, seed=seed, share=bool(seed % 2), streams=streams)
        for stream, n in votes.items():
            assert n in PLAN.steps(stream.part)
        assert len(voters.asked) <= 2 + 4 * len(PLAN.looks)
        for before, step in zip(voters.asked, voters.asked[1:], strict=False):
            assert before != step  # something new each time
        assert certificate.radius >= 0


@pytest.mark.parametrize("name", TWO_STAGE)
def test_unplanned_looks_change_nothing_in_the_first_votes(name):
    """Votes of an adaptive run are the first votes of the streams, whatever else is asked."""
    probabilities = models((0.1, 0.6, 0.3), at_1=(0.1, 0.9, 0.0), at_2=(0.2, 0.8, 0.0))
    voters = Voters(probabilities, seed=3, share=True)
    tally = voters.drive(DUAL.policy(PLAN, rule(name), ALPHA, target=Grid()), PLAN)
    for stream, n in votes_of(tally).items():
        given = voters.answers(stream, n)
        assert tally.total(stream, 3).tolist() == np.bincount(given, minlength=3).tolist()


# Resuming


@pytest.mark.parametrize("share", [False, True], ids=["apart", "shared"])
@pytest.mark.parametrize("name", ["nosplit", "fusion"])
@pytest.mark.parametrize("n", [800, 10_000], ids=lambda n: f"n {n}")
def test_a_run_cut_off_anywhere_ends_with_the_votes_of_an_unbroken_one(name, n, share):
    """After any unit that an unbroken run draws, also in the middle of a look, and of what was asked for together."""
    plan = SamplingPlan(20, n, planned_looks(n))
    probabilities = models((0.0, 0.25, 0.75), at_1=(0.1, 0.9, 0.0), at_2=(0.12, 0.88, 0.0))
    policy = DUAL.policy(plan, rule(name), ALPHA, target=Tolerance(0.02))
    voters, units = Voters(probabilities, seed=1, share=share), []
    whole = voters.drive(policy, plan, units=units)
    assert len(units) >= 7
    assert n == 800 or any(unit.start not in (0, *plan.looks) for unit in units)  # several units between two looks
    for kept in range(0, len(units) + 1, 1 if n == 800 else 3):
        partial = Tally()
        for unit in units[:kept]:
            partial.add(unit, voters.count(unit))
        again = []
        assert same_votes(voters.drive(policy, plan, partial, units=again), whole), f"after {kept} units"
        assert again == units[kept:]


def test_votes_of_another_order_do_not_change_what_is_asked():
    """As from several workers: of what was asked for together, any part may be on record when a run is killed."""
    plan = SamplingPlan(20, 6400, planned_looks(6400))
    probabilities = models((0.0, 0.25, 0.75), at_2=(0.12, 0.88, 0.0))
    policy = DUAL.policy(plan, rule("nosplit"), ALPHA, target=Tolerance(0.02))
    voters, units = Voters(probabilities, seed=1), []
    whole = voters.drive(policy, plan, units=units)
    rng = np.random.default_rng(0)
    for _ in range(25):
        partial = Tally()
        for unit in units:
            if rng.random() < 0.7:
                partial.add(unit, voters.count(unit))
        assert same_votes(voters.drive(policy, plan, partial), whole)
