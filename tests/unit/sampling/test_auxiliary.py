"""The auxiliary stream: what a vote draws is its own, whatever the batch, and is a file format."""

import hashlib

import numpy as np
import pytest
import torch
from scipy.stats import kstest
from torch import nn
from watched_networks import Asking, Exact, engine, images, noisy_rows, source, unit

from dualrs.errors import BadModel
from dualrs.models.denoise import Denoised
from dualrs.sampling import counting
from dualrs.sampling.auxiliary import RANDOMNESS, VoteRandomness, votes_of
from dualrs.sampling.counting import count
from dualrs.sampling.noise import NoiseSource
from dualrs.votes import BLOCK, Part, Purpose, Stage, Stream

IMAGES = images(3)
SEED = 4
STREAM = Stream(Stage.CLASS, Part.ESTIMATION, 0.5)
CPU = torch.device("cpu")
ROUTER, EXPERT = (Stage.ROUTER, 1.0), (Stage.CLASS, 1.0)


def votes(first=0, last=8, name="0", stream=STREAM, purpose=Purpose.CERTIFY, seed=SEED, image=None):
    return votes_of(NoiseSource(purpose, seed), name, IMAGES["0"] if image is None else image, stream, first, last)


def draws(some, *size):
    made = VoteRandomness(some, CPU)
    return made.randn(len(some), *size).numpy(), made.rand(len(some), *size).numpy()


# The stream


def test_nothing_may_be_drawn():
    assert [drawn.shape for drawn in draws(votes(), 0)] == [(8, 0), (8, 0)]


def test_the_stream_is_a_file_format():
    """Against the definition in docs/file-formats.md, written out by hand, and against numbers that stay."""
    image = np.arange(16, dtype=np.uint8).reshape(1, 4, 4)
    pixels = hashlib.blake2b(str(image.shape).encode() + image.tobytes(), digest_size=16).hexdigest()
    address = "\0".join([RANDOMNESS, "certify", pixels, "4", "class", "estimation", (0.5).hex(), "0"])
    key = np.frombuffer(hashlib.blake2b(address.encode(), digest_size=16).digest(), "<u8")
    some = votes(7, 9, image=image)
    normal, uniform = draws(some, 5)
    for row, number in enumerate((7, 8)):
        words = np.random.Philox(key=key, counter=[0, 0, 1, number]).random_raw(3).astype("<u8").view("<u4")[:5]
        np.testing.assert_array_equal(uniform[row], (words >> 8) / np.float32(2**24))
    np.testing.assert_array_equal(np.round(normal * 510), [[1272, -1204, 193, 101, 10], [-34, -414, 73, -69, -604]])
    np.testing.assert_array_equal(normal, np.round(normal * 510).astype(np.float32) / np.float32(510))


@pytest.mark.parametrize(
    "other",
    [
        votes(8, 16),
        votes(name="1"),
        votes(seed=5),
        votes(purpose=Purpose.PREDICT),
        votes(image=IMAGES["1"]),
        votes(stream=Stream(Stage.ROUTER, Part.ESTIMATION, 0.5)),
        votes(stream=Stream(Stage.CLASS, Part.SELECTION, 0.5)),
        votes(stream=Stream(Stage.CLASS, Part.ESTIMATION, 0.25)),
    ],
    ids=["number", "id", "seed", "purpose", "pixels", "stage", "part", "sigma"],
)
def test_every_part_of_the_address_draws_otherwise(other):
    for ours, theirs in zip(draws(votes(), 50), draws(other, 50), strict=True):
        assert not (ours == theirs).all(axis=1).any()


def test_every_vote_and_every_draw_of_a_vote_is_another():
    made = VoteRandomness(votes(), CPU)
    rows = torch.cat([made.randn(8, 50), made.randn(8, 50)])
    assert len(torch.unique(rows, dim=0)) == 16


def test_a_row_does_not_depend_on_the_others():
    whole = draws(votes(0, 8), 30)
    for some, places in ((votes(5, 6), [5]), (votes(0, 8)[::-1], range(8)[::-1]), (votes(2, 4) * 2, [2, 3, 2, 3])):
        for ours, theirs in zip(whole, draws(some, 30), strict=True):
            np.testing.assert_array_equal(ours[list(places)], theirs)


def test_numbers_have_the_laws_they_say():
    """Kolmogorov-Smirnov at 1e-6, on fixed draws; the grid of 1/510 is far below what 40,000 numbers can tell."""
    normal, uniform = (drawn.ravel() for drawn in draws(votes(0, 200), 200))
    assert kstest(normal, "norm").pvalue > 1e-6
    assert kstest(uniform, "uniform").pvalue > 1e-6
    assert uniform.min() >= 0
    assert uniform.max() < 1


def test_draws_are_unrelated_to_the_noise_and_to_one_another():
    """Correlations of 25,600 pairs each, at 6 standard errors: below 1e-8 by chance."""
    noise = noisy_rows(SEED, "0", STREAM, 0, 1600, IMAGES["0"]) * 255 - IMAGES["0"].ravel()
    made = VoteRandomness(votes(0, 1600), CPU)
    first, second = made.randn(1600, 16).numpy(), made.randn(1600, 16).numpy()
    for a, b in ((first, noise), (first, second), (first[:-1], first[1:])):
        assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 6 / np.sqrt(a.size)


@pytest.mark.parametrize("size", [(), (1,), (5, 1, 4, 4), (1, 4, 4)])
def test_images_may_not_share_what_is_drawn(size):
    for draw in (VoteRandomness(votes(), CPU).randn, VoteRandomness(votes(), CPU).rand):
        with pytest.raises(BadModel, match=r"for a batch of 8: images may not share them.*randomness.randn\(len\(x\)"):
            draw(*size)


# Votes


class Drawing(nn.Module):
    """Exact logits, shuffled by draws of its own; no sum is rounded. A head if it stands behind a denoiser."""

    def __init__(self, seed=0, answers=3):
        super().__init__()
        self.network = Exact(16, answers, seed)
        self.eval()

    def forward(self, x, randomness):
        logits = self.network(x)
        shift = (randomness.rand(len(x), 1) * 4).floor() + (randomness.randn(len(x), 2) * 8).round().sum(
            1, keepdim=True
        )
        return logits + 4096 * torch.cos(shift * torch.arange(logits.shape[1])).round()


class DrawingDenoiser(nn.Module):
    """Adds a whole grey level or none, by draws of its own."""

    def forward(self, noisy, sigma, randomness):
        return noisy + (randomness.rand(*noisy.shape) < 0.5) / 255


def by_hand(network, u, stage=None):
    """Counts of a unit, one vote at a time."""
    stream = u.stream if stage is None else Stream(stage, u.stream.part, u.stream.sigma)
    image = IMAGES[u.input_id]
    counts = np.zeros((u.blocks, 3), dtype=np.int64)
    rows = noisy_rows(SEED, u.input_id, stream, u.start, u.stop, image)
    for number, row in enumerate(rows):
        own = VoteRandomness(
            votes_of(source(SEED), u.input_id, image, stream, u.start + number, u.start + number + 1), CPU
        )
        told = {"sigma": 1.0} if isinstance(network, Denoised) else {}
        logits = network(torch.from_numpy(row).view(1, *image.shape), randomness=own, **told)
        counts[number // BLOCK, int(logits.argmax())] += 1
    return counts


def run(models, units, **options):
    work = Asking(IMAGES, units)
    count([engine(models, IMAGES["0"], **options)], work, source(SEED))
    return work.counts


@pytest.mark.parametrize("batch_size", [1, 37, 100, 512])
def test_votes_are_those_of_one_copy_at_a_time(batch_size):
    units = [
        unit(name, votes, part=part)
        for name in IMAGES
        for part, votes in ((Part.SELECTION, 30), (Part.ESTIMATION, 150))
    ]
    counted = run({(Stage.CLASS, 0.5): Drawing()}, units, batch_size=batch_size)
    for u in units:
        np.testing.assert_array_equal(counted[u], by_hand(Drawing(), u))


def test_votes_do_not_depend_on_the_order_of_units():
    units = [unit(name, 150, start=start) for name in IMAGES for start in (0, 200, 400)]
    forth, back = (run({(Stage.CLASS, 0.5): Drawing()}, some, batch_size=64) for some in (units, units[::-1]))
    for u in units:
        np.testing.assert_array_equal(forth[u], back[u])


@pytest.mark.parametrize(
    ("router", "expert"),
    [
        (Denoised(front := DrawingDenoiser().eval(), Drawing(1)), Denoised(front, Drawing(2))),
        (Drawing(1), Drawing(2)),
    ],
    ids=["behind a denoiser that draws too", "alone"],
)
def test_stages_that_share_copies_draw_what_they_would_draw_alone(router, expert):
    models = {ROUTER: router, EXPERT: expert}
    units = [unit(name, 150, stage, sigma=1.0) for name in IMAGES for stage, _ in models]
    together = run(models, units, batch_size=64)
    for (stage, _), network in models.items():
        for u in (u for u in units if u.stream.stage is stage):
            np.testing.assert_array_equal(together[u], run(models, [u], batch_size=64)[u])
            np.testing.assert_array_equal(together[u], by_hand(network, u, Stage.ROUTER))


def test_network_beside_one_that_draws_votes_as_ever():
    units = [unit(name, 150, stage, sigma=1.0) for name in IMAGES for stage in Stage]
    plain, beside = (
        run({ROUTER: router, EXPERT: Exact(16)}, units, batch_size=64) for router in (Exact(16), Drawing())
    )
    for u in units:
        if u.stream.stage is Stage.CLASS:
            np.testing.assert_array_equal(plain[u], beside[u])


def test_networks_that_draw_nothing_cost_nothing(monkeypatch):
    def never(*_):
        raise AssertionError

    monkeypatch.setattr(counting, "votes_of", never)
    run({(Stage.CLASS, 0.5): Exact(16)}, [unit("0", 150)], batch_size=64)
