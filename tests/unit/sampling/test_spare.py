"""Votes that are cast ahead, in the room that a batch has left: the same as if they had been cast when asked for."""

import numpy as np
import pytest
import torch
from torch import nn
from watched_networks import Asking, Exact, Watched, engine, images, noisy_rows, slow_counts, source, unit

from dualrs import Cascade, DualSmoothed
from dualrs.errors import NonFiniteLogits
from dualrs.sampling.counting import count
from dualrs.sampling.spare import Spare
from dualrs.sampling.work import Request
from dualrs.votes import Part, Stage

SEED = 4
ONE = (Stage.CLASS, 0.5)
IMAGES = images(2)


class LookByLook(Asking):
    """Asks for units one after the other, and says each time what may follow."""

    def __init__(self, pictures, units, stop):
        super().__init__(pictures, units[:1], dict(zip(units, ([u] for u in units[1:]), strict=False)))
        self.stop = stop

    def _with_following(self, requests):
        for request in requests or ():
            asked = request.unit
            start = asked.stop if asked.stream.part is Part.ESTIMATION else 0
            follows = unit(asked.input_id, self.stop - start, asked.stream.stage, sigma=asked.stream.sigma, start=start)
            yield Request(asked, request.member, follows if follows.votes > 0 else None)

    def more(self):
        return list(self._with_following(super().more())) or None

    def deliver(self, request, counts, seconds):
        return list(self._with_following(super().deliver(request, counts, seconds)))


def looks(name, *stops, selection=100):
    first = [unit(name, selection, part=Part.SELECTION)] if selection else []
    return first + [unit(name, b - a, start=a) for a, b in zip((0, *stops), stops, strict=False)]


def run(asked, stop, batch_size, network=None):
    watched = Watched(network or Exact(16))
    work = LookByLook(IMAGES, asked, stop)
    made = engine({ONE: watched}, IMAGES["0"], batch_size=batch_size)
    count([made], work, source(SEED))
    return work, watched


@pytest.mark.parametrize("batch_size", [1, 7, 64, 100, 256, 333, 2000])
@pytest.mark.parametrize("asked", [looks("0", 100, 200, 300, 400, 800, 2000), looks("1", 300, 450, selection=0)])
def test_votes_are_those_of_one_at_a_time(asked, batch_size):
    work, _ = run(asked, asked[-1].stop, batch_size)
    assert list(work.counts) == asked
    for wanted in asked:
        expected = slow_counts(Exact(16), SEED, wanted, IMAGES[wanted.input_id], 3)
        np.testing.assert_array_equal(work.counts[wanted], expected, err_msg=str(wanted))


def test_shifted_spare_votes_would_be_noticed(monkeypatch):
    """The comparison above can fail: votes that are taken one place too late are other votes."""
    monkeypatch.setattr(Spare, "_put", lambda self, request, start, given: self._kept.update(
        {(request.member, request.unit.input_id, request.unit.stream): (start, np.roll(given, 1 + len(given) // 2))}
    ))  # fmt: skip
    with pytest.raises(AssertionError, match="not equal"):
        test_votes_are_those_of_one_at_a_time(looks("0", 100, 200, 300, 400, 800, 2000), 256)


def test_no_row_is_wasted_while_votes_may_follow():
    asked = looks("0", 100, 200, 300, 400, 500, 600, 800, 1000)
    _, watched = run(asked, 1000, 256)
    assert len(watched.batches) == 5  # of 1,100 votes in 256 rows, and not the 8 of as many looks
    assert len(set(watched.rows())) == 1100  # each copy is drawn, and shown, once


def test_what_is_never_asked_for_is_cast_but_not_counted():
    work, watched = run(looks("0", 100), 10_000, 256)
    assert sum(counts.sum() for counts in work.counts.values()) == 200
    assert len(watched.batches) == 1
    assert len(set(watched.rows())) == 256


def test_time_is_that_of_the_network_altogether():
    work, _ = run(looks("0", 100, 200), 1000, 333)
    first, *others = work.seconds.values()
    assert first > 0
    assert others == [0, 0]  # cast with the first


class Poisoned(nn.Module):
    """Has no finite answer to one noisy copy."""

    def __init__(self, row):
        super().__init__()
        self.network, self.row = Exact(16), torch.from_numpy(row)
        self.eval()

    def forward(self, x):
        bad = (x.flatten(1) == self.row).all(dim=1, keepdim=True)
        return self.network(x).masked_fill(bad, torch.nan)


def test_copy_without_an_answer_is_an_error_only_where_it_is_asked_for():
    stream = unit("0", 1).stream
    poisoned = Poisoned(noisy_rows(SEED, "0", stream, 150, 151, IMAGES["0"])[0])
    work, _ = run(looks("0", 100), 1000, 256, poisoned)
    assert len(work.counts) == 2
    with pytest.raises(NonFiniteLogits, match="of input 0"):
        run(looks("0", 100, 200), 1000, 256, poisoned)


@pytest.mark.parametrize("rule", ["paper", "fusion", "cascade"])
def test_certificates_of_single_inputs_take_fewer_batches_and_are_the_same(rule):
    """Of a hundred rows a batch has none to spare here, of a thousand it has many."""
    picture = IMAGES["1"]
    found, batches = [], []
    for batch_size in (100, 1000):
        watched = Watched(Exact(16, 2, seed=1)), Watched(Exact(16))
        if rule == "cascade":
            model = Cascade(watched[1], (0.25, 0.5), batch_size=batch_size)
        else:
            model = DualSmoothed(watched[0], watched[1], (0.25, 0.5), 0.5, batch_size=batch_size)
        model.certify(IMAGES["0"], n=200, seed=3)
        for network in watched:
            network.batches.clear()
        found.append(model.certify(picture, n=5000, alpha=0.01, rule=rule, budget="adaptive", seed=3))
        batches.append(sum(len(network.batches) for network in watched))
    assert found[0] == found[1]
    assert batches[1] < 0.35 * batches[0]
