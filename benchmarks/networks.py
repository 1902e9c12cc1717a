"""Which network is worth its milliseconds: each candidate trained alike for a short while on CIFAR-10, then timed.

    python -m benchmarks.networks denoisers    # about 15 minutes on one core
    python -m benchmarks.networks classifiers  # on noisy images, about 15 minutes on one core

A short training ranks networks of one size class; it does not tell how far each would get. Runs use one thread, so that
two may go side by side.
"""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from rich.console import Console
from rich.table import Table
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from dualrs.cli.training_bar import TrainingBar
from dualrs.data import cifar10
from dualrs.models.card import Architecture
from dualrs.models.noisy import takes_sigma
from dualrs.models.weights import load_weights
from dualrs.training.base import Training, train_classifier, train_denoiser
from dualrs.training.images import TrainingImages
from dualrs.training.noise import Between, OneOf
from dualrs.training.schedule import Schedule
from dualrs.training.trainee import Trainee

DENOISERS = [
    Architecture(network="lean-unet", arguments={"width": 24, "middle": 2}),
    Architecture(network="lean-unet", arguments={"width": 24, "middle": 1}),
    Architecture(network="lean-unet", arguments={"width": 16, "middle": 2}),
    Architecture(network="lean-unet", arguments={"width": 32, "middle": 2}),
    Architecture(network="unet2d", arguments={"width": 16, "layers": 1}),
]
CLASSIFIERS = [
    Architecture(network="lean-resnet", arguments={"widths": [32, 80, 160], "blocks": [1, 2, 2], "conditional": True}),
    Architecture(network="lean-resnet", arguments={"widths": [24, 64, 128], "blocks": [1, 2, 2], "conditional": True}),
    Architecture(network="lean-resnet", arguments={"widths": [32, 96, 192], "blocks": [1, 1, 2], "conditional": True}),
    Architecture(network="resnet20"),
]


def main(kind: str) -> None:
    torch.set_num_threads(1)
    images, test = TrainingImages(cifar10.load("train")), cifar10.load("test")
    console = Console()
    table: Table | None = None
    with TemporaryDirectory() as folder:
        for number, candidate in enumerate(DENOISERS if kind == "denoisers" else CLASSIFIERS):
            path = Path(folder) / f"{number}.safetensors"
            with TrainingBar(f"{candidate}") as bar:
                if kind == "denoisers":
                    levels, schedule = Between(0.05, 1.5), Schedule(epochs=1, rate=2e-3, weight_decay=0.01)
                    card = train_denoiser(
                        Training(path, images, test, levels, schedule, report=bar.update), candidate
                    )  # fmt: skip
                else:
                    sigmas, schedule = OneOf((0.25, 0.5, 1.0)), Schedule(epochs=1, rate=3e-3, weight_decay=0.05)
                    card = train_classifier(
                        Training(path, images, test, sigmas, schedule, report=bar.update), Trainee(candidate)
                    )  # fmt: skip
            if table is None:
                table = Table("network", "MMAC", "images/s", *(k.rpartition(" ")[2] for k in card.scores))
            table.add_row(
                str(card.architecture),
                *speed(load_weights(path)),
                *(f"{v:.4f}" for v in card.scores.values()),
            )
            console.print(table)


def speed(network: nn.Module) -> Iterator[str]:
    """Multiply-adds per image, in millions, and the best of ten batches of 256, on one thread."""
    batch = torch.rand(256, 3, 32, 32)
    told = {"sigma": 0.5} if takes_sigma(network) else {}
    with torch.inference_mode():
        with FlopCounterMode(display=False) as counter:
            network(batch[:1], **told)
        yield f"{counter.get_total_flops() / 2e6:.1f}"
        best = float("inf")
        for _ in range(10):
            began = time.perf_counter()
            network(batch, **told)
            best = min(best, time.perf_counter() - began)
        yield f"{len(batch) / best:,.0f}"


if __name__ == "__main__":
    if sys.argv[1:] not in (["denoisers"], ["classifiers"]):
        sys.exit(__doc__)
    main(sys.argv[1])
