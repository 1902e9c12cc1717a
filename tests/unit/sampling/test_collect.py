"""Collecting, which carries a policy out for many inputs at once."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from dualrs.errors import BadImage
from dualrs.models.noisy import NoisyModel
from dualrs.sampling.collect import Input, Memory, Progress, collect
from dualrs.sampling.engine import Engine
from dualrs.sampling.noise import NoiseSource
from dualrs.schemes import Dual, rule
from dualrs.votes import Purpose, SamplingPlan, Stage, Tally

SIGMAS = (0.25, 0.5, 1.0)
DUAL = Dual(SIGMAS, 2, 1.0)


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

    policy = DUAL.policy(plan, rule(name), 0.01)
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
