"""A run with a core network, killed with kill -9 in the middle of its work, ends like an unbroken one."""

import signal
import subprocess

from kept_rows import recorded, rows
from test_kill_and_resume import DUALRS, Job, finish, kill, wait_for

from dualrs.storage import Ledger, verify

RECIPE = """
data = "networks.py:images"

[model]
classifier = "networks.py:classifier"
core = "networks.py:router"
sigma = 0.5
thresholds = [0.2, 0.6]

[certify]
n = 2500
n0 = 100
alpha = 0.01
rule = "aces-0.6"
seed = 0

[engine]
batch_size = 250
"""


def test_killed_run_with_a_core_goes_on(tmp_path):
    job = Job(tmp_path, "unused")
    (tmp_path / "job.toml").write_text(RECIPE)
    unbroken = job.start("unbroken.ledger", pause=0)
    ledger = tmp_path / "killed.ledger"
    process = job.start(ledger, pause=0.03)
    wait_for(lambda: (recorded(ledger) or 0) >= 20, process)
    assert kill(process)[0] == -signal.SIGKILL
    with Ledger.open(ledger) as killed:
        assert verify(killed) == []

    finish(unbroken)
    expected = rows(tmp_path / "unbroken.ledger")
    assert 20 <= recorded(ledger) < len(expected["votes"]), "the kill came too late to tell"
    assert {row[3] for row in expected["votes"]} == {0.0, 0.5}  # the core answers some inputs
    finish(job.start(ledger, pause=0))
    assert rows(ledger) == expected
    checked = subprocess.run([DUALRS, "verify", ledger], capture_output=True, text=True, check=False)
    assert "8 certificates follow from their votes; nothing was altered" in checked.stdout
