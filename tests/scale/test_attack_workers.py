"""Attacks on several processes: every certificate is attacked once, whatever happens to a worker."""

import os
import signal
import sys

import numpy as np
import pytest
from processes import descendants, wait_until

from dualrs import Effort, Smoothed, attack_ledger, certify_dataset
from dualrs.data.dataset import ArrayDataset
from dualrs.errors import WorkersFailed
from dualrs.scale.cluster import connected, import_ray
from dualrs.storage.attacks import read_attacks
from small import Small

pytest.importorskip("ray", reason="dualrs[scale] is not installed")
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are found through /proc")

QUICK = Effort(steps=2, restarts=1, copies=4, walk_votes=8, votes=50, verdict=50)


class Suicidal(Small):
    """Ends its process as soon as gradients are asked for."""

    def forward(self, x):
        if x.requires_grad:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().forward(x)


@pytest.fixture(scope="module")
def cluster():
    with connected(import_ray(), 2, None, 0):
        yield


@pytest.fixture
def attacked(tmp_path, cluster):
    """How to attack the certificates of a small run."""
    images = ArrayDataset(np.random.default_rng(0).integers(0, 256, (12, 1, 6, 6), dtype=np.uint8))

    def attack(network=None, **settings):
        model = Smoothed(network or Small(), sigma=0.1)
        ledger = tmp_path / "run.ledger"
        certify_dataset(model, images, ledger, n=100, n0=20, seed=1)
        return attack_ledger(model, images, ledger, tmp_path / "run.attack", effort=QUICK, workers=2, **settings)

    attack.out = tmp_path / "run.attack"
    return attack


def attackers():
    return sorted(pid for pid, name in descendants(os.getpid()).items() if name.startswith("ray::_Worker"))


def test_every_certificate_is_attacked_once(attacked):
    told = []
    found = attacked(report=lambda done, total: told.append((done, total)))
    assert len(found) > 2
    assert sorted(row.id for row in read_attacks(attacked.out)) == sorted(row.id for row in found)
    assert told == [(done, len(found)) for done in range(len(found) + 1)]
    assert [row.id for row in attacked()] == [row.id for row in found]  # resumed, with nothing left to do


def test_a_killed_worker_costs_one_input(attacked):
    def kill(done, total):
        if done == 1:
            wait_until(attackers, "a worker is there")
            os.kill(attackers()[0], signal.SIGKILL)

    found = attacked(report=kill)
    assert len(read_attacks(attacked.out)) == len(found) > 2


def test_an_input_that_ends_its_workers_is_named(attacked):
    with pytest.raises(WorkersFailed, match="workers were lost while they attacked input"):
        attacked(Suicidal())
