"""An image fitted to noise that its maker knows, and the secret seed which keeps noise unknown.

The network asks whether most of 255 pixels have odd grey levels. Under sigma = 0.5 a grey level plus its noise is odd
with probability 1/2, whatever the level was (to 1e-15, by the bound on the noise's law), so either class has
probability 1/2 at every image, the true radius is 0, and every certificate is false. An honest call issues one with
probability alpha = 0.001 at most: that is the false-alarm rate of each test that expects an abstention.

The attacker knows seed and id, draws the noise that they address, and turns the parity of one pixel after another, by
one grey level, as long as more of the copies vote for odd. The sabotaged twin draws noise by names alone.
"""

from dataclasses import fields

import numpy as np
import pytest
import torch
from scipy.stats import binomtest
from torch import nn

from dualrs import DualSmoothed, Smoothed
from dualrs.sampling.noise import NoiseSource, draw_block
from dualrs.votes import BLOCK, Part, Purpose, Stage, Stream

SIGMA, ALPHA, N, N0 = 0.5, 0.001, 1000, 100
SEED, NAME = 0, "7"
ODD = 1
FALSE_ALARM = 1e-6
START = np.random.default_rng(0).integers(0, 256, (1, 15, 17), dtype=np.uint8)
SWEEPS = (32, 16, 8, 4, 2)


class MostlyOdd(nn.Module):
    """Class 1 where more pixels have odd grey levels than even ones; their number is odd, so there is no tie."""

    def forward(self, x):
        odd = torch.round(255 * x).remainder(2).flatten(1)
        score = (2 * odd - 1).sum(dim=1, keepdim=True)
        return torch.cat([-score, score], dim=1)


def model():
    return Smoothed(MostlyOdd().eval(), SIGMA, batch_size=500)


def certify(image, seed=SEED, name=NAME):
    return model().certify(image, n=N, n0=N0, alpha=ALPHA, seed=seed, ids=[name])


def all_noise(source, image):
    """The noise of every selection and estimation copy that a certificate of this image rests on."""
    streams = [(Stream(Stage.CLASS, Part.SELECTION, SIGMA), N0), (Stream(Stage.CLASS, Part.ESTIMATION, SIGMA), N)]
    return np.concatenate(
        [draw_block(source, NAME, image, s, b) for s, votes in streams for b in range(votes // BLOCK)]
    )


def fitted(source):
    """`START`, with the parities of its pixels turned one by one so that the copies on this noise vote for odd.

    Coordinate ascent on a soft number of votes, which hardens from sweep to sweep.
    """
    signs = ((START.reshape(-1) + all_noise(source, START)) % 2 * 2 - 1).astype(np.int16)  # (copies, pixels)
    scores, image = signs.sum(axis=1), START.reshape(-1).copy()
    for softness in SWEEPS:
        for pixel in range(image.size):
            turned = scores - 2 * signs[:, pixel]
            if np.tanh(turned / softness).sum() > np.tanh(scores / softness).sum():
                scores, image[pixel] = turned, image[pixel] ^ 1
                signs[:, pixel] *= -1
    return image.reshape(START.shape)


@pytest.fixture(scope="module")
def fitted_by_name():
    return fitted(NoiseSource(Purpose.CERTIFY, SEED, by_name=True))


@pytest.fixture
def names_alone(monkeypatch):
    """The sabotaged twin: neither purpose nor pixels are in the address."""
    honest = NoiseSource.address

    def address(self, input_id, image, stream):
        return honest(NoiseSource(self.purpose, self.seed, by_name=True), input_id, image, stream)

    monkeypatch.setattr(NoiseSource, "address", address)


def test_either_class_has_probability_one_half_at_the_fitted_image(fitted_by_name):
    """On 20,000 copies whose noise the attacker has not seen; a fair coin is rejected with probability 1e-6."""
    network, stream = MostlyOdd(), Stream(Stage.CLASS, Part.ESTIMATION, SIGMA)
    copies = [draw_block(NoiseSource(Purpose.CERTIFY, 1), "x", fitted_by_name, stream, b) for b in range(200)]
    noisy = (np.concatenate(copies) + fitted_by_name.reshape(-1)).astype(np.float32) / 255
    votes = network(torch.from_numpy(noisy)).argmax(dim=1)
    assert binomtest(int(votes.sum()), len(votes), 0.5).pvalue > FALSE_ALARM


def test_image_fitted_to_a_known_seed_is_certified_if_names_alone_address_the_noise(names_alone, fitted_by_name):
    found = certify(fitted_by_name)
    assert found.prediction == ODD
    assert found.radius > 0.1
    assert certify(START).abstained  # nothing but the fit made it so
    assert certify(fitted_by_name, seed=1).abstained
    assert certify(fitted_by_name, name="8").abstained


def test_image_fitted_to_noise_by_name_abstains(fitted_by_name):
    assert certify(fitted_by_name).abstained


def test_image_fitted_to_its_own_noise_has_other_noise_afterwards():
    """The attacker draws the very noise of the image, pixels and all; a changed image is another address."""
    source = NoiseSource(Purpose.CERTIFY, SEED)
    image = fitted(source)
    assert not np.array_equal(image, START)
    copies = START.reshape(-1) + all_noise(source, START) + (image.reshape(-1) - START.reshape(-1)).astype(np.int8)
    assert ((copies % 2).sum(axis=1) > image.size / 2)[N0:].mean() > 0.65  # what the attacker hoped for
    assert certify(image).abstained


# The secret seed

GREY = np.full((2, 1, 4, 4), 128, dtype=np.uint8) + np.arange(2, dtype=np.uint8)[:, None, None, None]


class Brightness(nn.Module):
    """Two classes by the mean of the image."""

    def forward(self, x):
        mean = x.mean(dim=(1, 2, 3))
        return torch.stack([0.45 - mean, mean - 0.45], dim=1)


def one_sigma():
    return Smoothed(Brightness().eval(), 0.5)


def two_stages():
    return DualSmoothed(Brightness().eval(), Brightness().eval(), (0.25, 0.5), 0.5)


CALLS = [
    pytest.param(build, method, images, id=f"{build.__name__} {method} {what}".replace("_", " "))
    for build in (one_sigma, two_stages)
    for method in ("certify", "predict")
    for images, what in ((GREY[0], "one image"), (GREY, "a batch"))
]


def bits(result):
    """Every field of a result, bit by bit."""
    return [(f.name, np.asarray(getattr(result, f.name)).tobytes()) for f in fields(result) if f.name != "seed"]


@pytest.mark.parametrize(("build", "method", "images"), CALLS)
def test_call_without_a_seed_draws_a_secret_one_and_shows_it(build, method, images):
    """Two of 128 bits are equal, or one is below 2^64, with probability below 1e-18."""
    first, second = (getattr(build(), method)(images, n=200, alpha=0.1) for _ in range(2))
    assert first.seed != second.seed
    for found in (first, second):
        assert isinstance(found.seed, int)
        assert 2**64 <= found.seed < 2**128
        assert hex(found.seed) in str(found)
        assert str(found.seed) in repr(found)


@pytest.mark.parametrize(("build", "method", "images"), CALLS)
def test_repeating_a_call_with_its_seed_gives_the_same_bit_for_bit(build, method, images):
    first = getattr(build(), method)(images, n=200, alpha=0.1)
    again = getattr(build(), method)(images, n=200, alpha=0.1, seed=first.seed)
    assert bits(again) == bits(first)
    assert (again.seed, str(again), repr(again)) == (first.seed, str(first), repr(first))


def test_single_entries_of_a_batch_show_the_seed_too():
    found = one_sigma().certify(GREY, n=200, alpha=0.1)
    assert all(one.seed == found.seed and hex(found.seed) in str(one) for one in found)
