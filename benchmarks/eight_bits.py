"""What eight-bit arithmetic saves on a CPU, and what it does to answers and certificates.

    python -m benchmarks.eight_bits        # about a minute on one core

The network is one of plain convolutions, with the weights that it begins with: the question is speed, and whether its
eight-bit form votes like any other network. Ranges are fixed on noisy images beforehand. Networks take turns.
"""

import copy
import warnings
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.ao import quantization

from benchmarks.engine import convolutional, processor_seconds
from dualrs import Smoothed

SIGMA, TURNS, N = 0.5, 5, 1_000


def eight_bits(network: nn.Module, noisy: Tensor) -> nn.Module:
    """A network of eight-bit weights and activations, whose ranges are those on some noisy images, once and for all."""
    stubs = quantization.QuantStub(), copy.deepcopy(network), quantization.DeQuantStub()
    made = nn.Sequential(*stubs).eval()
    made.qconfig = quantization.get_default_qconfig("x86")  # type: ignore[no-untyped-call]
    layers = pairwise(enumerate(network.children()))
    joined = [[f"1.{a}", f"1.{b}"] for (a, _), (b, after) in layers if isinstance(after, nn.ReLU)]
    quantization.fuse_modules(made, joined, inplace=True)  # type: ignore[no-untyped-call]
    quantization.prepare(made, inplace=True)  # type: ignore[no-untyped-call]
    with torch.inference_mode():
        made(noisy)
    converted: nn.Module = quantization.convert(made).eval()  # type: ignore[no-untyped-call]
    return converted


def main() -> None:
    """Print images a second of three forms of one network, and how often they agree."""
    warnings.simplefilter("ignore")  # torch moves these functions to a package of their own
    torch.set_num_threads(1)
    network = convolutional(32, 32, 64, 128)
    noisy = torch.rand(256, 3, 32, 32) + SIGMA * torch.randn(256, 3, 32, 32)
    last = copy.deepcopy(network).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    eight = eight_bits(network, noisy)
    forms = {
        "float32": (network, noisy),
        "float32, channels last": (last, noisy.contiguous(memory_format=torch.channels_last)),
        "eight bits": (eight, noisy),
    }
    with torch.inference_mode():
        for form, given in forms.values():
            form(given)
        seconds: dict[str, list[float]] = {name: [] for name in forms}
        for _ in range(TURNS):
            for name, (form, given) in forms.items():
                seconds[name].append(processor_seconds(partial(form, given))[1])
        for name in forms:
            print(f"{name}: {len(noisy) / np.median(seconds[name]):,.0f} images a second")
        agree = (network(noisy).argmax(dim=1) == eight(noisy).argmax(dim=1)).float().mean()
    images = (np.random.default_rng(0).random((8, 3, 32, 32)) * 255).astype(np.uint8)
    radii = [Smoothed(form, SIGMA).certify(images, n=N, seed=0).radius for form in (network, eight)]
    print(f"the same answer to {100 * agree:.1f} % of the noisy images; largest difference of radii "
          f"{np.abs(radii[0] - radii[1]).max():.4f} on {len(images)} images at n = {N:,}")  # fmt: skip


if __name__ == "__main__":
    main()
