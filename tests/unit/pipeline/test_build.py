"""From references to networks: the zoo, files, and a denoiser in front."""

import numpy as np
import pytest
import torch
from torch import nn

from dualrs.config import DataSection
from dualrs.errors import BadCheckpoint, BadRecipe, BadSetting
from dualrs.models.architectures import build
from dualrs.models.card import Architecture, Card
from dualrs.models.denoise import Denoised
from dualrs.models.reference import Reference
from dualrs.models.weights import save_weights
from dualrs.pipeline.build import build_data
from dualrs.pipeline.networks import Networks, architecture_of, trained_reference

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


def test_trained_weights_go_into_what_another_reference_makes(folder):
    (folder / "own.py").write_text(
        "from dualrs.models.architectures import build\n"
        "from dualrs.models.card import Architecture\n"
        f"head = build(Architecture.model_validate_json({HEAD.model_dump_json()!r}))\n"
    )
    plain, trained = Networks(folder)("own.py:head"), Networks(folder)("own.py:head < head.safetensors")
    assert not torch.equal(plain.head.weight, trained.head.weight)  # and the object of the module is as it was
    assert torch.equal(trained.head.weight, Networks(folder)("head.safetensors").head.weight)


def test_weights_that_do_not_fit_are_refused(folder):
    with pytest.raises(BadCheckpoint, match="does not fit"):
        Networks(folder)("net.py:head < head.safetensors")


def test_weights_for_a_class_are_refused(folder):
    (folder / "kinds.py").write_text("from torch import nn\n\nclass Head(nn.Module):\n    pass\n")
    with pytest.raises(BadRecipe, match="leads to a type, not to a torch module"):
        Networks(folder)("kinds.py:Head < head.safetensors")


def test_weights_of_own_code_are_not_opened_without_it(folder):
    card = Card(
        what="", architecture=Architecture(network="own.py:make"), data="", recipe="", seed=0, cost="", scores={},
        licence="",
    )  # fmt: skip
    save_weights(nn.Linear(2, 2), card, folder / "own.safetensors")
    with pytest.raises(BadCheckpoint, match=r"write 'own\.py:make < .*own\.safetensors'"):
        Networks(folder)("own.safetensors")


def test_own_network_is_made_from_the_seed(folder):
    (folder / "own.py").write_text("from torch import nn\ndef make():\n    return nn.Linear(3, 2)\n")
    reference = f"{folder}/own.py:make"
    networks, own = Networks(), Reference(reference)
    first = networks.fresh(own, {}, 0)
    assert first.architecture == Architecture(network=reference)
    assert torch.equal(first.start.weight, networks.fresh(own, {}, 0).start.weight)
    assert not torch.equal(first.start.weight, networks.fresh(own, {}, 1).start.weight)
    with pytest.raises(BadRecipe, match="takes no arguments"):
        networks.fresh(own, {"width": 3}, 0)


def test_network_is_trained_behind_the_denoiser_of_its_reference(folder):
    networks = Networks(folder)
    begun = networks.fresh(Reference("lean-resnet", front=Reference("denoiser.safetensors")), HEAD.arguments, 0)
    tuned = networks.going_on(Reference.parse(f"denoiser.safetensors | {folder}/head.safetensors"))
    assert begun.architecture == tuned.architecture == HEAD
    assert (begun.start, tuned.start) == (None, networks(f"{folder}/head.safetensors"))
    assert begun.denoiser is tuned.denoiser is networks("denoiser.safetensors")


def test_what_goes_on_from_our_weights_is_ours(folder):
    assert architecture_of(Reference(f"{folder}/head.safetensors")) == HEAD
    assert architecture_of(Reference("zoo:cifar10-classifier")).network == "lean-resnet"
    assert architecture_of(Reference.parse("net.py:x < w.safetensors")) == Architecture(network="net.py:x")
    assert architecture_of(Reference("zoo:ffdnet")) == Architecture(network="zoo:ffdnet")
    assert str(trained_reference(HEAD, folder / "new.safetensors")) == f"{folder}/new.safetensors"
    own = Architecture(network="net.py:x")
    assert str(trained_reference(own, folder / "new.safetensors")) == f"net.py:x < {folder}/new.safetensors"
