"""What a network without noise states is never more than the truth, and twins with one mistake are caught.

Truths: with two pixels, all 65,536 images are looked at; a linear network has one in closed form; and for others an
image that is answered otherwise, found by following the gradient, bounds it from above. Nothing is left to chance.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from dualrs.models import interval, lipschitz
from dualrs.models.interval import Intervals
from dualrs.models.lipschitz import GradientBlock, LipschitzNet
from dualrs.models.stated import LEVELS

EVERY = torch.cartesian_prod(torch.arange(256), torch.arange(256)).view(-1, 1, 1, 2)


def two_pixels(seed):
    """A network on images of two pixels, with everything that intervals know."""
    torch.manual_seed(seed)
    layers = (nn.Conv2d(1, 6, (1, 2)), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(), nn.Linear(6, 5), nn.ReLU())
    net = nn.Sequential(*layers, nn.Linear(5, 3)).eval()
    for p in net.parameters():
        nn.init.normal_(p)
    net[1].running_mean.normal_()
    net[1].running_var.uniform_(0.5, 2)
    with torch.no_grad():  # so that every class has some images
        net[6].bias -= net(EVERY.float() / LEVELS).median(dim=0).values
    return net


def truths(net, images):
    """The distance of each image to the nearest of all that is answered otherwise."""
    points = EVERY.flatten(1).double() / LEVELS
    with torch.no_grad():
        answers = net.double()(EVERY.double() / LEVELS).argmax(dim=1)
    net.float()
    own = answers[images]
    return np.array(
        [
            float((points[answers != y] - points[i]).norm(dim=1).min()) if (answers != y).any() else np.inf
            for i, y in zip(images.tolist(), own, strict=True)
        ]
    )


IMAGES = torch.arange(100, 65_536, 1_311)  # fifty of them


def claimed(net):
    return Intervals(net).state(EVERY[IMAGES].to(torch.uint8)).radius.numpy()


@pytest.mark.parametrize("seed", range(4))
def test_intervals_never_exceed_the_truth(seed):
    net = two_pixels(seed)
    found, truth = claimed(net), truths(net, IMAGES)
    assert (found <= truth).all()
    assert (found > 0).mean() > 0.5


def signed_widths(monkeypatch):
    """Half-widths go through W and not |W|: what cancels there need not cancel in the box."""
    honest = interval._of
    monkeypatch.setattr(interval, "_of", lambda a, w, b, n: honest(a, w, b, n)._replace(sizes=a(w)))


def first_layer_forgotten(monkeypatch):
    """The ball counts as if every unit of the first layer looked at one pixel only, the weightiest."""
    honest = interval._of

    def made(apply, weight, bias, terms):
        least = weight.square() * (weight.abs() == weight.abs().amax(dim=-1, keepdim=True))
        return honest(apply, weight, bias, terms)._replace(squares=apply(0.25 * least))

    monkeypatch.setattr(interval, "_of", made)


def relu_of_the_centre(monkeypatch):
    """A ReLU keeps the half-widths of units that it cuts off in the middle at those of their centre: 0 if negative."""
    honest = interval._pushed

    def pushed(step, box):
        found = honest(step, box)
        return found._replace(half=found.half * (box.centre > 0)) if isinstance(step, nn.ReLU) else found

    monkeypatch.setattr(interval, "_pushed", pushed)


@pytest.mark.parametrize("mistake", [signed_widths, first_layer_forgotten, relu_of_the_centre])
def test_intervals_with_a_forgotten_term_are_caught(mistake, monkeypatch):
    networks = [two_pixels(seed) for seed in range(4)]
    known = [truths(net, IMAGES) for net in networks]
    assert all((claimed(net) <= truth).all() for net, truth in zip(networks, known, strict=True))
    mistake(monkeypatch)
    assert any((claimed(net) > truth).any() for net, truth in zip(networks, known, strict=True))


# 1-Lipschitz networks

PIXELS = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (6, 3, 8, 8), dtype=np.uint8))


def lipschitz_net(seed, blocks=(1, 1, 1)):
    torch.manual_seed(seed)
    net = LipschitzNet(4, width=12, inner=(8, 8, 8), blocks=blocks, side=8).eval()
    for p in net.parameters():
        nn.init.normal_(p, std=0.3)
    return net


def test_linear_network_states_the_truth_less_rounding():
    net = lipschitz_net(0, blocks=(0, 0, 0))
    head = net.weights(torch.float64).head
    logits = net.double()(PIXELS.double() / LEVELS)
    net.float()
    answer, radius, _ = net.state(PIXELS)
    rows = torch.arange(len(PIXELS))
    gaps = (logits[rows, answer][:, None] - logits) / (head[answer][:, None] - head).norm(dim=2)
    truth = gaps.masked_fill(gaps.isnan(), torch.inf).amin(dim=1)
    assert (radius <= truth).all()
    torch.testing.assert_close(radius, truth, rtol=1e-6, atol=1e-7)


def nearest_found(net, steps=60):
    """How far away an image is that the network answers otherwise, by following the gradient; from above."""
    weights = net.verified().weights
    start = PIXELS.double() / LEVELS
    with torch.no_grad():
        answer = net._logits(start, weights).argmax(dim=1)
    rows, x, best = torch.arange(len(start)), start.clone(), torch.full((len(start),), torch.inf).double()
    for _ in range(steps):
        x.requires_grad_(True)
        logits = net._logits(x, weights)
        others = logits.clone()
        others[rows, answer] = -torch.inf
        gap = logits[rows, answer] - others.amax(dim=1)
        far = (x - start).flatten(1).norm(dim=1)
        best = torch.where(gap < 0, torch.minimum(best, far), best).detach()
        (slope,) = torch.autograd.grad(gap.sum(), x)
        size = slope.flatten(1).norm(dim=1).clamp_min(1e-9)
        step = (gap.clamp_min(0) + 1e-3) / size**2
        x = (x - step[:, None, None, None] * slope).detach()
    return best


class Unscaled(GradientBlock):
    """A block whose A is as training left it, twice as long as it should be and more."""

    def kernel(self, dtype):
        return 2.5 * super().kernel(dtype)


def with_unscaled_block(seed):
    """Two classes, whose difference the block stretches as far as its norm allows, wherever the image is."""
    torch.manual_seed(seed)
    net = LipschitzNet(2, width=12, inner=(1, 1, 1), blocks=(0, 0, 1), side=8).eval()
    with torch.no_grad():
        block, head = net.stages[2][0], net.weights(torch.float32).head
        block.weight.copy_((head[0] - head[1]).view_as(block.weight))
        block.bias.fill_(30.0)  # its ReLU is never off
        block.__class__ = Unscaled
        logits = net(PIXELS.float() / LEVELS)
        net.bias[0] -= (logits[:, 0] - logits[:, 1]).median()
    return net


@pytest.mark.parametrize("made", [lipschitz_net, with_unscaled_block])
@pytest.mark.parametrize("seed", range(3))
def test_no_image_is_found_within_what_a_lipschitz_network_states(made, seed):
    net = made(seed)
    found, radius = nearest_found(net), net.state(PIXELS).radius
    assert (radius <= found).all()
    assert (radius > 0).sum() >= len(PIXELS) - 1  # one image may lie on the boundary
    assert torch.isfinite(found).any()


def test_constant_without_one_layer_is_caught(monkeypatch):
    """The layer that is too long is left out of the product."""
    networks = [with_unscaled_block(seed) for seed in range(3)]
    known = [nearest_found(net) for net in networks]
    assert all(net.verified().lipschitz > 2 for net in networks)
    honest = lipschitz.verify

    def without(net):
        found = honest(net)
        return replace(found, steepness=found.steepness / found.lipschitz, lipschitz=1.0)

    monkeypatch.setattr(lipschitz, "verify", without)
    for net in networks:
        net._verified = None
    assert any((net.state(PIXELS).radius > far).any() for net, far in zip(networks, known, strict=True))
