"""From references to networks: the zoo, files, and a denoiser in front."""

import numpy as np
import pytest
import torch
from torch import nn

from dualrs.build import Networks, build_data
from dualrs.config import DataSection
from dualrs.errors import BadCheckpoint, BadRecipe, BadSetting
from dualrs.models.architectures import build
from dualrs.models.card import Architecture, Card
from dualrs.models.denoise import Denoised
from dualrs.models.weights import save_weights

HEAD = Architecture(network="lean-resnet", arguments={"classes": 3, "widths": [8], "blocks": [1]})
DENOISER = Architecture(network="lean-unet", arguments={"width": 8, "middle": 1})


@pytest.fixture
def folder(tmp_path):
    for name, architecture in (("head", HEAD), ("denoiser", DENOISER)):
        card = Card(
            what="a test", architecture=architecture, data="", recipe="", seed=0, cost="", scores={}, licence=""
        )  # fmt: skip
        save_weights(build(architecture), card, tmp_path / f"{name}.safetensors")
    (tmp_path / "net.py").write_text("from torch import nn\nnumber = 3\nhead = nn.Flatten().eval()\n")
    return tmp_path


def test_weights_are_opened_by_their_path(folder):
    assert isinstance(Networks(folder)("head.safetensors"), nn.Module)


def test_denoiser_goes_in_front(folder):
    model = Networks(folder)("denoiser.safetensors | head.safetensors")
    assert isinstance(model, Denoised)
    assert model(torch.rand(2, 3, 16, 16), 0.5).shape == (2, 3)


def test_two_heads_share_their_denoiser(folder):
    network = Networks(folder)
    one, other = network("denoiser.safetensors | head.safetensors"), network("denoiser.safetensors|net.py:head")
    assert one.denoiser is other.denoiser


@pytest.mark.parametrize("reference", ["a:b | c:d | e:f", "| a:b", "a:b |", ""])
def test_other_forms_are_refused(reference):
    with pytest.raises(BadRecipe, match="neither one network nor DENOISER"):
        Networks()(reference)


def test_part_that_is_no_module_is_named(folder):
    with pytest.raises(BadRecipe, match=r"'net.py:number' leads to a int"):
        Networks(folder)("net.py:number | net.py:head")


def test_unknown_name_lists_the_zoo():
    with pytest.raises(BadSetting, match="the zoo has no network 'elephant'; it has cifar10-"):
        Networks()("zoo:elephant")


@pytest.mark.parametrize("reference", ["gone.safetensors", "openai:gone.pt"])
def test_missing_files_are_refused(reference, tmp_path):
    with pytest.raises(BadCheckpoint, match="gone"):
        Networks(tmp_path)(reference)


def test_bundled_images_are_a_dataset():
    dataset = build_data(DataSection(source="cifar10:subset"))
    assert len(dataset.ids) == 500
    assert dataset.image(0).dtype == np.uint8


def test_resizing_what_cannot_be_resized_is_refused():
    with pytest.raises(BadSetting, match="leave out resize"):
        build_data(DataSection(source="cifar10:subset", resize=64))
