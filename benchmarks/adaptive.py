"""What a certificate costs: adaptive against fixed, two stages against one, and how the cost grows.

    python -m benchmarks.adaptive        # the bundled networks on test images, about a quarter of an hour on two cores

Seconds are those of one run on one machine, side by side; every ratio is against standard smoothing at one sigma.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from torch import nn

from benchmarks.engine import Row, convolutional
from dualrs import DualSmoothed, Smoothed
from dualrs.build import Networks
from dualrs.certificates.multiscale import multiscale
from dualrs.collect import Input, Progress, collect
from dualrs.data.sources import open_dataset
from dualrs.models.hardware import keep_memory
from dualrs.policy import complete_policy
from dualrs.theory.budget import ErrorBudget
from dualrs.votes import SamplingPlan, Tally, Votes

SIGMAS, SIGMA_E, ALPHA, N, N0 = (0.25, 0.5, 1.0), 1.0, 0.001, 10_000, 100
Images = NDArray[np.uint8]
Job = Callable[[Images, Callable[[Progress], None]], object]


@dataclass
class Meter:
    """Votes and seconds of a job, an input."""

    inputs: int = 0
    votes: float = 0.0
    seconds: float = 0.0

    def measure(self, job: Job, images: Images) -> "Meter":
        """Run a job that reports its progress."""
        self.inputs = len(images)
        began = time.perf_counter()
        job(images, self._take)
        self.seconds = (time.perf_counter() - began) / self.inputs
        return self

    def _take(self, progress: Progress) -> None:
        self.votes = progress.votes / self.inputs


def cost_of_a_certificate(few: int = 10, many: int = 50) -> list[Row]:
    """Votes and seconds per input of each way to certify, on the bundled networks.

    With a fixed n one input costs much the same as another, so a few tell it; what an adaptive run takes depends on
    the inputs, and it gets many.
    """
    keep_memory()
    networks = Networks()
    classifier = networks("zoo:cifar10-denoiser | zoo:cifar10-tuned")
    router = networks("zoo:cifar10-denoiser | zoo:cifar10-router")
    data = open_dataset("cifar10:subset", None, None, None)
    assert data is not None, "it comes with dualrs"
    spread, short = (
        np.stack([data.image(i) for i in range(0, len(data.ids), len(data.ids) // count)][:count])
        for count in (many, few)
    )

    one = Smoothed(classifier, 0.5)
    dual = DualSmoothed(router, classifier, SIGMAS, SIGMA_E)
    apart = DualSmoothed(router, classifier, SIGMAS, SIGMA_E, share=False)
    for model in (one, dual):  # preflight, noise tables
        model.certify(short[0], n=300)
    fixed: dict[str, Job] = {
        "standard, sigma 0.5": lambda x, p: one.certify(x, n=N, progress=p),
        "Multiscale": lambda x, p: cascade(classifier, x, p),
        "dual, rule paper, copies not shared": lambda x, p: apart.certify(x, n=N, rule="paper", progress=p),
        "dual, rule paper": lambda x, p: dual.certify(x, n=N, rule="paper", progress=p),
        "dual, rule fusion": lambda x, p: dual.certify(x, n=N, rule="fusion", progress=p),
    }
    adaptive: dict[str, Job] = {
        "standard, adaptive": lambda x, p: one.certify(x, n=N, budget="adaptive", progress=p),
        "dual, rule paper, adaptive": lambda x, p: dual.certify(x, n=N, rule="paper", budget="adaptive", progress=p),
        "dual, rule fusion, adaptive": lambda x, p: dual.certify(x, n=N, rule="fusion", budget="adaptive", progress=p),
    }
    found = {name: Meter().measure(job, short) for name, job in fixed.items()}
    found |= {name: Meter().measure(job, spread) for name, job in adaptive.items()}
    standard = found["standard, sigma 0.5"]
    return [
        (
            f"{name} (n = {N:,}, {meter.inputs} inputs)",
            f"{meter.votes:,.0f} votes, {meter.seconds:.2f} s an input; "
            f"{meter.votes / standard.votes:.2f}x and {meter.seconds / standard.seconds:.2f}x standard",
            "at most 0.50x in seconds" if name == "dual, rule fusion, adaptive" else "",
        )
        for name, meter in found.items()
    ]


def cascade(classifier: nn.Module, images: Images, report: Callable[[Progress], None]) -> list[Votes]:
    """Multiscale as it samples by itself: the largest sigma first, the next one only where it goes down."""
    going = np.arange(len(images))
    total, stages = Progress(), []
    for sigma in sorted(SIGMAS, reverse=True):
        votes = sampled(classifier, sigma, images[going], partial(add, report, total, total.votes))
        stages.append(votes)
        level = ErrorBudget(ALPHA).cascade().upper
        down = votes.upper(votes.selection.argmax(axis=1), level) < 0.5
        going = going[down]
        if not len(going):
            break
    multiscale(stages[:1], ALPHA)  # the arithmetic, for its share of the time
    return stages


def sampled(classifier: nn.Module, sigma: float, images: Images, report: Callable[[Progress], None]) -> Votes:
    """All votes at one sigma."""
    model = Smoothed(classifier, sigma)
    model.engine.prepare(images[0])
    plan, done = SamplingPlan(N0, N), dict[str, Tally]()

    def finish(input_id: str, tally: Tally, seconds: float) -> None:
        done[input_id] = tally

    inputs = [Input(str(i), image) for i, image in enumerate(images)]
    collect(model.engine, inputs, complete_policy(model.streams, plan), plan, 0, finish=finish, report=report)
    votes = model.streams.gather([done[i.id] for i in inputs], plan)
    assert isinstance(votes, Votes), "one sigma"
    return votes


def add(report: Callable[[Progress], None], total: Progress, before: int, progress: Progress) -> None:
    """Report what one stage adds to what the stages before it had."""
    total.votes = before + progress.votes
    report(total)


def growth() -> list[Row]:
    """Cost against n, the number of inputs and the number of candidates: one small network, fixed n, rule fusion."""
    rng = np.random.default_rng(0)
    images = (rng.random((64, 3, 32, 32)) * 255).astype(np.uint8)
    network, rows = convolutional(8, 8, 16), []

    def cost(n: int, inputs: int, candidates: int) -> str:
        sigmas = tuple(np.linspace(0.25, 1.0, candidates).tolist())
        dual = DualSmoothed(_answers(network, candidates), network, sigmas, 1.0)
        dual.certify(images[0], n=200)
        meter = Meter().measure(lambda x, p: dual.certify(x, n=n, progress=p), images[:inputs])
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
    for row in cost_of_a_certificate():
        print(*row, sep=" | ")


if __name__ == "__main__":
    main()
