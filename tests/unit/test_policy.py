"""Policies, which say what votes an input needs next, and collect, which carries them out for many inputs."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from dualrs.certificates import rule
from dualrs.collect import Input, Memory, Progress, collect
from dualrs.errors import BadImage
from dualrs.models.noisy import NoisyModel
from dualrs.policy import assign_policy, certify_policy, complete_policy, label_policy, predict_policy
from dualrs.sampling.engine import Engine
from dualrs.sampling.noise import NoiseSource
from dualrs.votes import Part, Purpose, SamplingPlan, Stage, Stream, Streams, Tally

SIGMAS = (0.25, 0.5, 1.0)
DUAL = Streams(SIGMAS, classes=2, sigma_e=1.0)
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
    policy = certify_policy(Streams((0.5,), classes=2), PLAN, rule("cohen"), ALPHA)
    assert steps(policy, HESITANT) == [both(Stage.CLASS, 0.5)]


@pytest.mark.parametrize("name", ["paper", "nosplit", "paper-1:4"])
def test_rules_of_two_stages_need_the_router_and_the_expert_it_selects(name):
    policy = certify_policy(DUAL, PLAN, rule(name), ALPHA)
    assert steps(policy, HESITANT) == two_stages(0.5)


def test_fusion_also_wants_the_rivals_that_could_help():
    policy = certify_policy(DUAL, PLAN, rule("fusion"), ALPHA)
    *before, rivals = steps(policy, HESITANT)
    assert before == two_stages(0.5)
    # estimation only: the class is chosen already. The router rules 0.25 out further than the class holds.
    assert rivals == [Stream(Stage.CLASS, Part.ESTIMATION, 1.0)]


@pytest.mark.parametrize(
    "votes",
    [pytest.param(SURE, id="router sure of its choice"), pytest.param(HOPELESS, id="class undecided anyway")],
)
def test_fusion_leaves_rivals_alone_where_they_cannot_help(votes):
    policy = certify_policy(DUAL, PLAN, rule("fusion"), ALPHA)
    assert [s for step in steps(policy, votes) for s in step] == [*both(Stage.ROUTER, 1.0), *both(Stage.CLASS, 0.5)]


def test_all_votes_are_those_of_the_router_and_of_every_expert_at_once():
    assert steps(complete_policy(DUAL, PLAN), HOPELESS) == [
        both(Stage.ROUTER, 1.0) + [stream for sigma in SIGMAS for stream in both(Stage.CLASS, sigma)]
    ]


def test_selection_votes_choose_the_expert_whatever_the_estimation_votes_say():
    tally = Tally()
    wanted = certify_policy(DUAL, PLAN, rule("paper"), ALPHA)(tally)
    next(wanted)
    fill(tally, Stream(Stage.ROUTER, Part.SELECTION, 1.0), (0, 0, 1))
    fill(tally, Stream(Stage.ROUTER, Part.ESTIMATION, 1.0), (1, 0, 0))
    assert list(next(wanted)) == two_stages(1.0)[1]


def test_ties_among_the_selection_votes_go_to_the_first():
    policy = certify_policy(DUAL, PLAN, rule("paper"), ALPHA)
    assert steps(policy, HESITANT | {(Stage.ROUTER, 1.0): (0, 1, 1)}) == two_stages(0.5)


def test_prediction_needs_no_selection_votes():
    assert steps(predict_policy(DUAL, PLAN), HESITANT) == [
        [Stream(Stage.ROUTER, Part.ESTIMATION, 1.0)],
        [Stream(Stage.CLASS, Part.ESTIMATION, 0.5)],
    ]
    assert steps(predict_policy(Streams((0.25,), 2), PLAN), HESITANT) == [[Stream(Stage.CLASS, Part.ESTIMATION, 0.25)]]


def test_labels_need_every_expert_at_once():
    streams = Streams((0.25, 0.5), classes=2)
    assert steps(label_policy(streams, PLAN), HESITANT) == [
        [Stream(Stage.CLASS, Part.ESTIMATION, s) for s in (0.25, 0.5)]
    ]


def test_assigning_needs_the_router_alone():
    assert steps(assign_policy(Streams(SIGMAS, classes=0, sigma_e=1.0), PLAN), HESITANT) == [
        [Stream(Stage.ROUTER, Part.ESTIMATION, 1.0)]
    ]


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
    asked = [s for step in certify_policy(DUAL, PLAN, rule("fusion"), ALPHA)(tally) for s in step]
    # The rival is asked for as long as it is incomplete, and nothing is asked for that an unbroken run would not.
    unbroken = [*both(Stage.ROUTER, 1.0), *both(Stage.CLASS, 0.5), rival]
    assert set(asked) <= set(unbroken)
    assert units == 3 or rival in asked


# Collect


class Threshold(nn.Module):
    """Answers by comparing one pixel with some cuts; no arithmetic that could round."""

    def __init__(self, pixel, *cuts):
        super().__init__()
        self.pixel, self.cuts = pixel, torch.tensor(cuts)
        self.eval()

    def forward(self, x):
        above = x.flatten(1)[:, self.pixel, None] > self.cuts
        return nn.functional.one_hot(above.sum(dim=1), len(self.cuts) + 1).float()


def engine(batch_size=100):
    router, classifier = NoisyModel("router", Threshold(0, 0.3, 0.7)), NoisyModel("classifier", Threshold(1, 0.4))
    slots = {(Stage.ROUTER, 1.0): router} | {(Stage.CLASS, s): classifier for s in SIGMAS}
    made = Engine(slots, batch_size=batch_size)
    made.prepare(np.full((1, 2, 2), 128, np.uint8))
    return made


def inputs(count):
    rng = np.random.default_rng(0)
    return [Input(f"input {i}", rng.integers(0, 256, (1, 2, 2), dtype=np.uint8)) for i in range(count)]


class Keeping(Memory):
    """A store that remembers units, and the order of things."""

    def __init__(self):
        self.tallies, self.log = {}, []

    def tally(self, input_id):
        kept = Tally()
        for unit, counts in self.tallies.get(input_id, []):
            kept.add(unit, counts)
        return kept

    def record(self, unit, counts):
        self.tallies.setdefault(unit.input_id, []).append((unit, counts))
        self.log.append(unit)

    def commit(self):
        self.log.append("commit")


SMALL = SamplingPlan(n0=20, n=150)


def collected(items, store=None, plan=SMALL, seed=1, report=None, done=0, name="fusion", batch_size=100):
    finished = {}

    def finish(input_id, tally, seconds):
        assert input_id not in finished, "an input was finished twice"
        finished[input_id] = (tally, seconds)

    policy = certify_policy(DUAL, plan, rule(name), 0.01)
    source = NoiseSource(Purpose.CERTIFY, seed)
    collect(engine(batch_size), items, policy, plan, source, finish=finish, store=store, report=report, done=done)
    return finished


def table(finished, plan=SMALL):
    """Counts of every input in one array."""
    votes = DUAL.gather([finished[name][0] for name in sorted(finished)], plan)
    return np.concatenate([np.hstack([v.selection, v.estimation]) for v in (votes.router, *votes.experts)], axis=1)


def test_every_input_is_finished_once_with_all_its_votes():
    finished = collected(inputs(7))
    assert sorted(finished) == sorted(i.id for i in inputs(7))
    votes = DUAL.gather([t for t, _ in finished.values()], SMALL)  # refuses incomplete rows
    assert (votes.router.sampled == SMALL.n).all()
    assert all(seconds > 0 for _, seconds in finished.values())


def test_votes_do_not_depend_on_order_or_company():
    items = inputs(6)
    whole = table(collected(items))
    np.testing.assert_array_equal(table(collected(items[::-1])), whole)
    halves = collected(items[:3]) | collected(items[3:])
    np.testing.assert_array_equal(table(halves), whole)


def test_votes_in_the_store_are_not_drawn_again():
    store, items = Keeping(), inputs(5)
    whole = table(collected(items, store))
    drawn = [u for u in store.log if u != "commit"]
    assert len(set(drawn)) == len(drawn)
    store.log.clear()
    np.testing.assert_array_equal(table(collected(items, store)), whole)
    assert [u for u in store.log if u != "commit"] == []


@pytest.mark.parametrize("kept", [1, 2, 3, 5, 8])
def test_collection_goes_on_from_any_part_of_the_votes(kept):
    store, items = Keeping(), inputs(3)
    whole = table(collected(items, store))
    drawn = [u for u in store.log if u != "commit"]
    partial = Keeping()
    for unit in drawn[:kept]:
        partial.record(unit, dict(store.tallies[unit.input_id])[unit])
    partial.log.clear()
    np.testing.assert_array_equal(table(collected(items, partial)), whole)
    assert {u for u in partial.log if u != "commit"} == set(drawn[kept:])


def test_everything_is_committed_after_each_batch_and_at_the_end():
    store = Keeping()
    collected(inputs(3), store)
    assert store.log[0] == "commit"
    assert store.log[-1] == "commit"
    # batches hold 100 votes, so no more than a few units can end in one
    longest = max(len(part.split()) for part in " ".join("c" if x == "commit" else "u" for x in store.log).split("c"))
    assert longest <= 6


def test_empty_supply_is_no_error():
    assert collected([]) == {}


def test_inputs_may_come_from_a_generator():
    assert len(collected(i for i in inputs(4))) == 4


def test_images_of_another_shape_are_refused_by_name():
    odd = Input("odd one", np.zeros((1, 2, 3), np.uint8))
    with pytest.raises(BadImage, match=r"input odd one has shape \(1, 2, 3\), earlier ones \(1, 2, 2\)"):
        collected([*inputs(2), odd])


# Progress


@pytest.mark.parametrize("name", ["fusion", "paper"])
@pytest.mark.parametrize("plan", [SMALL, SamplingPlan(n0=20, n=2500)], ids=["one unit a stream", "many"])
def test_progress_is_monotone_and_complete(name, plan):
    reports, store = [], Keeping()
    collected(inputs(6), store, plan=plan, name=name, report=lambda p: reports.append(replace(p)))
    assert reports[0] == Progress(0, 0, 0)
    for earlier, later in pairwise(reports):
        assert earlier.inputs <= later.inputs
        assert earlier.votes <= later.votes
        assert earlier.work <= later.work + 1e-12
        assert later.inputs <= later.work + 1e-9 <= 6 + 1e-6
    last = reports[-1]
    assert last.inputs == 6
    assert last.work == pytest.approx(6)
    assert last.votes == sum(u.votes for u in store.log if u != "commit")


def test_progress_begins_with_what_an_earlier_process_finished():
    reports = []
    collected(inputs(2), report=lambda p: reports.append(replace(p)), done=5)
    assert reports[0] == Progress(5, 0, 5)
    assert reports[-1].inputs == 7
    assert reports[-1].work == pytest.approx(7)


def test_progress_moves_within_an_input_of_many_votes():
    works = []
    collected(inputs(1), plan=SamplingPlan(20, 5000), report=lambda p: works.append(p.work))
    assert len(set(works)) > 5
