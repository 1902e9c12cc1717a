"""Rounds, really killed: kill -9 as each kind of step begins its work, run again, and the same products at the end."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import toy
from small_run import RECIPE

from dualrs.storage import Ledger, verify
from dualrs.training.assigned import read_assigned
from dualrs.training.labels import read_labels

# A file that a step begins with and that stays: when it appears, the process is killed. (A checkpoint of so short a
# training comes and goes between two looks; kills in the middle of a training are tests/faults/test_training_killed.)
MOMENTS = ("1-labels.ledger", "1-router.log.csv", "2-assigned.ledger", "2-classifier.log.csv", "3-router.log.csv")


def begin(folder: Path) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "dualrs", "rounds", "toy.toml", "-o", "run"]
    return subprocess.Popen(words, cwd=folder, env=os.environ | {"OMP_NUM_THREADS": "1"}, stderr=subprocess.DEVNULL)


def test_same_products_after_kills(run, tmp_path):
    shutil.copy(toy.__file__, tmp_path)
    (tmp_path / "toy.toml").write_text(RECIPE)
    struck = 0
    for moment in MOMENTS:
        process = begin(tmp_path)
        while process.poll() is None and not (tmp_path / "run" / moment).exists():
            time.sleep(0.002)
        struck += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert struck == len(MOMENTS)  # it was at work each time
    assert begin(tmp_path).wait() == 0
    for name in ("1-router", "2-classifier", "3-router"):
        ours, theirs = ((folder / f"{name}.safetensors").read_bytes() for folder in (tmp_path / "run", run))
        assert ours == theirs
    for name, read in (("1-labels", read_labels), ("2-assigned", read_assigned), ("3-labels", read_labels)):
        found = []
        for folder in (tmp_path / "run", run):
            with Ledger.open(folder / f"{name}.ledger") as ledger:
                assert verify(ledger) == []
                found.append(read(ledger))
        for field in vars(found[0]):
            assert np.array_equal(getattr(found[0], field), getattr(found[1], field)), field
    assert {p.name for p in (tmp_path / "run").rglob("*")} == {p.name for p in run.rglob("*")}
