"""DensePure: the arithmetic of its walks, its plurality, and its votes."""

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
import torch
from test_diffusion import COSINE, Scripted
from torch import nn

import dualrs
from dualrs.errors import BadSetting, NonFiniteLogits
from dualrs.models.confidence import ConfidenceBins
from dualrs.models.densepure import Plurality, ReverseRuns, plurality
from dualrs.models.diffusion import DiffusionDenoiser, NoiseSchedule
from dualrs.models.randomness import FromGenerator

pytest.importorskip("diffusers", reason="dualrs[diffusion] is not installed")

CPU = torch.device("cpu")
GUESS = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(3)) * 2 - 1  # what the model takes for clean
NOISY = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(4))


class Watched(Scripted):
    """Remembers all that it is asked."""

    def __init__(self, respond, **config):
        super().__init__(respond, **config)
        self.calls = []

    def forward(self, x, timesteps):
        self.calls.append((x, timesteps))
        return super().forward(x, timesteps)


def randomness(seed=0):
    return FromGenerator(torch.Generator().manual_seed(seed), CPU)


def noises(count, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(NOISY.shape, generator=generator).double() for _ in range(count)]


def denoiser(learned=None, schedule=COSINE):
    """A model that takes one image for the clean one, whatever it sees, and a variance likewise."""
    answer = GUESS if learned is None else torch.cat([GUESS, torch.full_like(GUESS, learned)], dim=1)
    channels = {} if learned is None else {"out_channels": 6}
    schedule = NoiseSchedule(**{**vars(schedule), "prediction_type": "sample"})
    return DiffusionDenoiser(Watched(lambda x: answer, **channels), schedule).eval()


@pytest.mark.parametrize("steps", [2, 3, 5])
@pytest.mark.parametrize("sigma", [0.25, 0.5, 1.0])
def test_timesteps_are_those_of_the_authors(sigma, steps):
    """round(t* - i t*/b), with their t* for the cosine schedule; the first of ours is at most one timestep apart."""
    made = denoiser()
    ReverseRuns(made, runs=1, steps=steps)(NOISY, sigma, randomness())
    star = 4000 * (1 - 2 * 1.008 / math.pi * math.asin(math.sin(math.pi / 2.016) / math.sqrt(1 + 4 * sigma**2)))
    asked = [float(t[0]) * 4 for _, t in made.unet.calls]  # timesteps are scaled by 1/4
    np.testing.assert_allclose(asked, [star - i * star / steps for i in range(steps)], atol=1.5)


@pytest.mark.parametrize("learned", [None, -1.0, 0.4, 1.0])
def test_a_step_is_that_of_ancestral_sampling(learned):
    """In the units of Ho et al.: images times their signal, betas between the timesteps that are visited."""
    made, sigma = denoiser(learned), 0.5
    ReverseRuns(made, runs=1, steps=2)(NOISY, sigma, randomness())
    (_, first), (seen, second) = made.unet.calls
    kept = made.schedule.alphas_cumprod()
    a_t, a_s = (kept[int(t[0] * 4)] for t in (first, second))
    beta = 1 - a_t / a_s
    x_t = a_t.sqrt() * (2 * NOISY.double() - 1)
    mean = a_s.sqrt() * beta / (1 - a_t) * GUESS + (1 - beta).sqrt() * (1 - a_s) / (1 - a_t) * x_t
    posterior = beta * (1 - a_s) / (1 - a_t)
    at = 0.0 if learned is None else (learned + 1) / 2
    spread = (at * beta.log() + (1 - at) * posterior.log()).mul(0.5).exp()
    torch.testing.assert_close(seen.double(), mean + spread * noises(1)[0], atol=1e-5, rtol=0)


def test_the_last_step_draws_nothing_and_walks_begin_together():
    made = denoiser()
    clean = ReverseRuns(made, runs=4, steps=3)(NOISY, 0.5, randomness())
    assert clean.shape == (2, 4, 3, 8, 8)
    for walk in clean.unbind(dim=1):
        torch.testing.assert_close(walk, (GUESS + 1) / 2)
    assert len(made.unet.calls) == 1 + 4 * 2
    assert not torch.equal(made.unet.calls[1][0], made.unet.calls[3][0])  # two walks, fresh draws


def test_sigma_of_each_image():
    made = ReverseRuns(denoiser(), runs=1)
    both = made.denoiser.first_step(NOISY, torch.tensor([0.25, 1.0]))
    assert both[0] < both[1]
    assert made(NOISY, torch.tensor([0.25, 1.0]), randomness()).shape == (2, 1, 3, 8, 8)


class Told(nn.Module):
    """A denoiser that is told the sigma: it takes one image for the clean one, and remembers what it is asked."""

    def __init__(self, clean):
        super().__init__()
        self.clean, self.calls = clean, []
        self.eval()

    def forward(self, noisy, sigma):
        self.calls.append((noisy, sigma))
        return self.clean


def test_steps_of_other_denoisers_are_sigmas():
    made = Told((GUESS + 1) / 2)
    sigma = torch.tensor([0.25, 1.0])
    clean = ReverseRuns(made, runs=2, steps=3)(NOISY, sigma, randomness())
    assert clean.shape == (2, 2, 3, 8, 8)
    asked = torch.stack([told for _, told in made.calls])
    torch.testing.assert_close(asked, torch.outer(torch.tensor([3, 2, 1, 2, 1]) / 3, sigma))
    (began, _), (seen, _), *_ = made.calls
    torch.testing.assert_close(began, NOISY)
    share, spread = 4 / 9, (2 / 3) * (5 / 9) ** 0.5 * sigma.view(-1, 1, 1, 1)
    expected = made.clean + share * (NOISY - made.clean) + spread * noises(1)[0].float()
    torch.testing.assert_close(seen, expected)


def test_a_step_from_the_true_image_leaves_the_noise_that_it_says():
    clean = torch.full((4, 3, 64, 64), 0.5)
    noisy = clean + 0.8 * torch.randn(clean.shape, generator=torch.Generator().manual_seed(5))
    made = Told(clean)
    ReverseRuns(made, runs=1, steps=2)(noisy, 0.8, randomness(6))
    seen, sigma = made.calls[1]
    assert float(sigma) == pytest.approx(0.4)
    assert float((seen - clean).std()) == pytest.approx(
        0.4, abs=0.008
    )  # five standard errors of 49,152 numbers are 0.0064


@pytest.mark.parametrize(("runs", "steps"), [(0, 2), (10, 1)])
def test_settings_out_of_range_are_refused(runs, steps):
    with pytest.raises(BadSetting, match=f"at least 1 run of at least 2 steps, got {runs} of {steps}"):
        ReverseRuns(denoiser(), runs, steps)


# The plurality


@pytest.mark.parametrize("runs", [1, 2, 3, 5])
def test_most_runs_decide_and_of_equal_ones_the_first(runs):
    """Against Python's own counter, which keeps the order in which things came: all outcomes of a few runs."""
    every = list(product(range(3), repeat=runs))
    found = plurality(torch.tensor(every), 3)
    assert found.isfinite().all()
    assert found.argmax(dim=1).tolist() == [Counter(answers).most_common(1)[0][0] for answers in every]


def test_many_runs_and_classes():
    answers = torch.randint(100, (500, 200), generator=torch.Generator().manual_seed(0))
    expected = [Counter(row).most_common(1)[0][0] for row in answers.tolist()]
    assert plurality(answers, 100).argmax(dim=1).tolist() == expected
    assert plurality(answers, 100).half().float().isfinite().all()


def test_softmax_is_the_share_of_the_runs():
    shares = plurality(torch.tensor([[2] * 7 + [0] * 3]), 4).softmax(dim=1)
    torch.testing.assert_close(shares[0], torch.tensor([0.3, 0.0, 0.7, 0.0]), atol=0.025, rtol=0)


# As a network


class Head(nn.Module):
    def __init__(self, scale=1.0):
        super().__init__()
        self.scale, self.classes, self.routes = scale, ["cat", "dog"], ((0.25, 0.5), 1.0)
        self.eval()

    def forward(self, x):
        return x.flatten(1)[:, :2] * self.scale


def test_names_routes_and_settings_are_told():
    made = Plurality(ReverseRuns(denoiser()), Head())
    assert (made.classes, made.routes) == (("cat", "dog"), ((0.25, 0.5), 1.0))
    assert "runs=10, steps=2" in repr(made)


def test_attacks_find_a_gradient():
    made, x = Plurality(ReverseRuns(eager(), runs=3), Head()), NOISY.clone().requires_grad_(True)
    made(x, 0.5, randomness())[:, 0].sum().backward()
    assert x.grad.abs().sum() > 0


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_logits_that_are_no_numbers_are_refused_as_ever(bad):
    network = Plurality(ReverseRuns(eager(), runs=2), Head(bad))
    with pytest.raises(NonFiniteLogits):
        dualrs.Smoothed(network, 0.5, batch_size=8).certify(NOISY[0].mul(255).byte(), n=20, n0=5, alpha=0.1)


def eager():
    """A model that believes what it sees."""
    return DiffusionDenoiser(
        Scripted(lambda x: x), NoiseSchedule(**{**vars(COSINE), "prediction_type": "sample"})
    ).eval()


def test_confidence_is_told_beside_the_class():
    network = ConfidenceBins(Plurality(ReverseRuns(eager(), runs=3), Head(40.0)), (0.5, 0.9))
    assert network.takes_randomness
    assert network(NOISY, 0.5, randomness()).shape == (2, 6)


def test_a_u_net_of_diffusers_by_name(tmp_path, monkeypatch):
    """Its votes are the same from run to run."""
    from diffusers import UNet2DModel

    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    unet = UNet2DModel(
        sample_size=8, in_channels=3, out_channels=6, block_out_channels=(8, 8), layers_per_block=1, norm_num_groups=4,
        down_block_types=("DownBlock2D",) * 2, up_block_types=("UpBlock2D",) * 2,
    )  # fmt: skip
    DiffusionDenoiser(unet, NoiseSchedule()).save("unet")
    (tmp_path / "nets.py").write_text(
        "from torch import nn\nnetwork = nn.Sequential(nn.Flatten(), nn.Linear(192, 3)).eval()\n"
    )
    network = dualrs.load("diffusers:unet | densepure(K=3,b=2) | nets.py:network")
    model = dualrs.Smoothed(network, 0.5, batch_size=32)
    image = NOISY[0].mul(255).byte()
    found = [model.certify(image, n=100, n0=20, alpha=0.1, seed=1) for _ in range(2)]
    assert str(found[0]) == str(found[1])
