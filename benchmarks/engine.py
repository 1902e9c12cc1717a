"""What the engine adds to the networks, and what packing saves."""

import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from dualrs import Smoothed

Row = tuple[str, str, str]


class Timed(nn.Module):
    """A network that adds up the time spent in it."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.seconds = 0.0

    def forward(self, x: Tensor) -> Tensor:
        """Logits of the network, timed."""
        began = time.perf_counter()
        logits: Tensor = self.network(x)
        self.seconds += time.perf_counter() - began
        return logits


def convolutional(*widths: int) -> nn.Module:
    """3 x 3 convolutions, the first at full resolution and each further one at half of it; ten classes."""
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for k, (a, b) in enumerate(zip((3, *widths), widths, strict=False)):
        layers += [nn.Conv2d(a, b, 3, padding=1, stride=1 if k < 2 else 2), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], 10)).eval()


def multiply_adds(network: nn.Module) -> int:
    """Multiply-adds of the convolutions on one 3 x 32 x 32 image."""
    total = 0

    def count(layer: nn.Module, _: object, output: Tensor) -> None:
        nonlocal total
        assert isinstance(layer, nn.Conv2d)
        total += output[0].numel() * layer.in_channels * 9

    hooks = [m.register_forward_hook(count) for m in network.modules() if isinstance(m, nn.Conv2d)]
    network(torch.zeros(1, 3, 32, 32))
    for hook in hooks:
        hook.remove()
    return total


def overhead(n: int = 10_000) -> list[Row]:
    """Share of the time that certification at large n spends outside the network; against the bare network too."""
    network = convolutional(32, 32, 64, 128)
    timed = Timed(network).eval()
    smoothed = Smoothed(timed, 0.5)
    image = (np.random.default_rng(0).random((3, 32, 32)) * 255).astype(np.uint8)
    smoothed.certify(image, n=2_000)  # warm up: preflight, noise table
    batches = -(-(n + 100) // smoothed.engine.batch_size)
    noisy = torch.randn(smoothed.engine.batch_size, 3, 32, 32)
    outside, ratios = [], []
    for seed in range(1, 6):
        bare = seconds(lambda: [network(noisy) for _ in range(batches)])
        timed.seconds = 0.0
        whole = seconds(lambda s=seed: smoothed.certify(image, n=n, seed=s))  # type: ignore[misc]
        outside.append(1 - timed.seconds / whole)
        ratios.append(whole / bare)
    size = f"{multiply_adds(network) / 1e6:.0f} MMAC, n = {n:,}"
    return [
        (f"time outside the network's forward ({size})", f"{100 * np.median(outside):.1f}%", "at most 5%"),
        (f"certification against the bare forward ({size})", f"{np.median(ratios):.2f}x", ""),
    ]


def packing(inputs: int = 1_000, n: int = 100) -> list[Row]:
    """Many inputs at once against one at a time: same network, same votes."""
    network = convolutional(8, 8, 16)
    images = (np.random.default_rng(0).random((inputs, 3, 32, 32)) * 255).astype(np.uint8)
    smoothed = Smoothed(network, 0.5)
    smoothed.certify(images[:10], n=n, n0=1, alpha=0.01)  # warm up
    together, alone = [], []
    for _ in range(3):
        packed, single = [], []
        together.append(seconds(lambda out=packed: out.extend(smoothed.certify(images, n=n, n0=1, alpha=0.01))))
        alone.append(seconds(lambda out=single: out.extend(smoothed.certify(x, n=n, n0=1, alpha=0.01) for x in images)))
        assert packed == single, "packing must not change a vote"
    loop = seconds(lambda: [classic_loop(network, x, 0.5, n + 1) for x in images])
    size = f"{multiply_adds(network) / 1e6:.1f} MMAC, n = {n}, {inputs:,} inputs"
    return [
        (
            f"packed against one input at a time ({size})",
            f"{np.median(alone) / np.median(together):.1f}x",
            "at least 2x",
        ),
        (f"packed against a plain loop with torch.randn ({size})", f"{loop / np.median(together):.1f}x", ""),
    ]


@torch.inference_mode()
def classic_loop(network: nn.Module, image: np.ndarray, sigma: float, n: int) -> Tensor:
    """What research code does: one input, its n noisy copies in one batch, counted in one go."""
    clean = torch.from_numpy(image).float().div(255).expand(n, -1, -1, -1)
    votes: Tensor = network(clean + sigma * torch.randn_like(clean)).argmax(dim=1)
    return votes.bincount(minlength=10)


def seconds(job: Callable[[], object]) -> float:
    """How long a job takes."""
    began = time.perf_counter()
    with torch.inference_mode():
        job()
    return time.perf_counter() - began
