"""The command line with --workers, as a user runs it: a driver that is killed, interrupted, and goes on.

Whatever happens, no process is left, and the ledger ends with the rows of one process alone.
"""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from processes import descendants, exists, voters, wait_until

from dualrs.cli import main
from dualrs.scale.cluster import connected, import_ray
from dualrs.storage import Ledger, verify

pytest.importorskip("ray", reason="dualrs[scale] is not installed")
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are found through /proc")

DUALRS = Path(sys.executable).with_name("dualrs")

NETWORKS = """
import os
import time

import numpy as np
import torch
from torch import nn


class Small(nn.Module):
    def __init__(self, seed, pause):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(96, 3))
        generator = torch.Generator().manual_seed(seed)
        for p in self.body.parameters():
            p.data = torch.randn(p.shape, generator=generator) / 3
        self.pause = pause

    def forward(self, x):
        time.sleep(self.pause)
        return self.body(x - 0.5)


def classifier():
    return Small(7, float(os.environ.get("PAUSE", "0"))).eval()


def router():
    return Small(6, 0.0).eval()


def images():
    pixels = np.random.default_rng(0).integers(0, 256, (30, 1, 6, 6), dtype=np.uint8)
    return pixels, [0, 1, 2] * 10
"""
LABEL = (
    *("label", "--classifier", "networks.py:classifier", "--sigmas", "0.25,0.5", "--data", "networks.py:images"),
    *("--n", "300", "--alpha", "0.01", "--seed", "3", "--batch-size", "50"),
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "networks.py").write_text(NETWORKS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def dualrs(monkeypatch, capsys):
    """Run a command within this process; its exit code, and what it prints."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["dualrs", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return end.value.code or 0, out, err

    return run


def start(*words, pause):
    """Start a command as a terminal does: as the leader of a group of processes that all hear an interrupt."""
    return subprocess.Popen(
        [DUALRS, *words],
        env=os.environ | {"PAUSE": str(pause), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def rows(path, table="votes"):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3, 4").fetchall()


def recorded(path):
    if not path.exists():
        return 0
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            return connection.execute("SELECT count(*) FROM votes").fetchone()[0]
    except sqlite3.OperationalError:  # not founded yet
        return 0


def reach(process, ledger, count):
    """Wait until the ledger holds so many rows, and two workers are there; return all processes of the job."""
    wait_until(
        lambda: process.poll() is not None or (recorded(ledger) >= count and len(voters(process.pid)) == 2),
        f"{count} rows were recorded",
    )
    assert process.poll() is None, process.communicate()[1]
    return descendants(process.pid)


def test_driver_killed_or_interrupted_goes_on_and_leaves_no_process(folder, dualrs):
    ledger = folder / "run.ledger"
    command = (*LABEL, "-o", "run.ledger", "--workers", "2")

    driver = start(*command, pause=0.05)
    family = reach(driver, ledger, 5)
    driver.kill()
    driver.communicate(timeout=60)
    # Two small agents of Ray itself take another minute until they notice.
    working = [pid for pid, name in family.items() if not name.startswith(("ray::Dashboard", "ray::RuntimeEnv"))]
    wait_until(lambda: not any(map(exists, working)), "the processes of a killed driver ended")
    with Ledger.open(ledger) as killed:
        assert verify(killed) == []
    before = rows(ledger)
    assert 5 <= len(before) < 60

    driver = start(*command, pause=0.05)
    family = reach(driver, ledger, len(before) + 5)
    os.killpg(driver.pid, signal.SIGINT)
    complaints = driver.communicate(timeout=60)[1]
    assert driver.returncode == 130, complaints
    assert "stopped; what was recorded is kept: run the same command again to resume" in complaints
    assert "Traceback" not in complaints
    wait_until(lambda: not any(map(exists, family)), "the processes of an interrupted driver ended")
    between = rows(ledger)
    assert set(before) < set(between)
    assert len(between) < 60

    code, out, err = dualrs(*LABEL, "-o", "run.ledger")  # what workers began, one process may end
    assert code == 0, err
    assert "labels" in out
    assert dualrs(*LABEL, "-o", "alone.ledger")[0] == 0
    assert rows(ledger) == rows(folder / "alone.ledger")
    assert [p.name for p in folder.iterdir() if p.name.startswith("run")] == ["run.ledger"]


def test_certificates_and_assigned_sigmas_come_from_workers_too(folder, dualrs):
    two = ("--router", "networks.py:router", "--sigmas", "0.25,0.5,1.0", "--sigma-e", "1.0")
    common = (
        "--data",
        "networks.py:images",
        "--inputs",
        "0:6",
        "--n",
        "400",
        "--alpha",
        "0.01",
        "--seed",
        "3",
        "--batch-size",
        "50",
    )
    commands = {
        "certify": ("certify", *two, "--classifier", "networks.py:classifier", *common, "--adaptive"),
        "assign": ("assign", *two, *common),
        "aces": (
            *("certify", "--classifier", "networks.py:classifier", "--core", "networks.py:router", "--sigma", "0.5"),
            *("--thresholds", "0.2,0.6", "--rule", "aces-0.6", *common),
        ),
    }
    with connected(import_ray(), 1, None, 0):  # once for all
        for name, command in commands.items():
            code, _, err = dualrs(*command, "-o", f"{name}.ledger", "--workers", "1")
            assert code == 0, err
    for name, command in commands.items():
        assert dualrs(*command, "-o", "alone.ledger")[0] == 0
        assert rows(folder / f"{name}.ledger") == rows(folder / "alone.ledger")
        (folder / "alone.ledger").unlink()
        assert dualrs("verify", f"{name}.ledger")[0] == 0
    assert {row[3] for row in rows(folder / "aces.ledger")} == {0.0, 0.5}, "the core answers some inputs"


def test_missing_ray_is_one_sentence(folder, dualrs, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    code, _, err = dualrs(*LABEL, "-o", "run.ledger", "--workers", "2")
    assert code == 2
    assert err.startswith("error: working with several workers needs the package ray")
    assert "pip install 'dualrs[scale]'" in err
    assert not (folder / "run.ledger").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--workers", "0"), "at least one worker, got 0"),
        (("--ray", "127.0.0.1:1"), "there is no Ray cluster to join at 127.0.0.1:1"),
    ],
)
def test_what_cannot_be_had_is_one_sentence(folder, dualrs, options, sentence):
    code, _, err = dualrs(*LABEL, "-o", "run.ledger", *options)
    assert code == 2
    assert sentence in err
    assert "Traceback" not in err
