"""What it is worth to give networks their images with channels last in memory, and which networks a run gives them so.

    python -m benchmarks.layouts        # half a minute on two cores

Layouts take turns, in batches as large as a run would have; the median of the turns counts. The networks are untrained,
which takes no other time.
"""

import statistics
import warnings
from typing import Any

import torch
import transformers
from torch import nn

from benchmarks.engine import convolutional, timed
from dualrs.errors import RoundingDependent
from dualrs.models.hardware import keep_memory
from dualrs.models.noisy import NoisyModel
from dualrs.models.resnet import cifar_resnet
from dualrs.sampling.engine import Engine
from dualrs.votes import Stage

SIGMA, TURNS, BATCHES = 0.5, 7, 2
LAYOUTS = (torch.contiguous_format, torch.channels_last)


def published(architecture: Any, settings: Any) -> nn.Module:
    """A network of transformers, by its class and its configuration."""
    network: nn.Module = architecture(settings)
    return network.eval()


def resnet(kind: str, depths: tuple[int, ...], widths: tuple[int, ...]) -> nn.Module:
    """A ResNet for large images."""
    settings = transformers.ResNetConfig(depths=depths, hidden_sizes=widths, layer_type=kind)
    return published(transformers.ResNetForImageClassification, settings)


def main() -> None:
    """Print a table."""
    keep_memory()
    warnings.simplefilter("ignore", RoundingDependent)
    torch.manual_seed(0)
    small = resnet("basic", (2, 2, 2, 2), (64, 128, 256, 512))
    large = resnet("bottleneck", (3, 4, 6, 3), (256, 512, 1024, 2048))
    networks: list[tuple[str, nn.Module, int]] = [
        ("plain convolutions of 20 MMAC", convolutional(32, 32, 64, 128), 32),
        ("ResNet-20 of He et al.", cifar_resnet(20, 10).eval(), 32),
        ("ResNet-110 of He et al.", cifar_resnet(110, 10).eval(), 32),
        ("ResNet-18", small, 32),
        ("ResNet-18", small, 224),
        ("ResNet-50", large, 96),
        ("ResNet-50", large, 224),
        (
            "MobileNetV2",
            published(transformers.MobileNetV2ForImageClassification, transformers.MobileNetV2Config()),
            96,
        ),
    ]
    print("| network | side | batch | images a second, channels first | channels last | times as fast | a run has |")
    print("|---|---|---|---|---|---|---|")
    for name, network, side in networks:
        engine = Engine({(Stage.CLASS, SIGMA): NoisyModel(name, network)})
        engine.prepare(torch.zeros(3, side, side, dtype=torch.uint8).numpy())
        size = engine.batch_size
        batches = torch.rand(BATCHES, size, 3, side, side)
        turns = [
            [
                timed(lambda: [network(batch.contiguous(memory_format=layout)) for batch in batches])[1]  # noqa: B023
                for layout in LAYOUTS
            ]
            for _ in range(TURNS)
        ]
        first, last = (BATCHES * size / statistics.median(each) for each in zip(*turns, strict=True))
        has = "last" if engine.machine.channels_last else "first"
        print(f"| {name} | {side} | {size} | {first:,.0f} | {last:,.0f} | {last / first:.2f} | {has} |", flush=True)


if __name__ == "__main__":
    main()
