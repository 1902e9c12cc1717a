"""A real process, really killed: kill -9 at random moments, resumed until done, and compared with an unbroken run.

Moments are drawn from a seeded generator within phases that the test waits for: before there is a ledger, as it
appears, and at several stages of the work. A convolutional network pauses at each batch, so that there is time to
be killed in; the pause is not part of the run, and the unbroken one does without.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kept_rows import recorded, rows

from dualrs.storage import Ledger, verify

NETWORKS = '''
"""Networks and images for a run that is killed."""

import os
import time

import numpy as np
import torch
from torch import nn

PAUSE = float(os.environ.get("PAUSE", "0"))


class Small(nn.Module):
    def __init__(self, seed):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 6, 3), nn.ReLU(), nn.Conv2d(6, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32, 3)
        )
        generator = torch.Generator().manual_seed(seed)
        for p in self.body.parameters():
            p.data = torch.randn(p.shape, generator=generator) / 3

    def forward(self, x):
        time.sleep(PAUSE)
        return self.body(x - 0.5)


def router():
    return Small(6).eval()


def classifier():
    return Small(7).eval()


def images():
    pixels = np.random.default_rng(0).integers(0, 256, (8, 1, 6, 6), dtype=np.uint8)
    return pixels, [0, 1, 2, 0, 1, 2, 0, 1]
'''

SETTINGS = """
data = "networks.py:images"

[model]
router = "networks.py:router"
classifier = "networks.py:classifier"
sigmas = [0.25, 0.5, 1.0]
sigma_e = 1.0

[certify]
n = 2500
n0 = 100
alpha = 0.01
rule = "@RULE@"
seed = 3

[engine]
batch_size = 250
"""

PATIENCE = 60.0  # seconds until the test gives up on a phase
DUALRS = Path(sys.executable).with_name("dualrs")


def hear_interrupts():
    """A test run in the background of a shell ignores interrupts, and its children would with it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Job:
    """One command line in its own folder, started as often as needed."""

    def __init__(self, folder, rule):
        self.folder = folder
        (folder / "networks.py").write_text(NETWORKS)
        (folder / "job.toml").write_text(SETTINGS.replace("@RULE@", rule))

    def start(self, ledger, pause):
        environment = os.environ | {"PAUSE": str(pause), "OMP_NUM_THREADS": "1"}
        return subprocess.Popen(
            [DUALRS, "certify", "job.toml", "-o", ledger],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=hear_interrupts,
        )


def finish(process):
    output, complaints = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, complaints
    return output


def wait_for(condition, process):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert process.poll() is None, f"the run ended by itself:\n{process.communicate()[1]}"
        assert time.monotonic() < deadline, "the phase was never reached"
        time.sleep(0.002)


def kill(process, with_signal=signal.SIGKILL):
    process.send_signal(with_signal)
    complaints = process.communicate(timeout=PATIENCE)[1]
    return process.returncode, complaints


def test_killed_process_loses_nothing(tmp_path):
    job, moment = Job(tmp_path, "fusion"), random.Random(5)
    unbroken = job.start("unbroken.ledger", pause=0)
    ledger, pause = tmp_path / "killed.ledger", 0.03

    # Before the ledger exists: Python is still importing, or the networks are being looked at.
    process = job.start(ledger, pause)
    time.sleep(moment.uniform(0.05, 0.6))
    assert kill(process)[0] == -signal.SIGKILL
    assert not ledger.exists()

    # As it appears.
    process = job.start(ledger, pause)
    wait_for(ledger.exists, process)
    time.sleep(moment.uniform(0, 0.02))
    assert kill(process)[0] == -signal.SIGKILL

    finish(unbroken)
    expected = rows(tmp_path / "unbroken.ledger")
    total = len(expected["votes"])

    # In the middle of the work, ever further on.
    seen = [recorded(ledger) or 0]
    for share in (0.05, 0.3, 0.55, 0.8):
        process = job.start(ledger, pause)
        goal = max(share * total, seen[-1] + 1)
        wait_for(lambda: (recorded(ledger) or 0) >= goal, process)  # noqa: B023
        time.sleep(moment.uniform(0, 0.2))
        assert kill(process)[0] == -signal.SIGKILL
        with Ledger.open(ledger) as killed:  # what is left is sound, as far as it goes
            assert verify(killed) == []
        seen.append(recorded(ledger))
    assert seen == sorted(set(seen)), "no run may lose what an earlier one had committed"
    assert seen[-1] < total, "the last kill came too late to tell"

    output = finish(job.start(ledger, pause=0))
    assert rows(ledger) == expected
    assert "certified" in output
    assert [p.name for p in tmp_path.iterdir() if "killed" in p.name] == ["killed.ledger"]
    checked = subprocess.run([DUALRS, "verify", ledger], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
    assert "8 certificates follow from their votes; nothing was altered" in checked.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of Unix")
def test_interrupted_process_says_how_to_go_on(tmp_path):
    job = Job(tmp_path, "paper")
    ledger = tmp_path / "run.ledger"
    process = job.start(ledger, pause=0.03)
    wait_for(lambda: (recorded(ledger) or 0) >= 10, process)
    code, complaints = kill(process, signal.SIGINT)
    assert code == 130
    assert "stopped; what was recorded is kept: run the same command again to resume" in complaints
    assert "Traceback" not in complaints
    before = rows(ledger)
    assert len(before["votes"]) >= 10
    finish(job.start(ledger, pause=0))
    after = rows(ledger)
    assert set(before["votes"]) <= set(after["votes"])
    assert len(after["certificates"]) == 8
