"""Lean networks: folded layers equal the layers they were folded from."""

import pytest
import torch
from torch import nn

from dualrs.errors import BadImage
from dualrs.models.lean import ConvNorm, LeanResNet, LeanUNet, SigmaCode, fold


def randomised(module, seed=0):
    """Every parameter and every running statistic random, so that no layer is neutral."""
    generator = torch.Generator().manual_seed(seed)
    for p in module.parameters():
        p.data = 0.3 * torch.randn(p.shape, generator=generator)
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean = torch.randn(layer.running_mean.shape, generator=generator)
            layer.running_var = 0.5 + torch.rand(layer.running_var.shape, generator=generator)
    return module.eval()


@pytest.mark.parametrize("conditional", [False, True], ids=["plain", "steered by sigma"])
@pytest.mark.parametrize(("kernel", "stride"), [(3, 1), (3, 2), (1, 1)])
def test_folded_layer_equals_layer_by_layer(conditional, kernel, stride):
    layer = randomised(ConvNorm(6, 8, kernel, stride, conditional=conditional))
    code = torch.randn(1, 32) if conditional else None
    x = torch.randn(4, 6, 8, 8)
    step_by_step = layer.norm(layer.conv(x))
    if conditional:
        gain, shift = layer.steer(code)[:, :, None, None].chunk(2, dim=1)
        step_by_step = step_by_step * (1 + gain) + shift
    assert torch.allclose(layer(x, code), step_by_step, atol=1e-5)


def test_training_and_inference_agree_on_a_batch_whose_statistics_are_the_running_ones():
    layer = randomised(ConvNorm(6, 8, conditional=True))
    x, code = torch.randn(64, 6, 8, 8), torch.randn(1, 32)
    y = layer.conv(x)
    layer.norm.running_mean = y.mean(dim=(0, 2, 3)).detach()
    layer.norm.running_var = y.var(dim=(0, 2, 3), unbiased=False).detach()
    folded = layer(x, code)
    assert torch.allclose(layer.train()(x, code), folded, atol=1e-4)


def test_classifier_told_one_sigma_or_one_per_image_answers_alike():
    network = randomised(LeanResNet(10, (8, 16), (1, 1), conditional=True))
    x = torch.rand(4, 3, 32, 32)
    assert torch.allclose(network(x, 0.5), network(x, torch.full((4,), 0.5)), rtol=1e-3, atol=1e-3)


def test_sigma_changes_the_answer_of_a_conditional_network_only():
    x = torch.rand(4, 3, 32, 32)
    told = randomised(LeanResNet(10, (8, 16), (1, 1), conditional=True))
    assert not torch.allclose(told(x, 0.25), told(x, 1.0))
    plain = randomised(LeanResNet(10, (8, 16), (1, 1)))
    assert torch.equal(plain(x), plain(x, 1.0))


def test_codes_tell_sigmas_apart():
    codes = SigmaCode()(torch.tensor([0.1, 0.25, 0.5, 1.0, 1.2])).detach()
    distances = torch.cdist(codes, codes) + 9 * torch.eye(5)
    assert float(distances.min()) > 0.01


@pytest.mark.parametrize("shape", [(1, 32, 32), (3, 31, 32), (3, 32, 31)], ids=["grey", "odd height", "odd width"])
def test_images_that_cannot_be_folded_are_refused(shape):
    with pytest.raises(BadImage, match="colour images with even sides"):
        fold(torch.zeros(1, *shape))


@pytest.mark.parametrize("sides", [(16, 16), (32, 32), (24, 40)])
def test_denoiser_core_keeps_the_shape(sides):
    x = torch.randn(2, 3, *sides)
    assert randomised(LeanUNet(8, 1))(x, torch.tensor([0.5])).shape == x.shape
