"""Real workers under a real Ray: the votes are those of one process, whatever happens to the workers.

Starting a worker takes seconds, so most tests share three of them. These hold several networks, one for each sigma,
and each fails in its own way.
"""

import os
import random
import signal
import sqlite3
import sys
from contextlib import closing

import numpy as np
import pytest
from odd_networks import (
    SEED,
    SIGMA,
    SOURCE,
    Asking,
    Deadly,
    Different,
    Exact,
    Hungry,
    Poisoned,
    Starving,
    Tight,
    alone,
    engine,
    images,
    same_counts,
)
from processes import voters

from dualrs import DualSmoothed, Smoothed
from dualrs.data.dataset import ArrayDataset
from dualrs.errors import InputsFailed, WorkersFailed
from dualrs.jobs import Certification, certify_together
from dualrs.models.noisy import NoisyModel
from dualrs.references import resolve
from dualrs.sampling.engine import Engine
from dualrs.sampling.noise import NoiseSource
from dualrs.scale import workers as module
from dualrs.scale.cluster import connected, import_ray
from dualrs.scale.workers import Workers
from dualrs.votes import Purpose, SamplingPlan, Stage

pytest.importorskip("ray", reason="dualrs[scale] is not installed")
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are found through /proc")

SLOW, POISONED, DEADLY, HUNGRY = 0.011, 0.012, 0.013, 0.014  # sigmas, by which the networks are told apart


@pytest.fixture(scope="module")
def cluster():
    with connected(import_ray(), 3, None, 0):
        yield


@pytest.fixture(scope="class")
def flag(tmp_path_factory):
    """A file that is there once memory has run out."""
    return tmp_path_factory.mktemp("flags") / "hungry"


@pytest.fixture(scope="class")
def three(cluster, flag):
    networks = {
        SIGMA: Exact(),
        SLOW: Exact(pause=0.01),
        POISONED: Poisoned(),
        DEADLY: Deadly(),
        HUNGRY: Hungry(flag),
    }
    models = {(Stage.CLASS, sigma): NoisyModel("classifier", network) for sigma, network in networks.items()}
    with Workers(Engine(models, batch_size=50), count=3) as workers:
        workers.executor.prepare(images(1)["image 0"])
        yield workers


class TestSharedWorkers:
    """Three workers for all of these; afterwards their cores are free for others."""

    def test_votes_are_those_of_one_process(self, three):
        work = Asking(images(60))
        three.count([three.executor], work, SOURCE)
        same_counts(alone(work), work)
        assert work.reported == len(work.counts)
        assert three.alive == three.wanted == 3
        assert three.device.type == "cpu"

    def test_killed_workers_change_no_vote(self, three, monkeypatch):
        monkeypatch.setattr(module, "TASK_SECONDS", 0.2)  # many tasks, and something lost with every worker
        chance, killed = random.Random(1), []
        total = 150 * 4

        def kill(counted):
            if counted >= (len(killed) + 1) * total / 7 and (there := voters(os.getpid())):
                killed.append(chance.choice(there))
                os.kill(killed[-1], signal.SIGKILL)

        work = Asking(images(150), votes=400, sigma=SLOW, each=kill)
        three.count([three.executor], work, SOURCE)
        assert len(killed) >= 5
        same_counts(alone(work), work)

    def test_poisoned_input_is_reported_and_stops_no_other(self, three):
        work = Asking(images(40, odd=17), sigma=POISONED)
        with pytest.raises(InputsFailed) as caught:
            three.count([three.executor], work, SOURCE)
        assert list(caught.value.failures) == ["image 17"]
        assert str(caught.value).startswith(
            "1 input was left out (input image 17: the classifier returned NaN or infinite"
        )
        assert "the same command tries these again" in str(caught.value)
        assert work.reported == len(work.counts)
        del work.images["image 17"]
        same_counts(alone(work), work)

    def test_worker_without_memory_is_replaced(self, three, flag):
        work = Asking(images(60), sigma=HUNGRY)
        three.count([three.executor], work, SOURCE)
        assert flag.exists()
        same_counts(alone(work), work)

    def test_input_that_ends_its_worker_is_found_out(self, three):
        work = Asking(images(4, odd=2), sigma=DEADLY)
        with pytest.raises(
            InputsFailed, match="image 2: 2 workers were lost with it, the last because: its process ended"
        ):
            three.count([three.executor], work, SOURCE)
        del work.images["image 2"]
        same_counts(alone(work), work)


def test_workers_that_keep_failing_end_the_run_with_the_reason(cluster, monkeypatch):
    monkeypatch.setattr(module, "LOSSES", 2)
    work = Asking(images(40))
    with Workers(engine(Starving()), count=1) as workers:
        workers.executor.prepare(work.images["image 0"])
        with pytest.raises(WorkersFailed, match=r"2 workers in a row were lost.*memory ran out in the middle of a run"):
            workers.count([workers.executor], work, SOURCE)


def test_smallest_batch_size_is_taken_by_all(cluster, tmp_path):
    work = Asking(images(10))
    with Workers(engine(Tight(tmp_path / "flag"), batch_size=100), count=2) as workers:
        workers.executor.prepare(work.images["image 0"])
        assert workers.executor.batch_size == 25
        workers.count([workers.executor], work, SOURCE)
        same_counts(alone(work), work)


def test_workers_that_count_differently_are_refused(cluster, tmp_path):
    with (
        Workers(engine(Different(tmp_path / "flag")), count=2) as workers,
        pytest.raises(WorkersFailed, match="answer differently to the same noisy copies"),
    ):
        workers.executor.prepare(images(1)["image 0"])


def duals():
    """Two models of two stages, which have a network in common."""
    shared = Exact(4, seed=1)
    return [DualSmoothed(Exact(2, seed=s), shared, (0.25, 0.5), 0.5, batch_size=64) for s in (2, 3)]


def test_models_that_vote_together_have_the_votes_of_one_process(cluster, tmp_path):
    dataset = ArrayDataset(np.stack(list(images(12).values())), [0] * 12, name="random")
    settings = {"plan": SamplingPlan(100, 1500), "alpha": 0.01, "seed": SEED, "indices": range(12)}

    def certify(models, folder):
        folder.mkdir()
        paths = [folder / "0", folder / "1"]
        wanted = [Certification(m, m.rule("fusion"), path) for m, path in zip(models, paths, strict=True)]
        certify_together(wanted, dataset, **settings)
        return [rows(path) for path in paths]

    models = duals()
    with Workers(*(model.engine for model in models), count=1) as workers:
        for model, executor in zip(models, workers.executors, strict=True):
            model.engine = executor
        found = certify(models, tmp_path / "workers")
        assert certify(models, tmp_path / "again") == found
    expected = certify(duals(), tmp_path / "alone")
    assert found == expected
    assert {row[3] for row in expected[0] if row[1] == "class"} == {0.25, 0.5}, "both experts are asked"


def test_poisoned_first_input_stops_no_other(cluster, tmp_path):
    """The networks are tried on another input then, each on one of its own, by new workers too."""
    dataset = ArrayDataset(np.stack(list(images(12, odd=0).values())), [0] * 12, name="random")
    killed = []

    def certify(models, folder, indices, report=None):
        folder.mkdir()
        paths = [folder / "0", folder / "1"]
        wanted = [Certification(m, m.rule(), path) for m, path in zip(models, paths, strict=True)]
        settings = {"plan": SamplingPlan(100, 1500), "alpha": 0.01, "seed": SEED, "indices": indices}
        try:
            certify_together(wanted, dataset, **settings, report=report)
        finally:
            results.append([[row for row in rows(path) if row[0] != "0"] for path in paths])

    def kill(progress):
        if progress.votes and not killed:  # all: to end the job, others must be found to count alike
            killed.extend(voters(os.getpid()))
            for pid in killed:
                os.kill(pid, signal.SIGKILL)

    def models():
        return [Smoothed(network, SIGMA, batch_size=50) for network in (Exact(pause=0.01), Poisoned(seed=4))]

    results = []
    there = models()
    with Workers(*(model.engine for model in there), count=2) as workers:
        for model, executor in zip(there, workers.executors, strict=True):
            model.engine = executor
        with pytest.raises(InputsFailed) as caught:
            certify(there, tmp_path / "workers", range(12), kill)
        assert list(caught.value.failures) == ["0"]
        assert len(killed) == 2
    certify(models(), tmp_path / "alone", range(1, 12))
    assert results[0] == results[1]


def rows(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT * FROM votes ORDER BY 1, 2, 3, 4, 5").fetchall()


OWN = """
from torch import nn

from layers_beside import double


class Own(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return double(self.inner(x))
"""


def test_network_from_a_file_of_the_user_goes_along(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "net.py").write_text(OWN)
    (tmp_path / "layers_beside.py").write_text("def double(x):\n    return 2 * x\n")
    network = resolve("net.py:Own", tmp_path)(Exact()).eval()
    (tmp_path / "net.py").unlink()  # no worker can find them on the disk
    (tmp_path / "layers_beside.py").unlink()
    work = Asking(images(5))
    with Workers(engine(network), count=1) as workers:
        workers.executor.prepare(work.images["image 0"])
        for seed in (SEED + 1, SEED):  # run after run
            work = Asking(work.images)
            workers.count([workers.executor], work, NoiseSource(Purpose.CERTIFY, seed))
    same_counts(alone(work), work)
