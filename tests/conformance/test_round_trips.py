"""Saved, named by its place and loaded again, a network casts the same votes."""

import numpy as np
import pytest
from small_networks import randomised, small_unet
from torch import nn

from dualrs import Smoothed
from dualrs.models.architectures import build
from dualrs.models.card import Architecture, Card
from dualrs.models.denoise import Denoised
from dualrs.models.diffusion import DiffusionDenoiser, NoiseSchedule
from dualrs.models.weights import save_weights
from dualrs.pipeline.networks import Networks

IMAGES = np.random.default_rng(0).integers(0, 256, (2, 3, 16, 16), dtype=np.uint8)


def lean(folder, network, **arguments):
    architecture = Architecture(network=network, arguments=arguments)
    made = randomised(build(architecture))
    card = Card(what="", architecture=architecture, data="", recipe="", seed=0, cost="", scores={}, licence="")
    save_weights(made, card, folder / f"{network}.safetensors")
    return made, f"{network}.safetensors"


def lean_unet(folder):
    return lean(folder, "lean-unet", width=8, middle=1)


def lean_resnet(folder):
    return lean(folder, "lean-resnet", classes=3, widths=[8], blocks=[1])


def router(folder):
    return lean(folder, "resnet20", classes=3)


def diffusers(folder):
    made = DiffusionDenoiser(small_unet(), NoiseSchedule()).eval()
    made.save(folder / "unet-folder")
    return made, "diffusers:unet-folder"


class Logits(nn.Module):
    """What a user would write around a classifier of transformers."""

    def __init__(self, network):
        super().__init__()
        self.network = network.eval()
        self.eval()

    def forward(self, x):
        return self.network((x - 0.5) / 0.5).logits


def transformers(folder):
    from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessorPil

    config = ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, image_size=16, patch_size=8
    )
    network = randomised(ViTForImageClassification(config))
    network.save_pretrained(folder / "vit")
    ViTImageProcessorPil(size={"height": 16, "width": 16}).save_pretrained(folder / "vit")
    return Logits(network), "transformers:vit"


@pytest.mark.parametrize("head", [lean_resnet, router, transformers])
@pytest.mark.parametrize("front", [None, lean_unet, diffusers])
def test_votes_are_the_same_before_and_after(tmp_path, front, head):
    model, reference = head(tmp_path)
    if front is not None:
        denoiser, name = front(tmp_path)
        model, reference = Denoised(denoiser, model), f"{name} | {reference}"
    loaded = Networks(tmp_path)(reference)
    before, after = (Smoothed(m, sigma=0.5).certify(IMAGES, n=200, n0=50, alpha=0.1, seed=0) for m in (model, loaded))
    assert [str(c) for c in before] == [str(c) for c in after]
    assert np.array_equal(before.radius, after.radius)
