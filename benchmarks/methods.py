"""What a step of each training method costs beside one of plain noise: processor time for an epoch of the same images.

    python -m benchmarks.methods    # about five minutes on one core

The bundled classifier behind the bundled denoiser, 128 noisy images a step, with the settings of sigma 0.5. Attacks
pass back through the denoiser, which plain noise does not, but need no gradient of weights, which plain noise does.
"""

import time

import torch
from rich.console import Console
from rich.table import Table

from dualrs.data import cifar10
from dualrs.models import zoo
from dualrs.training.classifier import classifier_task
from dualrs.training.front import Front
from dualrs.training.images import TrainingImages
from dualrs.training.loop import Task
from dualrs.training.methods import METHODS, choose
from dualrs.training.methods.cat_rs import CatRS
from dualrs.training.methods.easy_focus import EasyFocus
from dualrs.training.noise import OneOf

_BATCH, _STEPS, _EPOCHS = 128, 3, 150


def main() -> None:
    torch.set_num_threads(1)
    images, levels = TrainingImages(cifar10.load("train"), range(1000)), OneOf((0.5,))
    table = Table(
        "method", "copies", "ms an image", "beside gaussian", title="classifier behind its denoiser, sigma 0.5"
    )
    plain = 0.0
    for name in METHODS:
        taught = (zoo.load("cifar10-classifier"),) if METHODS[name] is CatRS else ()
        method = choose(name, levels, _EPOCHS, {}, *taught)
        task = classifier_task(
            zoo.load("cifar10-classifier").train(), Front(zoo.load("cifar10-denoiser")), images, levels, method=method
        )
        if taught:  # what the teacher's votes are makes no difference to the time
            task.memory.known["teacher's votes"] = torch.ones(len(images), images.classes, dtype=torch.int16)
        batch = torch.arange(_BATCH // method.copies)
        quiet = method.start / _EPOCHS if isinstance(method, EasyFocus) else 0.0  # epochs without an attack
        first, last = (_seconds(task, batch, epoch) for epoch in (0, _EPOCHS - 1))
        each = quiet * first + (1 - quiet) * last
        plain = plain or each
        table.add_row(name, str(method.copies), f"{1000 * each:.1f}", f"{each / plain:.1f}")
    Console().print(table)


def _seconds(task: Task, batch: torch.Tensor, epoch: int) -> float:
    """Processor time for an image, the least of a few steps."""
    task.memory.epoch = epoch
    seconds = []
    for step in range(_STEPS):
        began = time.process_time()
        task.loss(batch, torch.Generator().manual_seed(step)).backward()  # type: ignore[no-untyped-call]
        seconds.append((time.process_time() - began) / len(batch))
    return min(seconds)


if __name__ == "__main__":
    main()
