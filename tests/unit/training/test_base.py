"""Training base networks end to end, on a problem so small that a few seconds solve it."""

import numpy as np
import pytest
import torch

from dualrs.data.dataset import ArrayDataset
from dualrs.errors import BadSetting
from dualrs.models.architectures import build
from dualrs.models.card import Architecture, Card
from dualrs.models.denoise import Denoised
from dualrs.models.weights import load_weights
from dualrs.training.base import Training, train_classifier, train_denoiser
from dualrs.training.classifier import fit_classifier, measure
from dualrs.training.images import TrainingImages
from dualrs.training.loop import Schedule
from dualrs.training.noise import Between, OneOf


def bright_or_dark(count, seed):
    """Images of one colour: class 0 is dark, class 1 is bright."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 2, count)
    colour = np.where(labels[:, None], 200, 50) + generator.integers(-20, 20, (count, 3))
    return ArrayDataset(
        np.broadcast_to(colour[:, :, None, None], (count, 3, 16, 16)).astype(np.uint8), labels, name=f"colours {seed}"
    )


TRAIN, TEST = bright_or_dark(256, 0), bright_or_dark(100, 1)
QUICK = Schedule(epochs=6, batch_size=32, rate=5e-3)
UNET = Architecture(network="lean-unet", arguments={"width": 8, "middle": 1})
RESNET = Architecture(network="lean-resnet", arguments={"widths": [8], "blocks": [1]})


@pytest.fixture(scope="module")
def images():
    return TrainingImages(TRAIN)


@pytest.fixture(scope="module")
def denoiser(images, tmp_path_factory):
    path = tmp_path_factory.mktemp("denoiser") / "d.safetensors"
    card = train_denoiser(Training(path, images, TEST, OneOf((0.5,)), QUICK, recipe="the command"), UNET)
    return path, card


def test_denoiser_learns_to_take_noise_off(denoiser):
    path, card = denoiser
    assert card.scores["colours 1 rmse sigma=0.5"] < 0.15  # the best linear estimate leaves 0.22
    assert card.recipe == "the command"
    assert card == Card.read(path.with_suffix(".json"))


def test_classifier_behind_a_denoiser_learns(images, denoiser, tmp_path):
    front = load_weights(denoiser[0])
    before = {k: v.clone() for k, v in front.state_dict().items()}
    path = tmp_path / "c.safetensors"
    card = train_classifier(Training(path, images, TEST, OneOf((0.25, 0.5)), QUICK), RESNET, front)
    assert card.scores["colours 1 accuracy sigma=0.5"] > 0.95
    for key, value in front.state_dict().items():
        assert torch.equal(value, before[key]), "the denoiser was not kept as it is"
    found = measure(Denoised(load_weights(denoiser[0]), load_weights(path)), TEST, 0.5)
    assert round(found.accuracy, 4) == card.scores["colours 1 accuracy sigma=0.5"]
    assert found.images_per_second > 0


@pytest.mark.parametrize("conditional", [False, True], ids=["plain", "told the sigma"])
def test_classifier_learns_on_noisy_images(images, tmp_path, conditional):
    architecture = Architecture(network="lean-resnet", arguments=RESNET.arguments | {"conditional": conditional})
    training = Training(tmp_path / "c.safetensors", images, TEST, OneOf((0.25, 0.5)), QUICK)
    card = train_classifier(training, architecture)
    assert card.scores["colours 1 accuracy sigma=0.5"] > 0.95
    assert card.architecture.arguments["classes"] == 2


def test_classifier_learns_in_bfloat16(images, tmp_path):
    training = Training(tmp_path / "c.safetensors", images, TEST, OneOf((0.5,)), QUICK, dtype="bfloat16")
    card = train_classifier(training, RESNET)
    assert card.scores["colours 1 accuracy sigma=0.5"] > 0.95
    assert load_weights(tmp_path / "c.safetensors").head.weight.dtype == torch.float32


def test_clean_images_bypass_the_denoiser_in_training(images, tmp_path):
    class Refusing(torch.nn.Module):
        def forward(self, noisy, sigma):
            raise AssertionError("a clean image was denoised")

    fit_classifier(
        build(Architecture(network="lean-resnet", arguments=RESNET.arguments | {"classes": 2})),
        images, OneOf((0.0,)), Schedule(epochs=1, batch_size=32), tmp_path / "c", denoiser=Refusing(),
    )  # fmt: skip


def test_range_of_sigmas_is_measured_at_some_of_them(images, tmp_path):
    schedule = Schedule(epochs=1, batch_size=32)
    card = train_denoiser(Training(tmp_path / "d.safetensors", images, TEST, Between(0.1, 1.2), schedule), UNET)
    assert list(card.scores) == [f"colours 1 rmse sigma={s}" for s in ("0.1", "0.25", "0.5", "1")]


@pytest.mark.parametrize(
    ("function", "network", "message"),
    [
        (train_denoiser, "lean-resnet", "no network 'lean-resnet' for this; choose one of lean-unet, unet2d"),
        (train_classifier, "lean-unet", "no network 'lean-unet' for this; choose one of lean-resnet"),
        (train_classifier, "resnet1001", "no network 'resnet1001'"),
    ],
)
def test_network_of_the_wrong_kind_is_refused(images, tmp_path, function, network, message):
    with pytest.raises(BadSetting, match=message):
        function(
            Training(tmp_path / "x.safetensors", images, TEST, OneOf((0.5,)), QUICK), Architecture(network=network)
        )


def test_unknown_arguments_of_a_network_are_refused(images, tmp_path):
    wrong = Architecture(network="lean-resnet", arguments={"depth": 3})
    with pytest.raises(BadSetting, match=r"cannot be built.*depth"):
        train_classifier(Training(tmp_path / "x.safetensors", images, TEST, OneOf((0.5,)), QUICK), wrong)
