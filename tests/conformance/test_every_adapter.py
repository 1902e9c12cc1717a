"""What holds for every way to wrap a network: one line each, and the suite."""

import copy
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from dualrs import Smoothed
from dualrs.errors import TrainingMode
from dualrs.models.denoise import Denoised, Identity, Preconditioned
from dualrs.models.entropy import EntropyBins
from dualrs.models.hub import HubClassifier
from dualrs.models.noisy import NoisyModel
from dualrs.models.prepare import Preparation
from small import Small


class Told(Small):
    """A network that wants to know the sigma."""

    def forward(self, x, sigma):
        return super().forward(x / (1 + sigma))


class Core(nn.Module):
    """The core of a denoiser."""

    def __init__(self):
        super().__init__()
        self.blur = nn.Conv2d(1, 1, 3, padding=1)
        self.blur.weight.data.fill_(1 / 9)
        self.blur.bias.data.zero_()

    def forward(self, centred, sigma):
        return self.blur(centred) / (1 + sigma.view(-1, 1, 1, 1))


class Transformer(nn.Module):
    """What transformers calls a network: it has a configuration, and its output is no tensor."""

    def __init__(self, seed):
        super().__init__()
        self.body = Small(seed)
        self.config = SimpleNamespace(to_dict=lambda: {"hidden_size": 16})

    def forward(self, x):
        return SimpleNamespace(logits=self.body(x))


ADAPTERS = {
    "plain": Small,
    "told the sigma": Told,
    "behind nothing": lambda seed: Denoised(Identity(), Small(seed)),
    "behind a denoiser": lambda seed: Denoised(Preconditioned(Core()), Small(seed)),
    "behind a denoiser, told the sigma": lambda seed: Denoised(Preconditioned(Core()), Told(seed)),
    "entropy": lambda seed: EntropyBins(Small(seed), (0.3, 0.9)),
    "entropy behind a denoiser": lambda seed: EntropyBins(
        Denoised(Preconditioned(Core()), Told(seed)).eval(), (0.3, 0.9)
    ),
    "of transformers": lambda seed: HubClassifier(Preparation([0.5], [0.5], size=(6, 6)), Transformer(seed)),
}
SIGMAS = (0.25, 1.0)
NOISY = torch.randn(7, 1, 6, 6, generator=torch.Generator().manual_seed(0)) / 2 + 0.5
IMAGES = np.random.default_rng(0).integers(0, 256, (3, 1, 6, 6), dtype=np.uint8)


@pytest.fixture(params=ADAPTERS)
def make(request):
    """Makes the network from a seed."""
    return lambda seed=1: ADAPTERS[request.param](seed).eval()


@pytest.fixture
def model(make):
    return NoisyModel("classifier", make())


@pytest.mark.parametrize("sigma", SIGMAS)
def test_a_row_of_finite_logits_for_each_image(model, sigma):
    with torch.inference_mode():
        logits = model(NOISY, sigma)
    assert logits.shape == (7, 3)
    assert logits.is_floating_point()
    assert logits.isfinite().all()
    assert (logits != logits[0]).any()


@pytest.mark.parametrize("sigma", SIGMAS)
def test_answer_to_an_image_does_not_depend_on_its_company(model, sigma):
    with torch.inference_mode():
        together = model(NOISY, sigma)
        apart = torch.cat([model(NOISY[k : k + 1], sigma) for k in range(len(NOISY))])
        assert torch.allclose(model(NOISY.flip(0), sigma).flip(0), together, atol=1e-5)
    assert torch.allclose(apart, together, atol=1e-5)


def test_answers_are_the_same_every_time_and_no_random_number_is_drawn(model):
    state = torch.get_rng_state()
    with torch.inference_mode():
        assert torch.equal(model(NOISY, 0.5), model(NOISY, 0.5))
    assert torch.equal(torch.get_rng_state(), state)


def test_images_are_left_alone(model):
    kept = NOISY.clone()
    with torch.inference_mode():
        model(NOISY, 0.5)
    assert torch.equal(NOISY, kept)


def test_sigma_changes_the_answer_only_if_the_network_is_told(model):
    with torch.inference_mode():
        low, high = (model(NOISY, sigma) for sigma in SIGMAS)
    if not model.takes_sigma:
        assert torch.equal(low, high)
    assert model.key(0.25) == (model.module, 0.25 if model.takes_sigma else None)


def test_fingerprint_is_of_the_weights(make):
    ours = NoisyModel("classifier", make())
    assert NoisyModel("router", make()).fingerprint == ours.fingerprint
    assert NoisyModel("classifier", copy.deepcopy(ours.module)).fingerprint == ours.fingerprint
    assert NoisyModel("classifier", make(seed=2)).fingerprint != ours.fingerprint
    with torch.no_grad():
        next(ours.module.parameters()).flatten()[0].add_(1)
    assert ours.fingerprint != NoisyModel("classifier", make()).fingerprint


def test_training_mode_of_any_part_is_refused(make):
    for name, _ in make().named_modules():
        network = make()
        network.get_submodule(name).training = True
        with pytest.raises(TrainingMode, match="in training mode"):
            NoisyModel("classifier", network)


def test_network_votes(make):
    """Through the front door: the same votes in batches of any size, and other ones from other weights."""
    found = [
        Smoothed(make(seed), 0.5, batch_size=size).sample(IMAGES, n=300, n0=20, seed=0).votes.estimation.tolist()
        for seed, size in ((1, 100), (1, 64), (2, 100))
    ]
    assert found[0] == found[1]
    assert found[0] != found[2]
    assert {sum(row) for row in found[0]} == {300}
