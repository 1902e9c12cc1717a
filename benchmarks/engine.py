"""What the engine adds to the networks, and what packing saves."""

import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from dualrs import Smoothed
from dualrs.models.compiled import compile_parts
from dualrs.models.hardware import keep_memory
from dualrs.models.resnet import cifar_resnet
from dualrs.pipeline.networks import Networks
from dualrs.sampling.engine import Engine

Row = tuple[str, str, str]
T = TypeVar("T")


class Watched(nn.Module):
    """A network that adds up the time spent in it; ``told`` is what it wants to know beside the images."""

    def __init__(self, network: nn.Module, *told: float) -> None:
        super().__init__()
        self.network = network
        self.told = told
        self.seconds = 0.0

    def forward(self, x: Tensor) -> Tensor:
        """Logits of the network, timed."""
        began = time.perf_counter()
        logits: Tensor = self.network(x, *self.told)
        self.seconds += time.perf_counter() - began
        return logits


def convolutional(*widths: int) -> nn.Module:
    """3 x 3 convolutions, the first at full resolution and each further one at half of it; ten classes."""
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for k, (a, b) in enumerate(zip((3, *widths), widths, strict=False)):
        layers += [nn.Conv2d(a, b, 3, padding=1, stride=1 if k < 2 else 2), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], 10)).eval()


def fully_connected() -> nn.Module:
    """The network of the digits example."""
    torch.manual_seed(0)
    layers = (nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    return nn.Sequential(nn.Flatten(), *layers).eval()


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


def overhead(n: int = 10_000, sigma: float = 0.5, turns: int = 15) -> list[Row]:
    """Share of the time that certification at large n spends outside the network; against the bare network too.

    The bare network runs over as many batches of noise that was drawn before, each its own: one half of them before the
    certification and the other after it, so that a machine whose speed drifts counts for both.
    """
    keep_memory()
    small = convolutional(32, 32, 64, 128)
    networks = {
        f"convolutions of {multiply_adds(small) / 1e6:.0f} MMAC": Watched(small),
        "bundled classifier": Watched(Networks()("zoo:cifar10-denoiser | zoo:cifar10-tuned"), sigma),
    }
    image = (np.random.default_rng(0).random((3, 32, 32)) * 255).astype(np.uint8)
    rows = []
    for name, watched in networks.items():
        smoothed = Smoothed(watched.eval(), sigma)
        smoothed.certify(image, n=2_000)  # warm up: preflight, noise table
        batches = -(-(n + 100) // smoothed.engine.batch_size)
        noisy = torch.randn(batches, smoothed.engine.batch_size, 3, 32, 32)
        outside, ratios = [], []
        for seed in range(turns):
            _, before = timed(lambda: [watched(batch) for batch in noisy[: batches // 2]])  # noqa: B023
            watched.seconds = 0.0
            _, whole = timed(lambda s=seed: smoothed.certify(image, n=n, seed=s))  # type: ignore[misc]  # noqa: B023
            outside.append(1 - watched.seconds / whole)
            _, after = timed(lambda: [watched(batch) for batch in noisy[batches // 2 :]])  # noqa: B023
            ratios.append((before + after) / whole)
        size = f"{name}, n = {n:,}"
        rows += [
            (f"time outside the network's forward ({size})", f"{100 * np.median(outside):.1f}%", "at most 5%"),
            (f"votes a second against the bare forward ({size})", f"{np.median(ratios):.2f}x", "at least 0.95x"),
        ]
    return rows


def compiled(batches: int = 12) -> list[Row]:
    """What torch.compile does for the bundled classifier behind its denoiser, and what it costs to begin with."""
    keep_memory()
    noisy = torch.rand(256, 3, 32, 32)
    plain, fast = (Networks()("zoo:cifar10-denoiser | zoo:cifar10-tuned") for _ in range(2))
    compile_parts(fast)
    sigmas = (0.25, 0.5, 1.0)
    plain(noisy, 0.5)
    _, making = timed(lambda: [fast(noisy, sigma) for sigma in sigmas])
    ratios = []
    for k in range(batches):
        (_, as_it_is), (_, as_compiled) = (timed(lambda n=n: n(noisy, sigmas[k % 3])) for n in (plain, fast))  # type: ignore[misc]  # noqa: B023
        ratios.append(as_it_is / as_compiled)
    return [("compiled against as it is, bundled classifier", f"{np.median(ratios):.2f}x, after {making:.0f} s", "")]


def abreast(turns: int = 5) -> list[Row]:
    """Several batches at once, as a run has them on a CPU, against one at a time; also beside a process that works."""
    keep_memory()
    image = (np.random.default_rng(0).random((4, 3, 32, 32)) * 255).astype(np.uint8)
    several, one = (Smoothed(Networks()("zoo:cifar10-denoiser | zoo:cifar10-classifier"), 0.5) for _ in range(2))
    for smoothed in (several, one):
        smoothed.certify(image, n=200)  # warm up
    machines = [smoothed.engine.machine for smoothed in (several, one) if isinstance(smoothed.engine, Engine)]
    machines[1].at_once = 1
    rows = []
    for others, beside in enumerate(("alone on the machine", "beside another process")):
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(others)]
        ratios = []
        try:
            for _ in range(turns):
                (_, together), (_, alone) = (timed(lambda s=s: s.certify(image, n=1_000)) for s in (several, one))  # type: ignore[misc]
                ratios.append(alone / together)
        finally:
            for process in busy:
                process.kill()
        name = f"{machines[0].at_once} batches at once against one, bundled classifier, {beside}"
        rows.append((name, f"{np.median(ratios):.2f}x", ""))
    return rows


def packing(n: int = 100) -> list[Row]:
    """Many inputs at once against one at a time: same network, same votes; and against a loop of the usual kind."""
    keep_memory()
    rows = []
    for name, network, shape, inputs in (
        ("fully connected", fully_connected(), (1, 8, 8), 1_000),
        ("convolutional", convolutional(8, 8, 16), (3, 32, 32), 1_000),
        ("ResNet-20", cifar_resnet(20, 10).eval(), (3, 32, 32), 100),
    ):
        images = (np.random.default_rng(0).random((inputs, *shape)) * 255).astype(np.uint8)
        smoothed = Smoothed(network, 0.5)
        predict = partial(smoothed.predict, n=n, alpha=0.3, seed=0)
        predict(images[:10])  # warm up
        packed, together = timed(lambda: list(predict(images)))  # type: ignore[arg-type]  # noqa: B023
        single, alone = timed(lambda: [predict(x) for x in images])  # noqa: B023
        _, loop = timed(lambda: [classic_loop(network, x, 0.5, n) for x in images])  # noqa: B023
        assert packed == single, "packing must not change an answer"
        size = f"{name} network, n = {n}, {inputs:,} inputs"
        rows += [
            (f"packed against one input at a time, same votes ({size})", f"{alone / together:.1f}x", ""),
            (f"packed against a loop over batches of n with torch.randn ({size})", f"{loop / together:.2f}x", ""),
        ]
    return rows


@torch.inference_mode()
def classic_loop(network: nn.Module, image: np.ndarray, sigma: float, n: int) -> Tensor:
    """What research code does: one input, its n noisy copies in one batch, counted in one go."""
    clean = torch.from_numpy(image).float().div(255).expand(n, -1, -1, -1)
    votes: Tensor = network(clean + sigma * torch.randn_like(clean)).argmax(dim=1)
    return votes.bincount(minlength=10)


def timed(job: Callable[[], T]) -> tuple[T, float]:
    """What a job gives, and how many seconds it takes."""
    began = time.perf_counter()
    with torch.inference_mode():
        result = job()
    return result, time.perf_counter() - began


def processor_seconds(job: Callable[[], T]) -> tuple[T, float]:
    """What a job gives, and how many seconds of the processor it takes: other processes do not count."""
    began = time.process_time()
    with torch.inference_mode():
        result = job()
    return result, time.process_time() - began
