"""An adaptive run, killed with kill -9 several times, takes the votes that an unbroken one takes, and no others."""

import random
import signal

from kept_rows import recorded, rows
from test_kill_and_resume import SETTINGS, Job, finish, kill, wait_for

from dualrs.storage import Ledger, verify
from dualrs.theory.looks import planned_looks

ADAPTIVE = SETTINGS.replace("@RULE@", "fusion").replace("n = 2500", 'n = 6400\nbudget = "adaptive"\ntolerance = 0.02')


def test_killed_adaptive_run_goes_on_to_the_same_votes(tmp_path):
    job, moment = Job(tmp_path, "unused"), random.Random(1)
    (tmp_path / "job.toml").write_text(ADAPTIVE)
    unbroken = job.start("unbroken.ledger", pause=0)
    ledger = tmp_path / "killed.ledger"
    finish(unbroken)
    expected = rows(tmp_path / "unbroken.ledger")
    total = len(expected["votes"])
    # The last look has two units, so that a kill can leave it half done.
    assert any(row[4] not in (0, *planned_looks(6400)) for row in expected["votes"])

    for share in (0.3, 0.7):
        process = job.start(ledger, pause=0.01)
        wait_for(lambda: (recorded(ledger) or 0) >= share * total, process)  # noqa: B023
        wait_for(lambda: moment.random() < 0.05, process)  # a little later
        assert kill(process)[0] == -signal.SIGKILL
        with Ledger.open(ledger) as killed:
            assert verify(killed) == []
    assert recorded(ledger) < total, "the last kill came too late to tell"

    finish(job.start(ledger, pause=0))
    assert rows(ledger) == expected
    with Ledger.open(ledger) as done:
        assert len(done.certificates()) == 8
        assert verify(done) == []
