"""Training a router on images whose best sigma is known."""

import re

import numpy as np
import pytest
import torch

from dualrs.data.dataset import ArrayDataset
from dualrs.errors import BadCheckpoint, BadSetting
from dualrs.models.architectures import build
from dualrs.models.card import Architecture
from dualrs.training.classifier import measure
from dualrs.training.front import Front
from dualrs.training.images import TrainingImages
from dualrs.training.loop import fit
from dualrs.training.methods import choose
from dualrs.training.methods.easy_focus import EasyFocus
from dualrs.training.methods.gaussian import Gaussian
from dualrs.training.methods.macer import Macer
from dualrs.training.noise import OneOf
from dualrs.training.own_loss import OwnLoss
from dualrs.training.router import RouterObjective, router_task
from dualrs.training.schedule import Schedule

BEST = {50: [0.4, 0.0, 0.0], 125: [0.2, 0.8, 0.0], 200: [0.3, 0.6, 1.5]}  # radii by grey level


def greys(count, seed):
    """Grey images; the best of three sigmas depends on how bright they are."""
    generator = np.random.default_rng(seed)
    kind = generator.integers(0, 3, count)
    level = np.array(list(BEST))[kind] + generator.integers(-10, 10, count)
    pixels = np.broadcast_to(level[:, None, None, None], (count, 3, 16, 16)).astype(np.uint8)
    return ArrayDataset(pixels, kind, name=f"greys {seed}"), torch.tensor(list(BEST.values()))[kind]


(TRAIN, RADII), (TEST, _) = greys(384, 0), greys(90, 1)
QUICK = Schedule(epochs=8, batch_size=32, rate=5e-3)


def network():
    torch.manual_seed(0)
    return build(Architecture(network="lean-resnet", arguments={"classes": 3, "widths": [8], "blocks": [1]}))


@pytest.mark.parametrize(
    "objective",
    [
        RouterObjective(consistency_weight=10.0),
        RouterObjective(consistency_weight=10.0, gate="weak"),
        RouterObjective(consistency_weight=0.0, entropy_weight=0.0, gate="none", balanced=False, hard=True),
    ],
    ids=["strong", "weak", "plain, hard labels"],
)
def test_router_learns_the_known_assignment(tmp_path, objective):
    router = network()
    fit(router_task(router, Front(), TrainingImages(TRAIN), RADII, objective), QUICK, tmp_path / "c")
    assert measure(router, TEST, objective.sigma_e).accuracy > 0.9


def test_denoiser_in_front_is_used_and_kept_as_it_is(tmp_path):
    denoiser = build(Architecture(network="lean-unet", arguments={"width": 8, "middle": 1}))
    before = {k: v.clone() for k, v in denoiser.state_dict().items()}
    seen = []
    denoiser.register_forward_hook(lambda module, given, out: seen.append(given[1]))
    objective = RouterObjective(sigma_e=0.7)
    short = Schedule(epochs=1, batch_size=64)
    task = router_task(network(), Front(denoiser), TrainingImages(TRAIN), RADII, objective)
    fit(task, short, tmp_path / "c")
    assert set(seen) == {0.7}
    for key, value in denoiser.state_dict().items():
        assert torch.equal(value, before[key])


def test_other_labels_or_another_objective_are_another_training(tmp_path):
    short = Schedule(epochs=1, batch_size=64)
    images = TrainingImages(TRAIN)
    fit(router_task(network(), Front(), images, RADII, RouterObjective()), short, tmp_path / "c")
    with pytest.raises(BadCheckpoint, match="belongs to another training"):
        fit(router_task(network(), Front(), images, RADII.flip(0), RouterObjective()), short, tmp_path / "c")
    with pytest.raises(BadCheckpoint, match="belongs to another training"):
        fit(router_task(network(), Front(), images, RADII, RouterObjective(gate="weak")), short, tmp_path / "c")


def by_radius(logits, radii):
    """The radius that is lost by the sigmas that the copies name."""
    return (radii.amax(dim=1) - (logits.softmax(dim=-1) * radii).sum(dim=-1)).mean(dim=0)


def test_a_loss_of_ones_own_teaches_the_router_too(tmp_path):
    router, objective = network(), RouterObjective(own=OwnLoss("mine.py:by_radius", by_radius))
    task = router_task(router, Front(), TrainingImages(TRAIN), RADII, objective)
    ours = router_task(network(), Front(), TrainingImages(TRAIN), RADII, RouterObjective())
    assert task.about.startswith(f"{ours.about}, loss by_radius ")
    fit(task, QUICK, tmp_path / "c")
    assert measure(router, TEST, objective.sigma_e).accuracy > 0.9


@pytest.mark.parametrize(
    ("function", "got"),
    [
        (lambda logits, radii: by_radius(logits, radii).mean(), "shape ()"),
        (lambda logits, radii: logits[..., 0], "shape (2, 64)"),
        (lambda logits, radii: 1.0, "a float"),
    ],
    ids=["one number", "one per copy", "no tensor"],
)
def test_a_loss_that_is_not_one_per_input_is_refused(tmp_path, function, got):
    objective = RouterObjective(own=OwnLoss("mine.py:loss", function))
    task = router_task(network(), Front(), TrainingImages(TRAIN), RADII, objective)
    with pytest.raises(BadSetting, match=re.escape(f"one loss for each of 64 inputs; it returned {got}")):
        fit(task, Schedule(epochs=1, batch_size=64), tmp_path / "c")


@pytest.mark.parametrize("setting", [{"gate": "weak"}, {"consistency_weight": 1.0}, {"hard": True}], ids=str)
def test_settings_of_the_loss_that_is_replaced_are_refused(setting):
    with pytest.raises(BadSetting, match=f"mine.py:loss takes the place of {next(iter(setting))}; leave them out"):
        RouterObjective(**setting, own=OwnLoss("mine.py:loss", by_radius))


@pytest.mark.parametrize(
    "field", [{"sigma_e": 0.0}, {"noise_copies": 0}, {"consistency_weight": -1.0}, {"gate": "some"}], ids=str
)
def test_senseless_objectives_are_refused(field):
    with pytest.raises(BadSetting):
        RouterObjective(**field)


# By the field's methods

TO_SCALE = {"smoothadv": {"copies": 2, "steps": 2, "reach": 0.5}, "macer": {"copies": 4, "radius_weight": 1.0}}
TO_SCALE |= {"smoothmix": {"steps": 1}, "cat-rs": {"copies": 2, "steps": 1}}


@pytest.mark.parametrize("name", ["gaussian", *TO_SCALE])
def test_router_learns_the_known_assignment_by_any_method(tmp_path, name):
    method = choose(name, OneOf((1.0,)), 150, TO_SCALE.get(name, {}))
    router, objective = network(), RouterObjective(method=method)
    task = router_task(router, Front(), TrainingImages(TRAIN), RADII, objective)
    fit(task, QUICK, tmp_path / "c")
    assert measure(router, TEST, objective.sigma_e).accuracy > 0.9
    assert method.about in task.about


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"method": EasyFocus()}, "a router cannot be trained by easy-focus: it gives up inputs"),
        ({"method": Macer(), "gate": "weak"}, "gate belong to the paper's own loss, and macer has settings of its own"),
        ({"method": Macer(), "noise_copies": 3}, "noise_copies belong"),
        ({"method": Macer(), "own": OwnLoss("mine.py:loss", len)}, "macer and the loss mine.py:loss are two losses"),
    ],
    ids=["easy-focus", "gate", "copies", "own loss"],
)
def test_what_a_router_cannot_be_trained_by_is_refused(settings, sentence):
    with pytest.raises(BadSetting, match=sentence):
        RouterObjective(**settings)


def test_weights_and_soft_labels_enter_the_loss_of_a_method():
    images = TrainingImages(TRAIN)
    batch = torch.arange(32)

    def value(**settings):
        task = router_task(network(), Front(), images, RADII, RouterObjective(method=Gaussian(), **settings))
        return task.loss(batch, torch.Generator().manual_seed(0)).item()

    plain = value(balanced=False)
    assert value(balanced=True) > plain  # weights average to the number of sigmas that are best for someone
    assert value(balanced=False, hard=True) != plain
    paper = RouterObjective(consistency_weight=0.0, entropy_weight=0.0, noise_copies=1, gate="none", balanced=False)
    task = router_task(network(), Front(), images, RADII, paper)
    assert task.loss(batch, torch.Generator().manual_seed(0)).item() == pytest.approx(plain, rel=1e-5)
