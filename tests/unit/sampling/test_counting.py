"""The engine: which batches the networks get, and that every vote is counted once, where it belongs."""

import math
import threading
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn
from watched_networks import (
    Asking,
    Exact,
    Watched,
    WatchedWithSigma,
    engine,
    filled,
    images,
    noisy_rows,
    slow_counts,
    source,
    unit,
)

from dualrs.data.images import content_id
from dualrs.errors import BadSetting
from dualrs.models.noisy import NoisyModel
from dualrs.sampling import batches
from dualrs.sampling.counting import count
from dualrs.sampling.engine import Engine
from dualrs.sampling.noise import draw_block
from dualrs.votes import Part, Stage

IMAGES = images(3)
ONE = (Stage.CLASS, 0.5)
SEED = 4


def run(models, asked, pictures=IMAGES, follow_up=None, **options):
    """Counts of every unit, by an engine of these options."""
    work = Asking(pictures, asked, follow_up or {})
    made = engine(models, next(iter(pictures.values())), **options)
    count([made], work, source(SEED))
    return work


# Counting


@pytest.mark.parametrize("votes", [1, 7, 99, 100, 101, 999, 1000, 1001, 2500])
@pytest.mark.parametrize("batch_size", [64, 1000])
def test_counts_are_those_of_a_slow_loop(votes, batch_size):
    network = Exact(16)
    asked = [unit(name, votes) for name in list(IMAGES)[: 2 if votes > 1000 else 3]]
    counted = run({ONE: network}, asked, batch_size=batch_size).counts
    assert list(map(len, counted.values())) == [math.ceil(votes / 100)] * len(asked)
    for wanted in asked:
        np.testing.assert_array_equal(
            counted[wanted], slow_counts(network, SEED, wanted, IMAGES[wanted.input_id], answers=3)
        )
        assert counted[wanted].sum() == votes
        assert counted[wanted].max() < votes or votes == 1  # a network that always says the same would prove nothing


@pytest.mark.parametrize("batch_size", [1, 3, 64, 250, 4096])
def test_counts_do_not_depend_on_the_batch_size(batch_size):
    asked = [unit(name, 230, sigma=s) for name in IMAGES for s in (0.25, 0.5)]
    models = dict.fromkeys([(Stage.CLASS, 0.25), ONE], Exact(16))
    reference = run(models, asked, batch_size=100).counts
    counted = run(models, asked, batch_size=batch_size).counts
    assert counted.keys() == reference.keys()
    for wanted in asked:
        np.testing.assert_array_equal(counted[wanted], reference[wanted])


def test_units_in_the_middle_of_a_stream_are_the_middle_of_the_whole():
    whole = unit("0", 500)
    parts = [unit("0", 200, start=0), unit("0", 100, start=200), unit("0", 200, start=300)]
    network = {ONE: Exact(16)}
    together = run(network, [whole], batch_size=64).counts[whole]
    apart = run(network, parts[::-1], batch_size=64).counts
    np.testing.assert_array_equal(np.concatenate([apart[p] for p in parts]), together)


def test_image_shape_is_kept_on_its_way_to_the_network():
    class Shape(nn.Module):
        def forward(self, x):
            assert x.shape[1:] == (3, 2, 5)
            assert x.dtype == torch.float32
            assert not torch.is_grad_enabled()
            return x.mean(dim=(2, 3))

    run({ONE: Shape().eval()}, [unit("0", 100)], images(1, (3, 2, 5)), batch_size=32)


def test_seconds_are_shared_out_among_the_votes():
    work = run({ONE: Exact(16)}, [unit("0", 300), unit("1", 100)], batch_size=100)
    assert all(seconds > 0 for seconds in work.seconds.values())


# Follow-up units


def test_units_asked_for_on_delivery_are_counted_too():
    chain = [unit("0", 130, sigma=0.25), unit("0", 10, part=Part.SELECTION), unit("0", 250), unit("0", 100, start=300)]
    follow_up = {a: [b] for a, b in pairwise(chain)}
    models = dict.fromkeys([(Stage.CLASS, 0.25), ONE], Exact(16))
    chained = run(models, chain[:1], follow_up=follow_up, batch_size=64).counts
    assert set(chained) == set(chain)
    at_once = run(models, chain, batch_size=64).counts
    for wanted in chain:
        np.testing.assert_array_equal(chained[wanted], at_once[wanted])


def test_input_that_needs_nothing_is_passed_over():
    class Sparse(Asking):
        """Inputs between those of the list want no votes, as after a resumed run."""

        def more(self):
            self.turn = getattr(self, "turn", 0) + 1
            return super().more() if self.turn % 3 == 0 else []

    work = Sparse(IMAGES, [unit(name, 50) for name in IMAGES])
    count([engine({ONE: Exact(16)}, IMAGES["0"], batch_size=64)], work, source(SEED))
    assert len(work.counts) == 3


def test_no_work_is_no_batch():
    watched = Watched(Exact(16))
    work = run({ONE: watched}, [], batch_size=64)
    assert watched.batches == []
    assert work.counts == {}


def test_every_batch_is_reported_done_after_its_units_were_delivered():
    order = []

    class Ordered(Asking):
        def deliver(self, request, counts, seconds):
            order.append(request.unit.input_id)
            return super().deliver(request, counts, seconds)

        def batch_done(self):
            order.append("|")

    watched = Watched(Exact(16))
    work = Ordered(IMAGES, [unit(name, 100) for name in IMAGES])
    count([engine({ONE: watched}, IMAGES["0"], batch_size=150)], work, source(SEED))
    assert "".join(order) == "0|12|"
    assert len(watched.batches) == 2


# Packing


@pytest.mark.parametrize("votes", [1, 63, 64, 65, 1000])
def test_every_batch_has_the_one_fixed_shape(votes):
    watched = Watched(Exact(16))
    run({ONE: watched}, [unit("0", votes)], batch_size=64)
    assert [b.shape for b in watched.batches] == [(64, 16)] * math.ceil(votes / 64)


def test_preflight_batches_have_the_fixed_shape_too():
    watched = Watched(Exact(16))
    Engine({ONE: NoisyModel("classifier", watched)}, batch_size=48).prepare(IMAGES["0"])
    assert {b.shape for b in watched.batches} == {(48, 16)}


def test_last_batch_is_padded_with_a_row_it_holds():
    watched = Watched(Exact(16))
    wanted = unit("0", 70)
    run({ONE: watched}, [wanted], batch_size=64)
    last = watched.batches[-1]
    assert filled(last) == 6
    assert (last[6:] == last[0]).all()


def test_many_inputs_share_batches():
    pictures = images(1000, (1, 2, 2))
    watched = Watched(Exact(4))
    work = run({ONE: watched}, [unit(name, 100) for name in pictures], pictures, batch_size=256)
    assert len(watched.batches) == math.ceil(1000 * 100 / 256)
    assert len(work.counts) == 1000
    assert work.batches == len(watched.batches)


def test_sigmas_stages_and_parts_of_a_plain_module_share_batches():
    slots = [(Stage.ROUTER, 1.0), (Stage.CLASS, 0.25), (Stage.CLASS, 1.0)]
    watched = Watched(Exact(16))
    asked = [unit(name, 33, stage, part, sigma) for name in IMAGES for stage, sigma in slots for part in Part]
    run(dict.fromkeys(slots, watched), asked, batch_size=64, share=False)
    assert len(watched.batches) == math.ceil(33 * len(asked) / 64)


def test_stages_that_vote_on_the_same_copies_get_batches_of_them_and_the_rest_shares_the_others():
    slots = [(Stage.ROUTER, 1.0), (Stage.CLASS, 0.25), (Stage.CLASS, 1.0)]
    router, classifier = Watched(Exact(16)), Watched(Exact(16, seed=1))
    asked = [unit(name, 33, stage, part, sigma) for name in IMAGES for stage, sigma in slots for part in Part]
    models = dict(zip(slots, (router, classifier, classifier), strict=True))
    work = run(models, asked, batch_size=64)
    copies = 33 * len(IMAGES) * len(Part)  # of each slot
    assert len(router.batches) == math.ceil(copies / 64)
    assert len(classifier.batches) == 2 * math.ceil(copies / 64)
    assert work.batches == len(classifier.batches)  # those of the router are among them
    assert set(router.rows()) < set(classifier.rows())


def test_module_that_is_told_the_sigma_gets_batches_of_one_sigma_each():
    sigmas = (0.25, 0.5, 1.0)
    watched = WatchedWithSigma(Exact(16))
    asked = [unit(name, 130, sigma=s) for name in IMAGES for s in sigmas]
    run({(Stage.CLASS, s): watched for s in sigmas}, asked, batch_size=64)
    assert len(watched.batches) == len(sigmas) * math.ceil(3 * 130 / 64)
    for sigma, batch in zip(watched.sigmas, watched.batches, strict=True):
        own = {
            row.tobytes()
            for u in asked
            if u.stream.sigma == sigma
            for row in noisy_rows(SEED, u.input_id, u.stream, 0, 130, IMAGES[u.input_id])
        }
        assert {row.tobytes() for row in batch} <= own


def test_each_expert_gets_its_own_sigma_only():
    experts = {(Stage.CLASS, s): Watched(Exact(16, seed=k)) for k, s in enumerate((0.25, 0.5, 1.0))}
    asked = [unit(name, 130, sigma=s) for name in IMAGES for _, s in experts]
    counted = run(experts, asked, batch_size=64).counts
    for (_, sigma), watched in experts.items():
        own = [u for u in asked if u.stream.sigma == sigma]
        expected = {
            row.tobytes() for u in own for row in noisy_rows(SEED, u.input_id, u.stream, 0, 130, IMAGES[u.input_id])
        }
        assert set(watched.rows()) == expected
        for wanted in own:
            np.testing.assert_array_equal(
                counted[wanted], slow_counts(watched.network, SEED, wanted, IMAGES[wanted.input_id], answers=3)
            )


def test_stages_with_different_numbers_of_answers_keep_their_own_counts():
    router, classifier = Exact(16, answers=2), Exact(16, answers=5, seed=1)
    asked = [unit("0", 150, Stage.ROUTER, sigma=1.0), unit("0", 150, sigma=0.5)]
    counted = run({(Stage.ROUTER, 1.0): router, ONE: classifier}, asked, batch_size=64).counts
    assert [counted[u].shape for u in asked] == [(2, 2), (2, 5)]


def test_inputs_are_begun_only_as_batches_need_them():
    """A dataset that does not fit into memory must not be read in advance."""
    begun = []

    class Lazy(Asking):
        def more(self):
            found = super().more()
            if found:
                begun.append(found[0].unit.input_id)
            return found

        def batch_done(self):
            super().batch_done()
            # a batch holds 64 votes, an input has 100, and none is begun for batches to come
            assert len(begun) <= self.batches * 64 / 100 + 1

    pictures = images(50)
    made = engine({ONE: Exact(16)}, pictures["0"], batch_size=64)
    count([made], Lazy(pictures, [unit(name, 100) for name in pictures]), source(SEED))
    assert len(begun) == 50


def test_noise_of_the_next_batch_is_drawn_while_the_network_runs(monkeypatch):
    changed, drawn = threading.Condition(), []

    def draw(*address):
        noise = draw_block(*address)
        with changed:
            drawn.append(address)
            changed.notify()
        return noise

    class Waiting(Exact):
        batches = None

        def forward(self, x):
            if self.batches is not None:
                self.batches += 1
                with changed:
                    assert changed.wait_for(lambda: len(drawn) >= min(self.batches + 1, 5), timeout=30)
            return super().forward(x)

    network = Waiting(16)
    made = engine({ONE: network}, IMAGES["0"], batch_size=100)  # a block is a batch
    network.batches = 0
    monkeypatch.setattr(batches, "draw_block", draw)
    count([made], Asking(IMAGES, [unit("0", 500)]), source(SEED))
    assert network.batches == 5


def test_equal_images_under_two_ids_have_independent_votes():
    same = {"a": IMAGES["0"], "b": IMAGES["0"]}
    counted = run({ONE: Exact(16)}, [unit("a", 1000), unit("b", 1000)], same, batch_size=256).counts
    assert not np.array_equal(counted[unit("a", 1000)], counted[unit("b", 1000)])
    assert content_id(same["a"]) == content_id(same["b"])


# What goes wrong leaves at once


def test_error_of_the_network_comes_out_as_it_is():
    class Broken(nn.Module):
        calls = 0

        def forward(self, x):
            self.calls += 1
            if self.calls > 4:
                raise LookupError("own trouble")
            return Exact(16)(x)

    with pytest.raises(LookupError, match="own trouble"):
        run({ONE: Broken().eval()}, [unit("0", 1000)], batch_size=64)


def test_engine_is_of_use_again_after_an_error():
    class Interrupted(Asking):
        def batch_done(self):
            raise KeyboardInterrupt

    made = engine({ONE: Exact(16)}, IMAGES["0"], batch_size=64)
    wanted = unit("0", 500)
    with pytest.raises(KeyboardInterrupt):
        count([made], Interrupted(IMAGES, [wanted]), source(SEED))
    work = Asking(IMAGES, [wanted])
    count([made], work, source(SEED))
    np.testing.assert_array_equal(work.counts[wanted], run({ONE: Exact(16)}, [wanted], batch_size=64).counts[wanted])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"batch_size": 0}, "batch size must be at least 1", id="no row in a batch"),
        pytest.param({"batch_size": -4}, "batch size must be at least 1", id="fewer than no row"),
        pytest.param({"dtype": "float8"}, "unknown dtype 'float8'; choose one of float32", id="an unknown dtype"),
        pytest.param({"dtype": "float64"}, "unknown dtype 'float64'", id="a dtype that autocast does not know"),
    ],
)
def test_bad_option_is_refused(options, message):
    with pytest.raises(BadSetting, match=message):
        Engine({ONE: NoisyModel("classifier", Exact(16))}, **options)
