"""Training base networks end to end, on a problem so small that a few seconds solve it."""

import numpy as np
import pytest
import torch

from dualrs.data.dataset import ArrayDataset
from dualrs.errors import BadCheckpoint, BadModel, BadSetting
from dualrs.models.architectures import build
from dualrs.models.card import Architecture, Card
from dualrs.models.denoise import Denoised
from dualrs.models.weights import load_weights
from dualrs.training import base
from dualrs.training.base import Training, train_classifier, train_denoiser, train_router
from dualrs.training.classifier import classifier_task, measure
from dualrs.training.front import Front
from dualrs.training.images import TrainingImages
from dualrs.training.loop import fit
from dualrs.training.noise import Between, OneOf
from dualrs.training.router import RouterObjective
from dualrs.training.schedule import Schedule
from dualrs.training.trainee import Trainee


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
    card = train_classifier(Training(path, images, TEST, OneOf((0.25, 0.5)), QUICK), Trainee(RESNET, denoiser=front))
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
    card = train_classifier(training, Trainee(architecture))
    assert card.scores["colours 1 accuracy sigma=0.5"] > 0.95
    assert card.architecture.arguments["classes"] == 2


def test_classifier_learns_in_bfloat16(images, tmp_path):
    training = Training(tmp_path / "c.safetensors", images, TEST, OneOf((0.5,)), QUICK, dtype="bfloat16")
    card = train_classifier(training, Trainee(RESNET))
    assert card.scores["colours 1 accuracy sigma=0.5"] > 0.95
    assert load_weights(tmp_path / "c.safetensors").head.weight.dtype == torch.float32


def test_clean_images_bypass_the_denoiser_in_training(images, tmp_path):
    class Refusing(torch.nn.Module):
        def forward(self, noisy, sigma):
            raise AssertionError("a clean image was denoised")

    network = build(Architecture(network="lean-resnet", arguments=RESNET.arguments | {"classes": 2}))
    task = classifier_task(network, Front(Refusing()), images, OneOf((0.0,)))
    fit(task, Schedule(epochs=1, batch_size=32), tmp_path / "c")


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
    training = Training(tmp_path / "x.safetensors", images, TEST, OneOf((0.5,)), QUICK)
    wrong = Architecture(network=network)
    with pytest.raises(BadSetting, match=message):
        function(training, wrong if function is train_denoiser else Trainee(wrong))


def test_unknown_arguments_of_a_network_are_refused(images, tmp_path):
    wrong = Architecture(network="lean-resnet", arguments={"depth": 3})
    with pytest.raises(BadSetting, match=r"cannot be built.*depth"):
        train_classifier(Training(tmp_path / "x.safetensors", images, TEST, OneOf((0.5,)), QUICK), Trainee(wrong))


SHORT = Schedule(epochs=1, batch_size=64)
SIGMAS = (0.25, 0.5)
RADII = torch.tensor([[0.5, 0.0], [0.2, 0.9]])[torch.tensor(TRAIN.labels)]
KINDS = {
    "denoiser": lambda training: train_denoiser(training, UNET),
    "classifier": lambda training: train_classifier(training, Trainee(RESNET)),
    "router": lambda training: train_router(training, Trainee(RESNET), RADII, SIGMAS, RouterObjective()),
}


def short(path, images, schedule=SHORT, **settings):
    return Training(path, images, TEST, OneOf((0.5,)), schedule, **settings)


def names(folder):
    return sorted(p.name for p in folder.iterdir())


@pytest.mark.parametrize("kind", KINDS)
def test_finished_training_is_recognised_and_not_done_again(images, tmp_path, monkeypatch, kind):
    path = tmp_path / "x.safetensors"
    card = KINDS[kind](short(path, images))
    assert names(tmp_path) == ["x.json", "x.log.csv", "x.safetensors"]
    content = path.read_bytes()
    for name in ("fit", "measure", "denoising_error"):
        monkeypatch.setattr(base, name, lambda *a, **k: pytest.fail("something was trained or measured"))
    path.with_suffix(".checkpoint").write_bytes(b"")  # killed before it was deleted
    assert KINDS[kind](short(path, images)) == card
    assert path.read_bytes() == content
    assert names(tmp_path) == ["x.json", "x.log.csv", "x.safetensors"]


@pytest.mark.parametrize("kind", KINDS)
def test_weights_of_another_training_are_refused_and_kept(images, tmp_path, kind):
    path = tmp_path / "x.safetensors"
    there = KINDS[kind](short(path, images)).training
    before = {p: p.read_bytes() for p in tmp_path.iterdir()}
    with pytest.raises(BadCheckpoint, match="give another name, or delete it and its card") as caught:
        KINDS[kind](short(path, images, Schedule(epochs=1, batch_size=64, seed=1)))
    assert f"{path} belongs to another training" in str(caught.value)
    assert f"there: {there}" in str(caught.value)
    assert "'seed': 1" in str(caught.value)
    assert {p: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_subset_of_the_images_is_another_training(images, tmp_path):
    path = tmp_path / "x.safetensors"
    KINDS["classifier"](short(path, TrainingImages(TRAIN, range(128))))
    with pytest.raises(BadCheckpoint, match="belongs to another training"):
        KINDS["classifier"](short(path, TrainingImages(TRAIN, range(128, 256))))


@pytest.mark.parametrize("left", ["without a card", "with a card that says nothing"])
def test_weights_of_unknown_training_are_refused_and_kept(images, tmp_path, left):
    path = tmp_path / "x.safetensors"
    card = KINDS["classifier"](short(path, images))
    path.with_suffix(".json").unlink()
    if left == "with a card that says nothing":
        path.with_suffix(".json").write_text(card.model_dump_json(exclude={"training"}))
    content = path.read_bytes()
    with pytest.raises(BadCheckpoint, match=r"belongs to another training(.|\n)*there: not recorded"):
        KINDS["classifier"](short(path, images))
    assert path.read_bytes() == content


def test_deleted_weights_are_made_anew(images, tmp_path):
    path = tmp_path / "x.safetensors"
    card = KINDS["classifier"](short(path, images))
    content = path.read_bytes()
    path.unlink()
    assert KINDS["classifier"](short(path, images)).sha256 == card.sha256
    assert path.read_bytes() == content


class Stop(Exception):
    """The process is stopped."""


@pytest.mark.parametrize("moment", ["before the weights", "before the card", "before the checkpoint is deleted"])
def test_training_stopped_while_it_is_written_down_goes_on(images, tmp_path, monkeypatch, moment):
    path = tmp_path / "x.safetensors"
    save = base.save_weights

    def stopped(network, card, path):
        if moment != "before the weights":
            save(network, card, path)
        if moment == "before the card":
            path.with_suffix(".json").unlink()
        raise Stop

    with monkeypatch.context() as patch:
        patch.setattr(base, "save_weights", stopped)
        with pytest.raises(Stop):
            KINDS["router"](short(path, images))
    assert path.with_suffix(".checkpoint").exists()
    (tmp_path / ".x.checkpoint.123").write_bytes(b"half a che")  # as a process killed earlier leaves it
    steps = []
    card = KINDS["router"](short(path, images, report=steps.append))
    assert steps == []
    load_weights(path)
    assert card.cost
    assert names(tmp_path) == ["x.json", "x.log.csv", "x.safetensors"]


def test_classifier_goes_on_from_a_network_and_leaves_that_as_it_is(images, tmp_path):
    first = train_classifier(short(tmp_path / "1.safetensors", images, QUICK), Trainee(RESNET))
    start = load_weights(tmp_path / "1.safetensors")
    before = {k: v.clone() for k, v in start.state_dict().items()}
    gentle = Schedule(epochs=1, batch_size=32, rate=1e-6)
    second = train_classifier(short(tmp_path / "2.safetensors", images, gentle), Trainee(first.architecture, start))
    for key, value in start.state_dict().items():
        assert torch.equal(value, before[key])
    assert second.architecture == first.architecture
    assert second.scores["colours 1 accuracy sigma=0.5"] > 0.95  # random weights would not get there in eight steps
    assert second.training != first.training
    with pytest.raises(BadCheckpoint, match="belongs to another training"):  # another start is another training
        train_classifier(short(tmp_path / "2.safetensors", images, gentle), Trainee(first.architecture))


class Own(torch.nn.Module):
    """A network of a user."""

    def __init__(self, classes):
        super().__init__()
        self.head = torch.nn.Linear(3, classes)

    def forward(self, x):
        return self.head(x.mean(dim=(2, 3)))


OWN = Architecture(network="net.py:make")


def test_network_that_dualrs_cannot_build_is_trained_from_a_start(images, tmp_path):
    start = Own(2)
    fast = Schedule(epochs=6, batch_size=32, rate=0.1)
    card = train_classifier(short(tmp_path / "c.safetensors", images, fast), Trainee(OWN, start))
    assert card.architecture == OWN
    assert card.scores["colours 1 accuracy sigma=0.5"] > 0.95
    assert card.what.startswith("Classifier of 2 classes")
    card = train_router(
        short(tmp_path / "r.safetensors", images, fast),
        Trainee(OWN, start),
        RADII,
        SIGMAS,
        RouterObjective(),
    )
    assert card.architecture == OWN
    assert card.what.startswith("Router over sigmas 0.25, 0.5")


def test_start_of_another_architecture_is_refused(images, tmp_path):
    with pytest.raises(BadModel, match=r"the network to go on from is not a lean-resnet\("):
        train_classifier(short(tmp_path / "c.safetensors", images), Trainee(RESNET, Own(2)))


def test_network_with_too_few_answers_is_refused(images, tmp_path):
    three = TrainingImages(ArrayDataset(TRAIN.pixels, [0, 1, 2, 1] * 64, name="three"))
    with pytest.raises(BadModel, match=r"answers with shape \(64, 2\) to 64 images, but three has 3 classes"):
        train_classifier(short(tmp_path / "c.safetensors", three), Trainee(OWN, Own(2)))
