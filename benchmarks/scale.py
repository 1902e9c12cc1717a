"""What workers are worth, what they cost the driver, and a model of both.

python -m benchmarks.scale         # about ten minutes on two cores, which it needs for itself
python -m benchmarks.scale small   # a minute: whether it works, not how well
"""

import logging
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from dualrs.data.dataset import ArrayDataset
from dualrs.jobs import certify_dataset, label_dataset
from dualrs.models import zoo
from dualrs.models.noisy import takes_sigma
from dualrs.sampling.collect import Progress
from dualrs.scale.cluster import import_ray
from dualrs.scale.workers import Workers
from dualrs.smoothed import Pool, Smoothed, SmoothedModel
from dualrs.votes import SamplingPlan

Row = tuple[str, str, str]
Job = Callable[[SmoothedModel, Path, Callable[[Progress], None]], None]

SIGMAS = (0.25, 0.5, 1.0)
LARGE = (8, 32, 128)  # workers that the model is asked about


class Pinned(nn.Module):
    """A network that takes one core of the machine for itself, in whichever process it runs; told the sigma or not."""

    def __init__(self, network: nn.Module, folder: Path) -> None:
        super().__init__()
        self.network, self.folder, self.taken = network, folder, False
        self.told = takes_sigma(network)

    def forward(self, x: Tensor, sigma: float) -> Tensor:
        """Logits of the network."""
        if not self.taken:
            for core in sorted(os.sched_getaffinity(0)):
                try:
                    (self.folder / str(core)).touch(exist_ok=False)
                except FileExistsError:
                    continue
                os.sched_setaffinity(0, {core})  # of this thread, and of those that it will start
                break
            self.taken = True
        logits: Tensor = self.network(x, sigma=sigma) if self.told else self.network(x)
        return logits


class Trivial(nn.Module):
    """Tells bright images from dark ones."""

    def forward(self, x: Tensor) -> Tensor:
        """Logits from the mean."""
        mean = x.flatten(1).mean(1, keepdim=True)
        return torch.cat([mean, 1 - mean], dim=1)


@dataclass
class Timing:
    """What a job took once its workers were ready."""

    seconds: float
    driver: float  # seconds of processor time of the driver
    votes: int
    inputs: int


def timed(make: Callable[[], SmoothedModel], job: Job, workers: int, folder: Path) -> Timing:
    """Do a job with so many workers of one core each."""
    model, seen = make(), []
    ray = import_ray()
    ray.init(
        address="local", num_cpus=workers, object_store_memory=200 << 20, include_dashboard=False,
        log_to_driver=False, logging_level=logging.ERROR,
    )  # fmt: skip
    try:
        with Workers(model.engine, count=workers) as staff:
            model.engine = staff.executor

            def report(progress: Progress) -> None:
                seen.append((time.perf_counter(), time.process_time(), progress.votes, progress.inputs))

            job(model, folder / f"{time.monotonic_ns()}.ledger", report)
    finally:
        ray.shutdown()
    (began, driver, _, _), (ended, driver_after, votes, inputs) = seen[0], seen[-1]
    return Timing(ended - began, driver_after - driver, votes, inputs)


def speedup(inputs: int = 300, n: int = 100, certified: int = 48, votes: int = 4_000, times: int = 2) -> list[Row]:
    """Two workers with one core each against one with one core, on labelling and on certification."""
    network = zoo.load("cifar10-classifier")
    told = {"sigma": 0.5} if takes_sigma(network) else {}
    with FlopCounterMode(display=False) as counter, torch.inference_mode():
        network(torch.rand(1, 3, 32, 32), **told)
    size = f"{counter.get_total_flops() / 2e6:.1f} MMAC"
    pixels = np.random.default_rng(0).integers(0, 256, (max(inputs, certified), 3, 32, 32), dtype=np.uint8)
    data = ArrayDataset(pixels, [0] * len(pixels), name="random")

    def label(model: SmoothedModel, path: Path, report: Callable[[Progress], None]) -> None:
        assert isinstance(model, Pool)
        label_dataset(model, data, path, n=n, alpha=0.01, seed=0, indices=range(inputs), report=report)

    def certify(model: SmoothedModel, path: Path, report: Callable[[Progress], None]) -> None:
        certify_dataset(
            model, data, path, plan=SamplingPlan(100, votes), alpha=0.01, rule=model.rule(), seed=0,
            indices=range(certified), report=report,
        )  # fmt: skip

    rows: list[Row] = []
    with TemporaryDirectory() as name:
        folder = Path(name)

        def pinned() -> nn.Module:
            place = folder / f"cores-{time.monotonic_ns()}"
            place.mkdir()
            return Pinned(network, place).eval()

        jobs: dict[str, tuple[Callable[[], SmoothedModel], Job]] = {
            f"labelling, {inputs} inputs, n = {n} at {len(SIGMAS)} sigmas": (lambda: Pool(pinned(), SIGMAS), label),
            f"certification, {certified} inputs, n = {votes:,}": (lambda: Smoothed(pinned(), 0.5), certify),
        }
        for what, (make, job) in jobs.items():
            one, two = [], []
            for _ in range(times):
                one.append(timed(make, job, 1, folder))
                two.append(timed(make, job, 2, folder))
            ratio = sum(t.seconds for t in one) / sum(t.seconds for t in two)
            rows.append((f"2 workers against 1, one core each: {what} ({size})", f"{ratio:.2f}x", "at least 1.7x"))
            rows += _model(what, one, two)
    return rows


def _model(what: str, one: list[Timing], two: list[Timing]) -> list[Row]:
    """The model of docs/scale.md, fitted to one worker: its prediction for two on this machine, and for many."""
    votes = sum(t.votes for t in one)
    worker = sum(t.seconds for t in one) / votes  # seconds of one worker for a vote
    driver = sum(t.driver for t in one) / votes  # and of the driver
    shared = 2 * worker / (worker + driver)  # two workers and the driver on two cores
    measured = sum(t.votes for t in two) / sum(t.seconds for t in two) * worker
    many = ", ".join(f"{n}: {min(n, worker / driver):.0f}x" for n in LARGE)
    return [
        (f"... the model's prediction ({worker * 1e6:.0f} us worker, {driver * 1e6:.1f} us driver a vote)",
         f"{shared:.2f}x", f"{measured:.2f}x measured"),
        ("... and for many workers, the driver on a core of its own", many, ""),
    ]  # fmt: skip


def units(inputs: int = 1_000_000) -> list[Row]:
    """The driver's memory, and how fast inputs are finished, with a network that takes no time."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:  # whose peak is that of this job alone
        timing, peak = process.submit(_trivial, inputs).result()
    per_input = timing.driver / inputs
    return [
        (f"driver's peak memory over {inputs:,} units", f"{peak / 2**20:.0f} MiB", "under 1024 MiB"),
        ("finished inputs a second, with all on this machine", f"{inputs / timing.seconds:,.0f}", "at least 2,000"),
        ("... by the driver alone, if it need not wait", f"{1 / per_input:,.0f} ({per_input * 1e6:.0f} us each)", ""),
    ]


def _trivial(inputs: int) -> tuple[Timing, int]:
    """A job of one tiny unit an input, and the most memory that the driver had."""
    torch.set_num_threads(1)
    pixels = np.random.default_rng(0).integers(0, 256, (inputs, 1, 2, 2), dtype=np.uint8)
    data = ArrayDataset(pixels, [0] * inputs, name="tiny")

    def label(model: SmoothedModel, path: Path, report: Callable[[Progress], None]) -> None:
        assert isinstance(model, Pool)
        label_dataset(model, data, path, n=4, alpha=0.3, seed=0, indices=range(inputs), report=report)

    with TemporaryDirectory() as folder:
        timing = timed(lambda: Pool(Trivial().eval(), (0.5,), batch_size=1000), label, 2, Path(folder))
    status = Path("/proc/self/status").read_text()
    return timing, int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) * 1024


def main(small: bool) -> None:
    table = Table("benchmark", "measured", "wanted")
    for row in speedup(inputs=6, certified=2, votes=1_000, times=1) if small else speedup():
        table.add_row(*row)
    for row in units(10_000) if small else units():
        table.add_row(*row)
    Console().print(table)


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["small"]):
        sys.exit(__doc__)
    main(small=bool(sys.argv[1:]))
