"""How far a run is, told from its ledger while another process writes it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from dualrs.storage import Ledger
from dualrs.storage.status import standing

DUALRS = Path(sys.executable).with_name("dualrs")
PAUSED = """

import time


class Slow(Half):
    def forward(self, x):
        time.sleep(0.02)
        return super().forward(x)


slow = Slow([0.1, 0.5, 0.9]).eval()
"""
LABEL = ("label", "--sigmas", "0.1,0.2", "--data", "net.py:data", "--n", "1000", "--seed", "0", "--batch-size", "50")


def test_finished_run(dualrs, two_stages):
    assert dualrs("certify", *two_stages, "-o", "run.ledger")[0] == 0
    code, out, _ = dualrs("status", "run.ledger")
    assert code == 0
    first, second = out.splitlines()
    assert first.startswith("certificates under rule fusion · net.py:data · n 200 · n0 20 · seed 0 · begun 20")
    assert second.startswith("12 of 12 inputs done (100.0%), ")


def test_run_that_goes_on_elsewhere(dualrs, folder, monkeypatch):
    with (folder / "net.py").open("a") as file:
        file.write(PAUSED)
    ledger = folder / "labels.ledger"
    words = [DUALRS, *LABEL, "--classifier", "net.py:slow", "-o", ledger]
    process = subprocess.Popen(words, env=os.environ | {"OMP_NUM_THREADS": "1"}, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while not ledger.exists() or not _votes(ledger):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        code, out, err = dualrs("status", ledger)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert code == 0, err
    first, second, third = out.splitlines()
    assert first.startswith("labels · net.py:data · n 1,000 · seed 0 · begun 20")
    assert " of 12 inputs done (" in second
    assert "votes/s, about " in third
    assert third.endswith(" left")

    monkeypatch.setattr(sys.modules["dualrs.cli.status"], "_PATIENCE", 1.0)  # nothing will come
    code, out, err = dualrs("status", ledger)
    assert "last written " in out
    os.utime(ledger, (0, 0))
    os.utime(f"{ledger}-wal", (0, 0))
    code, out, err = dualrs("status", ledger)
    assert "nothing was written for " in out
    assert f"go on with: dualrs {' '.join(LABEL)} --classifier net.py:slow -o {ledger}" in out


def _votes(ledger):
    try:
        with Ledger.open(ledger) as opened:
            return standing(opened).votes
    except Exception:  # not founded yet
        return 0


def test_unfinished_assignment(dualrs):
    words = ("--router", "net.py:router", "--sigmas", "0.1,0.2", "--sigma-e", "0.2", "--data", "net.py:data")
    assert dualrs("assign", *words, "--n", "100", "-o", "run.ledger", "--inputs", "0:5")[0] == 0
    with Ledger.open("run.ledger") as ledger:
        assert (now := standing(ledger)).inputs == 5
        assert (now.done, now.votes) == (5, 500)


def test_what_is_no_ledger(dualrs):
    code, _, err = dualrs("status", "nothing.ledger")
    assert code == 2
    assert "there is no ledger nothing.ledger" in err
