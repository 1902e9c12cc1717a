"""What eight-bit arithmetic saves on a CPU, and what it does to certificates.

    python -m benchmarks.eight_bits        # about two minutes on one core

The network is the bundled one that was trained for consistent answers, in float32, in bfloat16 where the CPU
multiplies that, and in eight bits. The forms take turns; then two of them certify the same images.
"""

from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

import dualrs
from benchmarks.engine import processor_seconds
from dualrs import Cascade
from dualrs.models import zoo
from dualrs.models.hardware import autocast, fastest_dtype

SIGMA, TURNS, N, IMAGES = 0.5, 7, 1_000, 25


def answer(network: nn.Module, dtype: str, noisy: Tensor) -> None:
    """One batch in a number format."""
    with autocast(torch.device("cpu"), dtype):
        network(noisy, SIGMA)


def main() -> None:
    """Print images a second of each form, and how far certificates differ."""
    torch.set_num_threads(1)
    plain, eight = zoo.load("cifar10-consistent"), zoo.load("cifar10-consistent-8bit")
    noisy = torch.rand(256, 3, 32, 32) + SIGMA * torch.randn(256, 3, 32, 32)
    forms = {"float32": (plain, "float32"), "eight bits": (eight, "float32")}
    if fastest_dtype(torch.device("cpu")) == "bfloat16":
        forms["bfloat16"] = (plain, "bfloat16")
    seconds: dict[str, list[float]] = {name: [] for name in forms}
    with torch.inference_mode():
        for turn in range(TURNS + 1):
            for name, (network, dtype) in forms.items():
                took = processor_seconds(partial(answer, network, dtype, noisy))[1]
                seconds[name] += [took] * (turn > 0)
    for name, found in seconds.items():
        print(f"{name}: {len(noisy) / np.median(found):,.0f} images a second")
    subset = dualrs.load_data("cifar10:subset")
    images = np.stack([subset.image(i) for i in range(0, 500, 500 // IMAGES)])
    radii = []
    for network in (plain, eight):
        model = Cascade(network, [0.25, 0.5, 1.0])
        certificates, took = processor_seconds(partial(model.certify, images, n=N, seed=0))
        radii.append(np.array(certificates.radius))
        print(f"{'eight bits' if network is eight else 'float32'}: {took / len(images):.2f} s an input")
    difference = radii[1] - radii[0]
    print(f"radii in eight bits against float32, {len(images)} images, n = {N:,}: mean difference "
          f"{difference.mean():+.4f}, largest {np.abs(difference).max():.4f}")  # fmt: skip


if __name__ == "__main__":
    main()
