"""Mixed precision and compiled networks in training, as far as a CPU can show them."""

import shutil

import pytest
import torch
from safetensors.torch import load_file
from small_problem import SIGMA, TEST, TRAIN, accuracy_and_radius, network

from dualrs.errors import BadSetting
from dualrs.models.card import Architecture
from dualrs.training import base
from dualrs.training.base import Training, train_classifier
from dualrs.training.classifier import Measured, classifier_task
from dualrs.training.front import Front
from dualrs.training.images import TrainingImages
from dualrs.training.loop import fit
from dualrs.training.methods import METHODS, choose
from dualrs.training.noise import OneOf
from dualrs.training.schedule import Schedule
from dualrs.training.trainee import Trainee

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")  # torch's compiler uses what torch gave up
LEVELS = OneOf((SIGMA,))
IMAGES = TrainingImages(TRAIN)
SETTINGS = {"smoothadv": {"reach": 0.2}, "macer": {"radius_weight": 1.0}, "easy-focus": {"pace": 0.1}}
SETTINGS |= {"consistency": {"consistency_weight": 2.0}, "smoothmix": {"pace": 0.2}, "cat-rs": {"reach": 0.2}}


@pytest.mark.parametrize("name", METHODS)
def test_methods_train_in_bfloat16(name, tmp_path):
    net = network()
    teacher = (network(1),) if name == "cat-rs" else ()
    method = choose(name, LEVELS, 4, SETTINGS.get(name, {}), *teacher)
    task = classifier_task(net, Front(), IMAGES, LEVELS, method=method)
    fit(task, Schedule(4, 16, 1e-2, 0.0), tmp_path / "c", dtype="bfloat16")
    assert all(p.dtype == torch.float32 and p.isfinite().all() for p in net.parameters())
    assert accuracy_and_radius(net)[0] > 0.9


def training(path, **settings):
    return Training(path, IMAGES, TEST, LEVELS, Schedule(1, 64), **settings)


@pytest.fixture
def no_cache():
    """Nothing that was compiled before is taken again."""
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch compiles with g++")
def test_compiled_training_ends_with_nearly_the_same_weights(tmp_path, no_cache, monkeypatch):
    monkeypatch.setattr(base, "measure", lambda *a, **k: Measured(1.0, 1.0, ()))  # it would be compiled apart
    method = choose("smoothadv", LEVELS, 1, {"copies": 2, "steps": 1, "reach": 0.1})
    ended = []
    for compiled in (False, True):
        out = tmp_path / f"{compiled}.safetensors"
        train_classifier(
            training(out, compile=compiled), Trainee(Architecture(network="mine"), network()), method=method
        )
        ended.append(torch.cat([tensor.flatten() for tensor in load_file(out).values()]))
    assert torch.allclose(*ended, atol=1e-4)


def test_without_a_compiler_training_is_refused_in_a_sentence(tmp_path, no_cache):
    from torch._inductor import config

    trainee = Trainee(Architecture(network="mine"), network())
    with (
        config.patch({"cpp.cxx": ("no-such-compiler",), "fx_graph_cache": False}),
        pytest.raises(BadSetting, match=r"torch cannot compile this network here(.|\n)*train it without compiling"),
    ):
        train_classifier(training(tmp_path / "c.safetensors", compile=True), trainee)
