"""The preflight of networks with randomness of their own: they draw from what they are given, each image by itself."""

import pytest
import torch
from test_preflight import IMAGES, LINEAR, ONE, prepared
from torch import nn
from watched_networks import Exact

from dualrs import Aces
from dualrs.errors import BadModel, BatchDependent, NonDeterministic
from dualrs.models.noisy import NoisyModel
from dualrs.sampling.engine import Engine


class Drawing(nn.Module):
    """A module of one function over flattened images and randomness."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.eval()

    def forward(self, x, randomness):
        return self.function(x.flatten(1), randomness)


def noise(x, randomness):
    return randomness.randn(*x.shape)


def kept(cache):
    """What was drawn at first, for ever."""
    return lambda x, randomness: cache.setdefault("drawn", noise(x, randomness))


@pytest.mark.parametrize("batch_size", [1, 2, 3, 32])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, r: (x + noise(x, r)) @ LINEAR,
        lambda x, r: (x * (r.rand(len(x), 16) < 0.9)) @ LINEAR,
        lambda x, r: (x + noise(x, r) + noise(x, r)) @ LINEAR,
        lambda x, r: x @ LINEAR,
    ],
    ids=["noise", "dropout", "two draws", "none after all"],
)
def test_network_that_draws_for_each_image_passes(function, batch_size):
    assert prepared(Drawing(function), batch_size=batch_size).answers == {ONE: 3}


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda x, r: (x + noise(x, r)[:1]) @ LINEAR, id="the first image's noise for all"),
        pytest.param(lambda x, r: (x + noise(x, r).mean(dim=0)) @ LINEAR, id="the mean noise of the batch"),
        pytest.param(lambda x, r: (x + noise(x, r).roll(1, dims=0)) @ LINEAR, id="the neighbour's noise"),
        pytest.param(
            lambda x, r: (x + noise(x, r)[torch.arange(len(x)) // 2 * 2]) @ LINEAR, id="pairs that share their noise"
        ),
        pytest.param(
            lambda x, r: (x + noise(x, r)[torch.arange(len(x)) % 16]) @ LINEAR, id="halves that share their noise"
        ),
    ],
)
def test_network_that_shares_draws_within_a_batch_is_refused(function):
    with pytest.raises(BatchDependent, match="logits for an image change with what other images of its batch draw"):
        prepared(Drawing(function), batch_size=32)


def test_network_that_draws_and_looks_at_the_whole_batch_is_refused():
    with pytest.raises(BatchDependent, match="change with the other images of its batch: it uses batch statistics"):
        prepared(Drawing(lambda x, r: (x - x.mean(dim=0) + noise(x, r)) @ LINEAR), batch_size=32)


def test_network_that_keeps_what_it_drew_is_refused():
    drawn = kept({})
    with pytest.raises(BatchDependent):
        prepared(Drawing(lambda x, r: (x + drawn(x, r)) @ LINEAR), batch_size=32)


def test_network_that_draws_from_elsewhere_too_is_refused():
    with pytest.raises(NonDeterministic, match="the same randomness: it may draw numbers from the randomness that it"):
        prepared(Drawing(lambda x, r: (x + torch.randn_like(x) + noise(x, r)) @ LINEAR), batch_size=32)


def test_network_that_draws_without_saying_so_is_told_how():
    class Secret(nn.Module):
        def forward(self, x):
            return (x.flatten(1) + torch.randn(16)) @ LINEAR

    with pytest.raises(NonDeterministic, match=r"remove random layers .* draw from a parameter called randomness"):
        prepared(Secret().eval(), batch_size=32)


def test_a_size_without_the_batch_is_refused_in_a_sentence():
    with pytest.raises(BadModel, match=r"size \(16,\) for a batch of 32: images may not share them"):
        prepared(Drawing(lambda x, r: (x + r.randn(16)) @ LINEAR), batch_size=32)


def test_networks_that_draw_are_known_again():
    def said(module):
        made = Engine({ONE: NoisyModel("classifier", module)}, batch_size=50)
        made.prepare(IMAGES["0"])
        return made.identify(IMAGES["0"])

    first, again, other = (said(Drawing(lambda x, r, s=s: (x + s * noise(x, r)) @ LINEAR)) for s in (1, 1, 1.5))
    assert first == again != other


def test_core_network_may_not_draw():
    with pytest.raises(BadModel, match="core network answers an input once and without noise, so it may not draw"):
        Aces(Exact(16), Drawing(lambda x, r: x @ LINEAR), 0.5, [0.5])
