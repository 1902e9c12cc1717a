"""Which batch size suits a CPU: images a second of several networks, on batches of several sizes, and our default.

    python -m benchmarks.batches        # two minutes on one core

What a layer leaves of a batch should stay in the cache: the wider a network's layers, the smaller the batches that it
wants. Images have channels last, as in a run of these networks. Sizes take turns; the best of three turns counts, in
processor time on one thread.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks.engine import convolutional, processor_seconds
from dualrs import Smoothed
from dualrs.models import zoo
from dualrs.models.noisy import Wants
from dualrs.models.resnet import cifar_resnet
from dualrs.pipeline.networks import Networks

SIGMA, TURNS, SIZES = 0.5, 3, (4, 16, 64, 256)


def speed(network: Callable[[Tensor], Tensor], noisy: Tensor, size: int) -> float:
    """Images a second."""
    return len(noisy) / processor_seconds(lambda: [network(batch) for batch in torch.split(noisy, size)])[1]


def by_default(network: nn.Module, side: int) -> int:
    """The batch size that a run would have."""
    engine = Smoothed(network, SIGMA, threads=1).engine
    engine.prepare(torch.zeros(3, side, side, dtype=torch.uint8).numpy())
    return engine.batch_size


def main() -> None:
    """Print a table."""
    torch.set_num_threads(1)
    networks: dict[str, tuple[nn.Module, int]] = {
        "EfficientNet-Lite0, 224 x 224": (Networks()("zoo:efficientnet-lite0"), 224),
        "plain convolutions of 20 MMAC": (convolutional(32, 32, 64, 128), 32),
        "ResNet-20 of He et al.": (cifar_resnet(20, 10).eval(), 32),
        "bundled classifier behind its denoiser": (Networks()("zoo:cifar10-denoiser | zoo:cifar10-classifier"), 32),
        "`zoo:cifar10-consistent-8bit`": (zoo.load("cifar10-consistent-8bit"), 32),
    }
    print(f"| images a second | {' | '.join(map(str, SIZES))} | by default |")
    print(f"|---|{'---|' * len(SIZES)}---|")
    for name, (network, side) in networks.items():
        images = 512 if side == 32 else 32
        noisy = torch.rand(images, 3, side, side) + SIGMA * torch.randn(images, 3, side, side)
        noisy = noisy.contiguous(memory_format=torch.channels_last)
        told = Wants.of(network).told(SIGMA, None)
        sizes = [size for size in SIZES if size <= images]
        found = [[speed(lambda x: network(x, **told), noisy, size) for size in sizes] for _ in range(TURNS)]  # noqa: B023
        best = [f"{max(turns):,.0f}" for turns in zip(*found, strict=True)]
        best += ["–"] * (len(SIZES) - len(sizes))
        print(f"| {name} | {' | '.join(best)} | {by_default(network, side)} |", flush=True)


if __name__ == "__main__":
    main()
