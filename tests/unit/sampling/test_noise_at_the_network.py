"""What the networks see: the noise of each vote, bit for bit, however votes are packed into batches."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from watched_networks import Asking, Exact, Watched, WatchedWithSigma, engine, images, noisy_rows, source, unit

from dualrs.sampling.counting import count
from dualrs.votes import Part, Stage

IMAGES = images(4)
SEED = 11


def units(names):
    """Votes of both stages and parts at two sigmas, none of a round number."""
    return [
        wanted
        for name in names
        for wanted in (
            unit(name, 130, Stage.ROUTER, Part.SELECTION, 1.0),
            unit(name, 250, Stage.CLASS, Part.ESTIMATION, 0.25),
            unit(name, 101, Stage.CLASS, Part.ESTIMATION, 1.0),
            unit(name, 7, Stage.CLASS, Part.SELECTION, 0.25),
            unit(name, 120, Stage.CLASS, Part.ESTIMATION, 0.25, start=1000),
        )
    ]


def noise_of(stream, share):
    """The stream whose noise the votes of a stream are on: its own or, at the router's sigma, the router's."""
    return replace(stream, stage=Stage.ROUTER) if share and stream.sigma == 1.0 else stream


def expected(asked, share):
    return Counter(
        row.tobytes()
        for u in asked
        for row in noisy_rows(SEED, u.input_id, noise_of(u.stream, share), u.start, u.stop, IMAGES[u.input_id])
    )


def seen(asked, batch_size, network=Watched, share=False):
    watched = network(Exact(16))
    slots = [(Stage.ROUTER, 1.0), (Stage.CLASS, 0.25), (Stage.CLASS, 1.0)]
    made = engine(dict.fromkeys(slots, watched), IMAGES["0"], batch_size=batch_size, share=share)
    count([made], Asking(IMAGES, asked), source(SEED))
    return watched


@pytest.fixture(scope="module", params=[False, True], ids=["own noise", "shared noise"])
def share(request):
    return request.param


@pytest.fixture(scope="module")
def all_rows(share):
    rows = expected(units(IMAGES), share)
    assert set(rows.values()) == {1}  # noise of 16 pixels never repeats: a row names its vote
    return rows


def test_sharing_moves_the_class_at_the_routers_sigma_to_the_routers_noise_and_nothing_else():
    apart, together = (expected(units(IMAGES), share) for share in (False, True))
    own = [u for u in units(IMAGES) if u.stream.stage is Stage.CLASS and u.stream.sigma == 1.0]
    assert apart - together == expected(own, share=False)
    assert together - apart == expected(own, share=True)


@pytest.mark.parametrize("network", [Watched, WatchedWithSigma], ids=["plain", "told the sigma"])
@pytest.mark.parametrize("batch_size", [1, 7, 64, 1000])
def test_network_sees_every_vote_once_bit_for_bit_whatever_the_batch_size(batch_size, network, share, all_rows):
    watched = seen(units(IMAGES), batch_size, network, share)
    assert Counter(watched.rows()) == all_rows
    assert {len(batch) for batch in watched.batches} == {batch_size}


@pytest.mark.parametrize("seed", range(3), ids=lambda s: f"shuffle {s}")
def test_network_sees_the_same_whatever_the_order_of_inputs(seed, share, all_rows):
    names = np.random.default_rng(seed).permutation(list(IMAGES)).tolist()
    assert Counter(seen(units(names), 64, share=share).rows()) == all_rows


@pytest.mark.parametrize("name", IMAGES, ids=lambda n: f"input {n} alone")
def test_network_sees_the_same_of_an_input_whichever_others_are_there(name, share, all_rows):
    alone = Counter(seen(units([name]), 64, share=share).rows())
    assert alone == expected(units([name]), share)
    assert alone <= all_rows


def test_torch_seed_changes_nothing(share, all_rows):
    torch.manual_seed(99)
    assert Counter(seen(units(IMAGES), 64, share=share).rows()) == all_rows


def test_votes_of_a_stream_arrive_in_their_order():
    """Not needed for counting, but a network that fails on vote k should fail there again."""
    asked = [unit("0", 450, sigma=0.25)]
    rows = seen(asked, 64).rows()
    assert rows == [r.tobytes() for r in noisy_rows(SEED, "0", asked[0].stream, 0, 450, IMAGES["0"])]


def test_values_are_integers_over_255_without_any_clipping():
    batch = np.concatenate(seen(units(["0"]), 64).batches)
    levels = batch.astype(np.float64) * 255
    assert np.abs(levels - np.rint(levels)).max() < 1e-3
    assert batch.min() < 0  # noise leaves the range of images,
    assert batch.max() > 1  # and the network must see that it does
