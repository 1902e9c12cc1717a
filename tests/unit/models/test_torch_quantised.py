"""Eight-bit networks of torch: with ranges that are fixed they vote like any other; with ranges of the batch, never."""

import warnings

import numpy as np
import pytest
import torch
from torch import nn

from dualrs import Smoothed
from dualrs.errors import BatchDependent

quantization = pytest.importorskip("torch.ao.quantization")
IMAGES = (np.random.default_rng(0).random((3, 1, 8, 8)) * 255).astype(np.uint8)


def network():
    torch.manual_seed(0)
    layers = nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 3)
    return nn.Sequential(*layers).eval()


@pytest.fixture(autouse=True)
def _deprecated():
    """Torch moves eight-bit networks to a package of their own; those that people have are such as these."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def fixed_ranges(plain):
    made = nn.Sequential(quantization.QuantStub(), plain, quantization.DeQuantStub()).eval()
    made.qconfig = quantization.get_default_qconfig(torch.backends.quantized.engine)
    quantization.prepare(made, inplace=True)
    made(torch.rand(64, 1, 8, 8) + 0.5 * torch.randn(64, 1, 8, 8))
    return quantization.convert(made).eval()


def test_network_with_fixed_ranges_is_certified_like_any_other():
    made = Smoothed(fixed_ranges(network()), 0.25, batch_size=32)
    plain = Smoothed(network(), 0.25, batch_size=32)
    votes, theirs = (model.sample(IMAGES, n=300, seed=1) for model in (made, plain))
    found = votes.certify()
    np.testing.assert_array_equal(made.sample(IMAGES, n=300, seed=1).certify().radius, found.radius)
    assert (found.prediction == theirs.certify().prediction).all()
    np.testing.assert_allclose(found.radius, theirs.certify().radius, atol=0.1)


@pytest.mark.parametrize("seed", range(10))
def test_network_whose_ranges_are_those_of_the_batch_is_refused(seed):
    """What `quantize_dynamic` makes: the largest activation of a batch decides how all its images are rounded.

    The images beside the tried ones have to be stronger than these, or the largest stays, and nothing shows.
    """
    images = (np.random.default_rng(seed).random((1, 1, 8, 8)) * 255).astype(np.uint8)
    made = quantization.quantize_dynamic(network(), {nn.Linear}, dtype=torch.qint8).eval()
    with pytest.raises(BatchDependent, match="change with the other images of its batch"):
        Smoothed(made, 0.25).certify(images, n=300)
