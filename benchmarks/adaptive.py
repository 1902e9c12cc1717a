"""What a certificate costs: adaptive against fixed, two stages against one, and how the cost grows.

    python -m benchmarks.adaptive        # the bundled networks on test images, about twenty minutes on two cores

Seconds are those of one run on one machine, side by side; every ratio is against standard smoothing at one sigma. The
seed is fixed, so votes come out the same every time.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from torch import nn

from benchmarks.engine import Row, convolutional
from dualrs import Cascade, DualSmoothed, Smoothed
from dualrs.data.sources import open_dataset
from dualrs.models.hardware import keep_memory
from dualrs.pipeline.networks import Networks
from dualrs.sampling.collect import Progress
from dualrs.smoothed.model import Budget, SmoothedModel

SIGMAS, SIGMA_E, N = (0.25, 0.5, 1.0), 1.0, 10_000
Images = NDArray[np.uint8]
Job = Callable[[Images, Callable[[Progress], None]], object]


@dataclass
class Meter:
    """Votes and seconds of a job, over all inputs that it was given."""

    job: Job
    inputs: int = 0
    all_votes: int = 0
    all_seconds: float = 0.0

    def measure(self, images: Images) -> "Meter":
        """Run the job, which reports its progress, on some more inputs."""
        before, began = self.all_votes, time.perf_counter()

        def take(progress: Progress) -> None:
            self.all_votes = before + progress.votes

        self.job(images, take)
        self.all_seconds += time.perf_counter() - began
        self.inputs += len(images)
        return self

    @property
    def votes(self) -> float:
        """Of an input."""
        return self.all_votes / self.inputs

    @property
    def seconds(self) -> float:
        """Of an input."""
        return self.all_seconds / self.inputs


def certifying(model: SmoothedModel, n: int = N, rule: str | None = None, budget: Budget = "fixed") -> Meter:
    """Certification by a model, on noise of one seed."""
    return Meter(lambda x, p: model.certify(x, n=n, rule=rule, budget=budget, seed=0, progress=p))


def cost_of_a_certificate(rounds: int = 5, few: int = 2, many: int = 25) -> list[Row]:
    """Votes and seconds per input of each way to certify, on the bundled networks.

    The ways take turns, so that a machine whose speed drifts slows them alike. With a fixed n one input costs much the
    same as another, so a few a round tell it; what an adaptive run takes depends on the inputs, and it gets many.
    """
    keep_memory()
    networks = Networks()
    classifier = networks("zoo:cifar10-denoiser | zoo:cifar10-tuned")
    router = networks("zoo:cifar10-denoiser | zoo:cifar10-router")
    data = open_dataset("cifar10:subset", None, None, None)
    assert data is not None, "it comes with dualrs"
    spread = np.stack([data.image(i) for i in range(0, len(data.ids), len(data.ids) // (rounds * many))])

    one = Smoothed(classifier, 0.5)
    dual = DualSmoothed(router, classifier, SIGMAS, SIGMA_E)
    apart = DualSmoothed(router, classifier, SIGMAS, SIGMA_E, share=False)
    stages = Cascade(classifier, SIGMAS)
    for model in (one, dual, stages):  # preflight, noise tables
        model.certify(spread[0], n=300, seed=0)
    fixed = {
        "standard, sigma 0.5": certifying(one),
        "Multiscale": certifying(stages, rule="multiscale"),
        "cascade": certifying(stages),
        "dual, rule paper, copies not shared": certifying(apart, rule="paper"),
        "dual, rule paper": certifying(dual, rule="paper"),
        "dual, rule fusion": certifying(dual, rule="fusion"),
    }
    adaptive = {
        "cascade, adaptive": certifying(stages, budget="adaptive"),
        "standard, adaptive": certifying(one, budget="adaptive"),
        "dual, rule paper, adaptive": certifying(dual, rule="paper", budget="adaptive"),
        "dual, rule fusion, adaptive": certifying(dual, rule="fusion", budget="adaptive"),
    }
    for turn in range(rounds):
        images = spread[turn::rounds]
        for meter in fixed.values():
            meter.measure(images[:few])
        for meter in adaptive.values():
            meter.measure(images)
    standard = fixed["standard, sigma 0.5"]
    return [
        (
            f"{name} (n = {N:,}, {meter.inputs} inputs)",
            f"{meter.votes:,.0f} votes, {meter.seconds:.2f} s an input; "
            f"{meter.votes / standard.votes:.2f}x and {meter.seconds / standard.seconds:.2f}x standard",
            "at most 0.50x in seconds" if name == "dual, rule fusion, adaptive" else "",
        )
        for name, meter in (fixed | adaptive).items()
    ]


def growth() -> list[Row]:
    """Cost against n, the number of inputs and the number of candidates: one small network, fixed n, rule fusion."""
    rng = np.random.default_rng(0)
    images = (rng.random((64, 3, 32, 32)) * 255).astype(np.uint8)
    network, rows = convolutional(8, 8, 16), []

    def cost(n: int, inputs: int, candidates: int) -> str:
        sigmas = tuple(np.linspace(0.25, 1.0, candidates).tolist())
        dual = DualSmoothed(_answers(network, candidates), network, sigmas, 1.0)
        dual.certify(images[0], n=200)
        meter = certifying(dual, n).measure(images[:inputs])
        return f"{meter.votes:,.0f} votes, {1e3 * meter.seconds:.0f} ms an input"

    for n in (1_000, 10_000):
        rows.append((f"n = {n:,}, 32 inputs, 3 candidates", cost(n, 32, 3), ""))
    for inputs in (1, 64):
        rows.append((f"n = 2,000, {inputs} inputs, 3 candidates", cost(2_000, inputs, 3), ""))
    for candidates in (2, 5):
        rows.append((f"n = 2,000, 32 inputs, {candidates} candidates", cost(2_000, 32, candidates), ""))
    return rows


def _answers(network: nn.Module, answers: int) -> nn.Module:
    """The network with so many answers: a router for as many candidates."""
    return nn.Sequential(network, nn.Linear(10, answers)).eval()


def main() -> None:
    """Print the cost of a certificate."""
    with Console(stderr=True).status("certifying in turns"):
        rows = cost_of_a_certificate()
    for row in rows:
        print(*row, sep=" | ")


if __name__ == "__main__":
    main()
