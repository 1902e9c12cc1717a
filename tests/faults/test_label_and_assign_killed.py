"""kill -9 on label and assign: as the ledger appears, in the middle of the work, and while old votes are copied.

Only what is killed is a process of its own; the unbroken run and the last one are commands within this process.
"""

import os
import random
import signal
import subprocess
import sys
import time

import pytest
from kept_rows import recorded, rows
from test_kill_and_resume import DUALRS, NETWORKS, kill, wait_for

from dualrs.cli import main
from dualrs.storage import Ledger, verify

# The process kills itself at its k-th record: copying is too quick to be met from outside.
DEADLY = """

if "DIE_AT" in os.environ:
    import signal

    from dualrs.storage import Ledger

    record, left = Ledger.record, int(os.environ["DIE_AT"])

    def deadly(ledger, unit, counts):
        global left
        record(ledger, unit, counts)
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    Ledger.record = deadly
"""

COMMON = ("--data", "networks.py:images", "--n", "300", "--alpha", "0.01", "--seed", "3", "--batch-size", "50")
EXPERTS = ("--expert", "0.25=networks.py:classifier", "--expert", "0.5=networks.py:classifier")
LABEL = ("label", *EXPERTS, "--sigmas", "0.25,0.5", *COMMON)
ONE_MORE = ("label", *EXPERTS, "--expert", "1.0=networks.py:router", "--sigmas", "0.25,0.5,1.0", *COMMON)
ASSIGN = ("assign", "--router", "networks.py:router", "--sigmas", "0.25,0.5,1.0", "--sigma-e", "1.0", *COMMON)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "networks.py").write_text(NETWORKS + DEADLY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def finish(monkeypatch, capsys):
    """Run a command to its end; returns what it prints."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["dualrs", *words])
        with pytest.raises(SystemExit) as end:
            main()
        out, complaints = capsys.readouterr()
        assert not end.value.code, complaints
        return out

    return run


def start(*words, **environment):
    environment = os.environ | {"OMP_NUM_THREADS": "1"} | environment
    return subprocess.Popen(
        [DUALRS, *words], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("command", [LABEL, ASSIGN], ids=["label", "assign"])
def test_killed_process_loses_nothing(command, finish, folder):
    finish(*command, "-o", "unbroken.ledger")
    expected = rows(folder / "unbroken.ledger")
    total = len(expected["votes"])
    assert total == (16 if command == LABEL else 8)

    ledger, moment, seen = folder / "killed.ledger", random.Random(5), []
    for share in (0, 0.2, 0.5):
        process = start(*command, "-o", "killed.ledger", PAUSE="0.04")
        wait_for(ledger.exists, process)
        goal = max(share * total, seen[-1] + 1) if seen else 0
        wait_for(lambda: (recorded(ledger) or 0) >= goal, process)  # noqa: B023
        time.sleep(moment.uniform(0, 0.05))
        assert kill(process)[0] == -signal.SIGKILL
        seen.append(recorded(ledger) or 0)
        if seen[-1]:
            with Ledger.open(ledger) as killed:
                assert verify(killed) == []
    assert seen == sorted(set(seen)), "no run may lose what an earlier one had committed"
    assert seen[-1] < total, "the last kill came too late to tell"

    finish(*command, "-o", "killed.ledger")
    assert rows(ledger) == expected
    assert [p.name for p in folder.iterdir() if "killed" in p.name] == ["killed.ledger"]
    assert "of 8 inputs; nothing was altered" in finish("verify", "killed.ledger")


def test_process_killed_while_votes_are_copied_begins_that_anew(finish, folder):
    finish(*LABEL, "-o", "old.ledger")
    before = (folder / "old.ledger").read_bytes()
    command = (*ONE_MORE, "-o", "new.ledger", "--reuse", "old.ledger")
    for die_at, least, most in (
        ("9", 0, 0),  # of 16 rows to be copied: all or none
        ("20", 16, 20),  # all are copied, and some of 8 more are drawn
    ):
        process = start(*command, DIE_AT=die_at)
        complaints = process.communicate(timeout=60)[1]
        assert process.returncode == -signal.SIGKILL, complaints
        assert least <= recorded(folder / "new.ledger") <= most
    assert "took over 0 votes" in finish(*command)
    finish(*ONE_MORE, "-o", "fresh.ledger")
    assert rows(folder / "new.ledger") == rows(folder / "fresh.ledger")
    assert (folder / "old.ledger").read_bytes() == before
