"""Trainings that one process does alone or several do together; as a script, one of those several.

RANK=0 WORLD_SIZE=2 ... python shared_training.py FOLDER    writes FOLDER/0.pt: what this process saw
"""

import atexit
import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

from dualrs.data.dataset import ArrayDataset
from dualrs.errors import DualrsError
from dualrs.models.card import Architecture
from dualrs.training import loop
from dualrs.training.base import Training, train_classifier
from dualrs.training.classifier import classifier_task
from dualrs.training.front import Front
from dualrs.training.images import TrainingImages
from dualrs.training.loop import Task, fit
from dualrs.training.methods.easy_focus import EasyFocus
from dualrs.training.noise import OneOf
from dualrs.training.processes import join
from dualrs.training.schedule import Schedule
from dualrs.training.trainee import Trainee

GENERATOR = torch.Generator().manual_seed(0)
X = torch.randn(100, 5, generator=GENERATOR, dtype=torch.float64)
Y = X @ torch.randn(5, 1, generator=GENERATOR, dtype=torch.float64)
PIXELS = np.random.default_rng(0).integers(0, 256, (100, 3, 16, 16), dtype=np.uint8)
DATASET = ArrayDataset(PIXELS, [0, 1, 1, 0] * 25, name="random")
IMAGES = TrainingImages(DATASET)
SCHEDULE = Schedule(epochs=4, batch_size=16, rate=0.05, weight_decay=0.01)


class Stop(Exception):
    """The process is stopped."""


def plain(path, stop_after=None):
    """Nothing random in the loss, no batch normalisation; returned with what the loss is given and could draw."""
    torch.manual_seed(3)
    network = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1)).double()
    given, drawn = [], []

    def loss(indices, generator):
        if len(given) == stop_after:
            raise Stop
        given.append(indices)
        drawn.append(torch.rand(2, generator=generator))
        return (network(X[indices]) - Y[indices]).square().mean()

    fit(Task(network, IMAGES, loss, "plain"), SCHEDULE, path)
    return network.state_dict(), torch.stack(given), torch.stack(drawn)


def begun(path):
    """The first eleven of 24 steps, with a checkpoint after each."""
    between, loop._SECONDS_BETWEEN_CHECKPOINTS = loop._SECONDS_BETWEEN_CHECKPOINTS, 0
    try:
        plain(path, stop_after=11)
    except Stop:
        return
    finally:
        loop._SECONDS_BETWEEN_CHECKPOINTS = between
    raise AssertionError("it was not stopped")


def normalised(path):
    """With batch normalisation."""
    torch.manual_seed(3)
    network = nn.Sequential(nn.Linear(5, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1)).double()

    def loss(indices, generator):
        return (network(X[indices]) - Y[indices]).square().mean()

    fit(Task(network, IMAGES, loss, "normalised"), SCHEDULE, path)
    return network.state_dict()


def whole(path):
    """From images to weights and a card."""
    small = Architecture(network="lean-resnet", arguments={"widths": [8], "blocks": [1]})
    return train_classifier(Training(path, IMAGES, DATASET, OneOf((0.5,)), Schedule(1, 50)), Trainee(small))


def voted(path):
    """Votes on all images between two epochs, by a network that hardly learns: the same whoever counts them."""
    torch.manual_seed(3)
    network = nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(12, 2))
    method = EasyFocus(copies=1, start=1, hopeless=0.0, steps=1)
    task = classifier_task(network, Front(), IMAGES, OneOf((0.5,)), method=method)
    fit(task, Schedule(2, 50, rate=1e-12), path)
    return task.memory.known


def refused(path, *, about="refused", batch_size=16, factor=1.0, device="cpu"):
    """The sentence with which a training stops."""
    network = nn.Linear(5, 1).double()

    def loss(indices, generator):
        return factor * network(X[indices]).mean()

    try:
        fit(Task(network, IMAGES, loss, about), Schedule(1, batch_size), path, device=device)
    except DualrsError as error:
        return str(error)
    return "nothing"


def threads():
    """How many the process has, those of C++ with them; Linux says it."""
    tasks = Path("/proc/self/task")
    return len(list(tasks.iterdir())) if tasks.is_dir() else 1


def main(folder):
    torch.set_num_threads(1)
    atexit.register(lambda: (folder / f"{rank}.threads").write_text(f"{threads()}"))  # the last of all
    rank = join("cpu").rank
    begun(folder / "begun by two")
    seen = {
        "plain": plain(folder / "plain"),
        "resumed": plain(folder / "begun by one")[0],
        "normalised": normalised(folder / "normalised"),
        "voted": voted(folder / "voted"),
        "card": whole(folder / "whole.safetensors").model_dump_json(),
        "nan": refused(folder / "nan", factor=float("nan") if rank == 1 else 1.0),
        "other": refused(folder / "other", about=f"training {rank}"),
        "uneven": refused(folder / "uneven", batch_size=15),
        "device": refused(folder / "device", device="cuda"),
    }
    torch.save(seen, folder / f"{rank}.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
