"""Denoisers: noise goes in before them, in one place; they add none."""

import numpy as np
import pytest
import torch
from torch import nn

from dualrs import Smoothed
from dualrs.errors import TrainingMode
from dualrs.models.denoise import Denoised, Identity, Preconditioned, per_image, residual_spread
from dualrs.models.lean import LeanUNet

GREY = np.full((3, 32, 32), 128, dtype=np.uint8)


class Watching(nn.Module):
    """A denoiser that keeps what it was given, and gives something else."""

    def __init__(self):
        super().__init__()
        self.seen = []
        self.eval()

    def forward(self, noisy, sigma):
        self.seen.append((noisy.clone(), sigma))
        return noisy.clamp(0, 1)


class Mean(nn.Module):
    """Logits from the mean grey of an image; keeps what it was given."""

    def __init__(self):
        super().__init__()
        self.seen = []
        self.eval()

    def forward(self, x):
        self.seen.append(x.clone())
        grey = x.mean(dim=(1, 2, 3))
        return torch.stack([grey, 1 - grey], dim=1)


class Told(Mean):
    def forward(self, x, sigma):
        self.sigma = sigma
        return super().forward(x)


@pytest.mark.parametrize("sigma", [0.25, 0.5, 1.0])
def test_noise_before_the_denoiser_has_the_stated_standard_deviation(sigma):
    denoiser, head = Watching(), Mean()
    Smoothed(Denoised(denoiser, head), sigma=sigma).certify(GREY, n=500, n0=100, alpha=0.1)
    votes = torch.cat([noisy for noisy, _ in denoiser.seen[-3:-1]])  # two full batches; the last one is padded
    noise = votes - 128 / 255
    count = noise.numel()  # over a million pixels: the standard error of the deviation is sigma / sqrt(2 count)
    assert abs(float(noise.mean())) < 5 * sigma / count**0.5
    assert abs(float(noise.std()) - sigma) < 5 * sigma / (2 * count) ** 0.5 + 0.25 / 255
    assert {s for _, s in denoiser.seen} == {sigma}


def test_head_sees_what_the_denoiser_made_and_no_noise_of_its_own():
    denoiser, head = Watching(), Mean()
    Smoothed(Denoised(denoiser, head), sigma=0.5).certify(GREY, n=200, n0=100, alpha=0.1)
    assert len(head.seen) == len(denoiser.seen)
    for (noisy, _), clean in zip(denoiser.seen, head.seen, strict=True):
        assert torch.equal(clean, noisy.clamp(0, 1))


def test_without_noise_there_is_nothing_to_take_off():
    denoiser, head = Watching(), Mean()
    Denoised(denoiser, head)(torch.rand(2, 3, 32, 32), 0.0)
    assert denoiser.seen == []


def test_head_that_asks_for_sigma_is_told():
    head = Told()
    Denoised(Watching(), head)(torch.rand(2, 3, 32, 32), 0.25)
    assert head.sigma == 0.25


@pytest.mark.parametrize("part", ["denoiser", "head"])
def test_part_in_training_mode_is_refused(part):
    model = Denoised(Watching(), Mean())
    getattr(model, part).train()
    with pytest.raises(TrainingMode, match=part):
        Smoothed(model, sigma=0.5)


def test_evaluated_parts_make_an_evaluated_whole():
    assert not Denoised(Watching(), Mean()).training


def test_identity_leaves_what_is_outside_the_range():
    noisy = torch.randn(2, 3, 4, 4)
    assert torch.equal(Identity()(noisy, 1.0), noisy)


def random_unet():
    generator = torch.Generator().manual_seed(0)
    denoiser = Preconditioned(LeanUNet(8, 1)).eval()
    for p in denoiser.parameters():
        p.data = 0.3 * torch.randn(p.shape, generator=generator)
    return denoiser.requires_grad_(False)


def test_estimate_lies_within_the_unit_range_and_is_repeatable():
    denoiser, noisy = random_unet(), torch.randn(4, 3, 16, 16)
    once, twice = denoiser(noisy, 1.0), denoiser(noisy, 1.0)
    assert torch.equal(once, twice)
    assert float(once.min()) >= 0
    assert float(once.max()) <= 1
    assert once.shape == noisy.shape


def test_core_that_adds_nothing_leaves_the_best_linear_estimate():
    denoiser = Preconditioned(LeanUNet(8, 1)).eval()
    nn.init.zeros_(denoiser.core.out.weight)
    nn.init.zeros_(denoiser.core.out.bias)
    generator = torch.Generator().manual_seed(1)
    clean = 0.5 + 0.25 * torch.randn(64, 3, 16, 16, generator=generator)
    noisy = clean + 0.5 * torch.randn(clean.shape, generator=generator)
    error = denoiser.estimate(noisy, 0.5) - clean
    expected = float(residual_spread(0.5, clean))
    assert float(error.detach().std()) == pytest.approx(expected, rel=0.02)  # 49,152 pixels


def test_sigma_per_image_is_the_same_as_one_after_the_other():
    denoiser, noisy = random_unet(), torch.randn(3, 3, 16, 16)
    sigmas = torch.tensor([0.1, 0.5, 1.2])
    together = denoiser(noisy, sigmas)
    for k, sigma in enumerate(sigmas.tolist()):
        assert torch.allclose(together[k : k + 1], denoiser(noisy[k : k + 1], sigma), atol=1e-5)


def test_per_image_shapes():
    images = torch.zeros(5, 3, 4, 4)
    assert per_image(0.5, images).shape == (1, 1, 1, 1)
    assert per_image(torch.rand(5), images).shape == (5, 1, 1, 1)
