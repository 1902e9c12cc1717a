"""Networks in eight bits: they answer as the float network does, by whichever arithmetic, each image by itself."""

import copy
import pickle

import numpy as np
import pytest
import torch

from dualrs import Cascade
from dualrs.errors import BadSetting
from dualrs.models import eight_bits as module
from dualrs.models import zoo
from dualrs.models.card import Architecture, Card
from dualrs.models.eight_bits import EightBitResNet, eight_bits, has_integer_convolutions
from dualrs.models.lean import LeanResNet, LeanUNet
from dualrs.models.noisy import fingerprint
from dualrs.models.weights import load_weights, save_weights

SIGMAS = (0.25, 1.0)
WIDTHS, BLOCKS = (8, 16), (2, 1)
ROUNDING = 0.15  # of what tells images apart, which is little in an untrained network: what rounding may cost


def float_network(conditional=True):
    """With random statistics and steering, and factors that turn some channels round."""
    torch.manual_seed(0)
    network = LeanResNet(10, WIDTHS, BLOCKS, conditional=conditional)
    for layer in network.modules():
        if hasattr(layer, "norm"):
            layer.norm.running_mean.normal_(0, 0.2)
            layer.norm.running_var.uniform_(0.5, 2)
            layer.norm.weight.data[::3] *= -1
            if layer.steer is not None:
                torch.nn.init.normal_(layer.steer.weight, std=0.3)
    return network.eval()


def noisy(sigma, count=256, seed=1):
    generator = torch.Generator().manual_seed(seed)
    colour, texture = (torch.rand(count, 3, side, side, generator=generator) for side in (1, 4))
    clean = 0.7 * colour + 0.3 * torch.nn.functional.interpolate(texture, (16, 16), mode="bilinear")
    return clean + sigma * torch.randn(clean.shape, generator=generator)


@pytest.fixture(scope="module")
def both():
    network = float_network()
    return network, eight_bits(network, [(sigma, noisy(sigma)) for sigma in SIGMAS])


@pytest.fixture
def by_floats(monkeypatch):
    monkeypatch.setattr(module, "has_integer_convolutions", lambda: False)


def error(found, expected):
    return float((found - expected).norm() / (expected - expected.mean(dim=0)).norm())


@pytest.mark.parametrize("sigma", SIGMAS)
def test_answers_are_those_of_the_float_network_but_for_rounding(both, sigma):
    network, made = both
    fresh = noisy(sigma, seed=2)
    with torch.inference_mode():
        expected, found = network(fresh, sigma), made(fresh, sigma)
    assert error(found, expected) < ROUNDING


@pytest.mark.parametrize(
    "sabotage",
    [
        pytest.param(lambda made: made.stem.scale.copy_(made.stem.scale.flip(0)), id="scales of the other sigma"),
        pytest.param(lambda made: made.blocks[1].first.scale.abs_(), id="signs lost"),
        pytest.param(lambda made: made.blocks[2].shortcut.weight.mul_(0), id="no shortcut"),
        pytest.param(lambda made: made.entered.step.mul_(0.2), id="most pixels beyond the last step"),
    ],
)
def test_sabotage_shows(both, sabotage):
    network, made = both[0], copy.deepcopy(both[1])
    sabotage(made)
    fresh = noisy(SIGMAS[0], seed=2)
    with torch.inference_mode():
        assert error(made(fresh, SIGMAS[0]), network(fresh, SIGMAS[0])) > 2 * ROUNDING


@pytest.mark.skipif(not has_integer_convolutions(), reason="torch has no integer convolutions here")
@pytest.mark.parametrize("sigma", SIGMAS)
def test_integers_and_floats_compute_the_same(both, sigma, monkeypatch):
    made, fresh = both[1], noisy(sigma, seed=3)
    with torch.inference_mode():
        by_integers = made(fresh, sigma)
        monkeypatch.setattr(module, "has_integer_convolutions", lambda: False)
        by_floats = made(fresh, sigma)
    assert (by_integers == by_floats).float().mean() > 0.98  # a sum may fall on the middle between two numbers
    assert error(by_integers, by_floats) < 2e-3


def test_an_image_is_answered_by_itself(both):
    made, images = both[1], noisy(1.0, seed=4)
    with torch.inference_mode():
        together = made(images, 1.0)
        alone = torch.cat([made(image[None], 1.0) for image in images[:20]])
        among_others = made(torch.cat([50 * images[100:], images[:100]]), 1.0)[-100:]
    torch.testing.assert_close(together[:20], alone, rtol=0, atol=1e-6)  # the head is in floating point
    assert torch.equal(together[:100], among_others)


def test_a_network_that_is_told_no_sigma(by_floats):
    network = float_network(conditional=False)
    made = eight_bits(network, [(0.5, torch.cat([noisy(0.25), noisy(1.0)]))])
    with torch.inference_mode():
        for sigma in (0.25, 1.0):
            assert error(made(noisy(sigma, seed=2), sigma), network(noisy(sigma, seed=2))) < ROUNDING
    with pytest.raises(BadSetting, match="takes one batch"):
        eight_bits(network, [(sigma, noisy(sigma)) for sigma in SIGMAS])


def test_file_and_back(both, tmp_path):
    made = both[1]
    architecture = Architecture(network="eight-bit-resnet", arguments=made.arguments)
    about = {"what": "a test", "data": "none", "recipe": "none", "seed": 0, "cost": "none", "licence": "none"}
    save_weights(made, Card(architecture=architecture, scores={}, **about), tmp_path / "eight.safetensors")
    loaded = load_weights(tmp_path / "eight.safetensors")
    assert fingerprint(loaded) == fingerprint(made)
    with torch.inference_mode():
        assert torch.equal(loaded(noisy(1.0), 1.0), made(noisy(1.0), 1.0))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))])
def test_copies_answer_alike_after_use(both, copied):
    made = both[1]
    with torch.inference_mode():
        before = made(noisy(1.0), 1.0)
        assert torch.equal(copied(made)(noisy(1.0), 1.0), before)


def test_new_weights_are_used_at_once(both):
    made = copy.deepcopy(both[1])
    with torch.inference_mode():
        before = made(noisy(1.0), 1.0)
        made.load_state_dict(made.state_dict() | {"stem.weight": -made.stem.weight})
        assert not torch.equal(made(noisy(1.0), 1.0), before)


def test_gradients_are_those_of_the_float_network_but_for_rounded_weights(both):
    gradients = []
    for one in both:
        images = noisy(1.0, 32).requires_grad_()
        one(images, 1.0)[:, 0].sum().backward()
        gradients.append(images.grad.flatten())
    assert torch.cosine_similarity(*gradients, dim=0) > 0.98


def test_refusals(both):
    network, made = both
    with pytest.raises(BadSetting, match=r"made for sigma 0.25, 1, .* dualrs quantise"):
        made(noisy(0.5), 0.5)
    with pytest.raises(BadSetting, match="each batch under one of them"):
        made(noisy(1.0, 2), torch.tensor([0.25, 1.0]))
    with pytest.raises(BadSetting, match="made for sigma"):
        made(noisy(1.0, 2))
    with pytest.raises(BadSetting, match="lean-resnet has a form in eight bits, and this is LeanUNet"):
        eight_bits(LeanUNet(8), [(0.25, noisy(0.25))])
    with pytest.raises(BadSetting, match="must be positive; got 0"):
        eight_bits(network, [(0.0, noisy(0.25))])
    with pytest.raises(BadSetting, match="takes one for each"):
        eight_bits(network, [])


def test_the_bundled_one_certifies_as_its_float_network_does():
    images = (255 * noisy(0.0, 3).repeat(1, 1, 2, 2).numpy()).round().astype(np.uint8)
    eight, plain = zoo.load("cifar10-consistent-8bit"), zoo.load("cifar10-consistent")
    assert isinstance(eight, EightBitResNet)
    found, expected = (
        Cascade(one, [0.25, 0.5, 1.0], batch_size=64).sample(images, n=400, seed=0).certify() for one in (eight, plain)
    )
    assert (found.prediction == expected.prediction).all()
    np.testing.assert_allclose(found.radius, expected.radius, atol=0.12)
