"""Which batch size suits a CPU: images a second of several networks, on batches of several sizes.

    python -m benchmarks.batches        # about a minute on one core

What a layer leaves of a batch should stay in the cache: networks that work at full resolution want small batches. The
bundled networks fold pixels first, and want large ones. Sizes take turns; the best of three turns counts, in processor
time on one thread.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks.engine import convolutional, processor_seconds
from dualrs.models import zoo
from dualrs.models.resnet import cifar_resnet
from dualrs.pipeline.networks import Networks

SIGMA, IMAGES, TURNS, SIZES = 0.5, 512, 3, (32, 64, 128, 256)


def told(network: nn.Module) -> Callable[[Tensor], Tensor]:
    """A network that is told the sigma."""
    return lambda noisy: network(noisy, SIGMA)


def speed(network: Callable[[Tensor], Tensor], noisy: Tensor, size: int) -> float:
    """Images a second."""
    return len(noisy) / processor_seconds(lambda: [network(batch) for batch in torch.split(noisy, size)])[1]


def main() -> None:
    """Print a table."""
    torch.set_num_threads(1)
    noisy = torch.rand(IMAGES, 3, 32, 32) + SIGMA * torch.randn(IMAGES, 3, 32, 32)
    networks: dict[str, Callable[[Tensor], Tensor]] = {
        "ResNet-20 of He et al.": cifar_resnet(20, 10).eval(),
        "plain convolutions of 20 MMAC": convolutional(32, 32, 64, 128),
        "bundled classifier behind its denoiser": told(Networks()("zoo:cifar10-denoiser | zoo:cifar10-classifier")),
        "`zoo:cifar10-consistent-8bit`": told(zoo.load("cifar10-consistent-8bit")),
    }
    print(f"| images a second | {' | '.join(map(str, SIZES))} |")
    print(f"|---|{'---|' * len(SIZES)}")
    for name, network in networks.items():
        found = [[speed(network, noisy, size) for size in SIZES] for _ in range(TURNS)]
        print(f"| {name} | {' | '.join(f'{max(turns):,.0f}' for turns in zip(*found, strict=True))} |")


if __name__ == "__main__":
    main()
