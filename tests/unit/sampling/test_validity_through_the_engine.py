"""Validity from end to end: half-space networks of known radius, through the real noise, engine and rules.

A network that asks whether one pixel exceeds (m + 1/2) / 255 is, composed with rounding to grey levels, exactly a
half-space of the image plus Gaussian noise. The smoothed answer at grey level k therefore changes at distance
|k - m - 1/2| / 255, neither sooner nor later. Sigma is chosen such that the bound fails as often as its level allows.

A trial is an id: noise is addressed by it, so equal images under different ids are independent trials. The event is a
radius beyond the true one, or a wrong class. It is tested against probability alpha by an exact binomial test that
rejects a valid procedure with probability at most `FALSE_ALARM`. Sabotaged noise must be rejected by the same test.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import betaincinv, ndtri
from scipy.stats import binom
from torch import nn

from dualrs import DualSmoothed, Smoothed
from dualrs.sampling import batches
from dualrs.sampling.noise import draw_block
from dualrs.votes import Part

ALPHA = 0.1
FALSE_ALARM = 1e-6
N = 268  # discreteness costs least here: a fair coin is called loaded with probability 0.0997 at level 0.1
SEEDS, TRIALS = range(4), 500  # trials under each seed
LEVEL, CUT = 200, 127  # grey level of the pixel, and m
MARGIN = (LEVEL - CUT - 0.5) / 255


class HalfSpace(nn.Linear):
    """Two linear logits: 1 where a pixel lies beyond (m + 1/2) / 255, else 0."""

    def __init__(self, pixel, cut, pixels=2):
        super().__init__(pixels, 2)
        with torch.no_grad():
            self.weight.zero_()
            self.weight[1, pixel] = 1.0
            self.bias.copy_(torch.tensor([(cut + 0.5) / 255, 0.0]))
        self.eval()

    def forward(self, x):
        return super().forward(x.flatten(1))


class Always(HalfSpace):
    def __init__(self, answer):
        super().__init__(0, -30_000 if answer else 30_000)


def on_the_edge(level, k=190):
    """The probability just below L(k, N, level), which the bound exceeds with probability `level` nearly exactly."""
    return float(betaincinv(k, N - k + 1, level)) * (1 - 1e-9)


def errors(model, margin=MARGIN, n0=40, alpha=ALPHA, **settings):
    """False certificates among all trials."""
    image = np.full((TRIALS, 1, 1, 2), LEVEL, np.uint8)
    false = 0
    for seed in SEEDS:
        found = model.certify(image, n=N, n0=n0, alpha=alpha, seed=seed, ids=range(TRIALS), **settings)
        false += int((~found.abstained & ((found.prediction != 1) | (found.radius > margin))).sum())
    return false


def rejected(false):
    return binom.sf(false - 1, len(SEEDS) * TRIALS, ALPHA) < FALSE_ALARM


def one_sigma(p):
    return Smoothed(HalfSpace(0, CUT), MARGIN / ndtri(p), batch_size=4096)


def two_stages(p):
    """The router's boundary is the nearest; beyond it stands an expert that answers otherwise."""
    experts = {0.25: Always(0), 0.5: Always(1)}
    return DualSmoothed(HalfSpace(0, CUT), experts, (0.25, 0.5), float(MARGIN / ndtri(p)), batch_size=4096)


def test_one_sigma_errs_no_more_often_than_alpha():
    false = errors(one_sigma(on_the_edge(ALPHA)))
    assert not rejected(false)
    assert false > 0.8 * ALPHA * len(SEEDS) * TRIALS  # and the problem is as hard as it was meant to be


@pytest.mark.parametrize(
    ("name", "level"),
    [("nosplit", ALPHA), ("paper", ALPHA / 2), ("fusion", ALPHA / 2)],
    ids=["nosplit", "paper", "fusion"],
)
def test_two_stages_err_no_more_often_than_alpha(name, level):
    false = errors(two_stages(on_the_edge(level)), rule=name)
    assert not rejected(false)
    assert false > 0.8 * level * len(SEEDS) * TRIALS


def same_boundary(share):
    """Router and chosen expert are the same half-space under the same sigma: on shared copies they fail together."""
    sigma_e = float(MARGIN / ndtri(on_the_edge(ALPHA)))
    experts = {0.25: Always(0), sigma_e: HalfSpace(0, CUT)}
    return DualSmoothed(HalfSpace(0, CUT), experts, (0.25, sigma_e), sigma_e, batch_size=4096, share=share)


@pytest.mark.parametrize(
    ("share", "least"), [(True, 0.8 * ALPHA), (False, 0.4 * ALPHA**2)], ids=["shared copies", "copies apart"]
)
def test_stages_at_one_sigma_err_no_more_often_than_alpha(share, least):
    false = errors(same_boundary(share), rule="nosplit")
    assert not rejected(false)
    assert false > least * len(SEEDS) * TRIALS


def coin_toss():
    """Half a grey level from the boundary under sigma 1: whatever is claimed is as good as false."""
    return Smoothed(HalfSpace(0, LEVEL - 1), 1.0, batch_size=4096)


def shared_coin_toss():
    """The same for an expert that votes on the copies of a router which is sure of it."""
    experts = {0.25: Always(0), 1.0: HalfSpace(0, LEVEL - 1)}
    return DualSmoothed(Always(1), experts, (0.25, 1.0), 1.0, batch_size=4096)


def test_expert_at_a_coin_toss_on_shared_copies_errs_no_more_often_than_alpha():
    false = errors(shared_coin_toss(), margin=0.5 / 255, n0=N, rule="nosplit")
    assert not rejected(false)
    assert false > 0.8 * ALPHA * len(SEEDS) * TRIALS


def test_network_at_a_coin_toss_errs_no_more_often_than_alpha():
    false = errors(coin_toss(), margin=0.5 / 255, n0=N)
    assert not rejected(false)
    assert false > 0.8 * ALPHA * len(SEEDS) * TRIALS


# What must be caught


def test_bound_of_twice_the_level_is_caught():
    assert rejected(errors(one_sigma(on_the_edge(ALPHA)), alpha=2 * ALPHA))


@pytest.mark.parametrize(
    ("sabotage", "model", "margin"),
    [
        pytest.param(
            lambda source, name, image, stream, block, copies: draw_block(
                source, name, image, replace(stream, part=Part.ESTIMATION), block, copies
            ),
            coin_toss(),
            0.5 / 255,
            id="selection votes enter the bound",
        ),
        pytest.param(
            lambda source, name, image, stream, block, copies: draw_block(source, name, image, stream, 0, copies),
            one_sigma(on_the_edge(ALPHA)),
            MARGIN,
            id="every block has the same noise",
        ),
        pytest.param(
            lambda *address: (0.9 * draw_block(*address)).astype("i2"),
            one_sigma(on_the_edge(ALPHA)),
            MARGIN,
            id="noise of nine tenths of sigma",
        ),
    ],
)
def test_sabotaged_noise_is_caught(sabotage, model, margin, monkeypatch):
    model.engine.prepare(np.full((1, 1, 2), LEVEL, np.uint8))
    monkeypatch.setattr(batches, "draw_block", sabotage)
    assert rejected(errors(model, margin, n0=N))


def test_shared_selection_votes_in_the_bounds_are_caught(monkeypatch):
    """The copies that selected candidate and class are those of the estimation too, for both stages."""

    def leaking(source, name, image, stream, block, copies):
        return draw_block(source, name, image, replace(stream, part=Part.ESTIMATION), block, copies)

    model = shared_coin_toss()
    model.engine.prepare(np.full((1, 1, 2), LEVEL, np.uint8))
    monkeypatch.setattr(batches, "draw_block", leaking)
    assert rejected(errors(model, 0.5 / 255, n0=N, rule="nosplit"))
