"""A training of tiny networks, slow where it writes, so that there is time to be killed in."""

import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from dualrs.data.dataset import ArrayDataset
from dualrs.files import whole_file
from dualrs.models import weights
from dualrs.models.architectures import build, complete
from dualrs.models.card import Architecture
from dualrs.training import checkpoint, loop
from dualrs.training.base import Training, train_classifier, train_denoiser, train_router
from dualrs.training.images import TrainingImages
from dualrs.training.methods import METHODS, choose
from dualrs.training.noise import Between, OneOf
from dualrs.training.router import RouterObjective
from dualrs.training.schedule import Schedule
from dualrs.training.trainee import Trainee

GENERATOR = np.random.default_rng(0)
DATASET = ArrayDataset(
    GENERATOR.integers(0, 256, (96, 3, 8, 8), dtype=np.uint8), GENERATOR.integers(0, 3, 96), name="random"
)
RADII = torch.from_numpy(GENERATOR.uniform(0, 1, (96, 3)))
SCHEDULE = Schedule(epochs=8, batch_size=32)  # 24 steps
UNET = Architecture(network="lean-unet", arguments={"width": 8, "middle": 1})
SETTINGS = {
    "gaussian": {},
    "consistency": {},
    "smoothadv": {"copies": 2, "steps": 1},
    "macer": {"copies": 2},
    "smoothmix": {"steps": 1},
    "cat-rs": {"copies": 2, "steps": 1, "teacher_votes": 3},
    "easy-focus": {"copies": 2, "steps": 1, "start": 2, "hopeless": 0.1, "first_votes": 5, "renewed": 3},
}
RESNET = Architecture(network="lean-resnet", arguments={"widths": [8], "blocks": [1]})


def train(kind: str, out: Path, pause: float) -> None:
    """Keep a checkpoint after every step; with a pause, before and after each file takes its place."""
    torch.set_num_threads(1)
    loop._SECONDS_BETWEEN_CHECKPOINTS = 0
    checkpoint.whole_file = slowly(pause)
    weights.write_whole = slow_write(20 * pause)  # only twice
    levels = Between(0.1, 1.0) if kind == "denoiser" else OneOf((0.5,))
    training = Training(out, TrainingImages(DATASET), DATASET, levels, SCHEDULE, recipe="a test")
    if kind in METHODS:
        teacher = build(complete(RESNET.model_copy(update={"arguments": RESNET.arguments | {"classes": 3}})))
        taught = (teacher.eval(),) if kind == "cat-rs" else ()
        method = choose(kind, levels, SCHEDULE.epochs, SETTINGS[kind], *taught)
        sgd = replace(SCHEDULE, batch_size=32 * method.copies, optimizer="sgd", drop_at=(3, 6))
        train_classifier(replace(training, schedule=sgd), Trainee(RESNET), method=method)
        return
    match kind:
        case "denoiser":
            train_denoiser(training, UNET)
        case "classifier":
            train_classifier(training, Trainee(RESNET))
        case "router":
            train_router(training, Trainee(RESNET), RADII, (0.25, 0.5, 1.0), RouterObjective())


def slow_write(pause):
    def write(path, content):
        with slowly(pause)(path) as file:
            file.write(content)

    return write


def slowly(pause):
    @contextmanager
    def slow_file(path):
        with whole_file(path) as file:
            yield file
            file.flush()
            time.sleep(pause)
        time.sleep(pause)

    return slow_file
