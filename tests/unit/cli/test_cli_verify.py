"""What a user of `dualrs verify` and of comparisons sees while they work."""

import subprocess
import sys
from pathlib import Path

import pytest

from dualrs.report.compare import gather
from dualrs.storage import Ledger, verify

WITHOUT_TORCH = "import sys; sys.modules['torch'] = None; from dualrs.cli import main; main()"


@pytest.fixture
def ledger(dualrs, two_stages):
    assert dualrs("certify", *two_stages, "--adaptive", "-o", "run.ledger")[0] == 0
    return Path("run.ledger")


def test_every_pass_tells_how_far_it_is(ledger):
    told = []
    with Ledger.open(ledger) as opened:
        assert verify(opened, lambda *state: told.append(state)) == []
    assert told[0][:2] == ("reading votes", 0)
    assert told[0][2] > 12
    assert told[1:] == [("deriving certificates", 0, 12), *(("replaying decisions", k, 12) for k in range(12))]


def test_methods_tell_how_far_they_are(dualrs, two_stages):
    assert dualrs("certify", *two_stages, "--all-votes", "-o", "all.ledger")[0] == 0
    told = []
    found = gather([Path("all.ledger")], report=lambda *state: told.append(state)).methods
    assert told == [("deriving methods", k, len(found)) for k in range(len(found))]


def test_nothing_is_left_of_the_bar_and_no_torch_is_needed(ledger):
    words = [sys.executable, "-c", WITHOUT_TORCH, "verify", ledger]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "run.ledger: 12 certificates follow from their votes; nothing was altered\n"
    assert done.stderr == ""
