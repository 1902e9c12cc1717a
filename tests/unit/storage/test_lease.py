"""Leases: a second writer is told at once, a killed one locks nobody out, and readers do not notice."""

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from storage_cases import a_header, finish, finished, names
from torch import nn

from dualrs import Smoothed
from dualrs.data.dataset import ArrayDataset
from dualrs.errors import LedgerBusy, LedgerError
from dualrs.jobs import assign_dataset, certify_dataset, label_dataset
from dualrs.smoothed import Pool, RouterAlone
from dualrs.storage import Ledger, lease, verify
from dualrs.storage.lease import Lease
from dualrs.votes import SamplingPlan

# Another process that has the lease until its standard input ends, or until it is killed.
HOLD = """
import sys
from dualrs.storage.lease import Lease
with Lease(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""
# Another process in the middle of writing a ledger: some votes are committed.
WRITE = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from storage_cases import a_header, finish, names
from dualrs.storage import Ledger
with Ledger.create_or_resume(sys.argv[1], a_header()) as ledger:
    ledger.add_inputs((name, i, 0) for i, name in enumerate(names(3)))
    finish(ledger, names(2))
    ledger.commit()
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def begin():
    """Start a process that holds a lease; returns once it does."""
    begun = []

    def start(path, program=HOLD):
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        begun.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield start
    for process in begun:
        process.kill()
        process.communicate()


def end(process):
    """Let a holder come to its own end."""
    process.communicate()
    assert process.returncode == 0


def kill(process):
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL


def lock_file(path):
    return Path(f"{path}-lock")


# One writer


def test_second_process_is_told_who_writes(tmp_path, begin):
    path = tmp_path / "run.ledger"
    holder = begin(path)
    with pytest.raises(LedgerBusy, match=rf"process \(number {holder.pid}\) is writing .*run.ledger: wait"):
        Lease(path)
    end(holder)


def test_nobody_waits_for_a_lease(tmp_path, begin, monkeypatch):
    """Every lock is asked for without waiting, so that the answer comes at once."""
    asked, honest = [], fcntl.flock
    monkeypatch.setattr(fcntl, "flock", lambda file, how: asked.append(how) or honest(file, how))
    begin(tmp_path / "run.ledger")
    with pytest.raises(LedgerBusy):
        Lease(tmp_path / "run.ledger")
    assert asked
    assert all(how & fcntl.LOCK_NB for how in asked)


def test_second_writer_of_a_ledger_is_refused_and_the_first_goes_on(tmp_path, begin):
    path = tmp_path / "run.ledger"
    writer = begin(path, WRITE)
    with pytest.raises(LedgerBusy, match=str(writer.pid)):
        Ledger.create_or_resume(path, a_header())
    end(writer)
    with Ledger.create_or_resume(path, a_header()) as ledger:
        finish(ledger, names(1, first=2))
        assert verify(ledger) == []
    assert [file.name for file in tmp_path.iterdir()] == ["run.ledger"]


def test_two_leases_of_one_process_are_two_writers(tmp_path):
    with Lease(tmp_path / "run.ledger"), pytest.raises(LedgerBusy, match=rf"number {os.getpid()}\)"):
        Lease(tmp_path / "run.ledger")


def test_leases_of_different_ledgers_do_not_meet(tmp_path, begin):
    begin(tmp_path / "one.ledger")
    with Lease(tmp_path / "other.ledger"):
        pass


class Watched(nn.Module):
    """Counts how often it is asked."""

    def __init__(self):
        super().__init__()
        self.calls = 0
        self.eval()

    def forward(self, x):
        self.calls += 1
        return torch.stack([x.mean(dim=(1, 2, 3)), 1 - x.mean(dim=(1, 2, 3))], dim=1)


def certify(network, data, path):
    model = Smoothed(network, 0.5)
    certify_dataset(model, data, path, plan=SamplingPlan(10, 100), alpha=0.1, rule=model.rule(), indices=[0])


def label(network, data, path):
    label_dataset(Pool(network, [0.5]), data, path, n=100, alpha=0.1, indices=[0])


def assign(network, data, path):
    assign_dataset(RouterAlone(network, (0.25, 0.5), 0.5), data, path, n=100, alpha=0.1, indices=[0])


@pytest.mark.parametrize("job", [certify, label, assign])
def test_second_job_is_told_before_any_network_is_tried(job, tmp_path, begin):
    data = ArrayDataset(np.zeros((1, 1, 2, 2), np.uint8), [0])
    path, network = tmp_path / "run.ledger", Watched()
    holder = begin(path)
    with pytest.raises(LedgerBusy, match=str(holder.pid)):
        job(network, data, path)
    assert network.calls == 0
    assert not path.exists()
    end(holder)
    job(network, data, path)
    assert network.calls > 0
    assert [file.name for file in tmp_path.iterdir()] == ["run.ledger"]


# How a lease ends


def test_lease_of_a_killed_process_goes_to_the_next(tmp_path, begin):
    path = tmp_path / "run.ledger"
    kill(begin(path))
    assert lock_file(path).exists()  # it could not be removed, and locks nobody out
    with Lease(path):
        assert lock_file(path).read_text() == str(os.getpid())
        with pytest.raises(LedgerBusy, match=str(os.getpid())):
            Lease(path)
    assert list(tmp_path.iterdir()) == []


def test_ledger_of_a_killed_writer_is_gone_on_with(tmp_path, begin):
    path = tmp_path / "run.ledger"
    kill(begin(path, WRITE))
    with Ledger.create_or_resume(path, a_header()) as ledger:
        assert ledger.concluded() == set(names(2))
        finish(ledger, names(1, first=2))
        assert verify(ledger) == []
    assert [file.name for file in tmp_path.iterdir()] == ["run.ledger"]


def test_longer_number_of_a_killed_process_is_written_over(tmp_path):
    lock_file(tmp_path / "run.ledger").write_text("12345678901234567890")
    with Lease(tmp_path / "run.ledger"):
        assert lock_file(tmp_path / "run.ledger").read_text() == str(os.getpid())


def test_release_removes_the_file_and_a_second_one_is_nothing(tmp_path):
    path = tmp_path / "run.ledger"
    held = Lease(path)
    assert lock_file(path).exists()
    held.release()
    assert list(tmp_path.iterdir()) == []
    with Lease(path):
        held.release()  # not that of the next one
        assert lock_file(path).exists()
        with pytest.raises(LedgerBusy):
            Lease(path)


def test_lease_ends_with_a_failure(tmp_path):
    with pytest.raises(ZeroDivisionError), Lease(tmp_path / "run.ledger"):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_closing_a_ledger_gives_its_lease_back(tmp_path):
    path = finished(tmp_path / "run.ledger")
    ledger = Ledger.create_or_resume(path, a_header())
    assert lock_file(path).exists()
    ledger.close()
    assert not lock_file(path).exists()


def test_refused_ledger_gives_its_lease_back(tmp_path):
    path = finished(tmp_path / "run.ledger")
    with pytest.raises(LedgerError, match="another run"):
        Ledger.create_or_resume(path, a_header(seed=8))
    assert [file.name for file in tmp_path.iterdir()] == ["run.ledger"]


def test_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(LedgerError, match="there is no folder"):
        Lease(tmp_path / "nowhere" / "run.ledger")


# Readers


def test_reader_is_not_disturbed(tmp_path, begin):
    path = tmp_path / "run.ledger"
    writer = begin(path, WRITE)
    with Ledger.open(path) as ledger:
        assert ledger.concluded() == set(names(2))
        assert verify(ledger) == []
    end(writer)


def test_reading_takes_no_lease(tmp_path):
    path = finished(tmp_path / "run.ledger")
    with Ledger.open(path):
        assert not lock_file(path).exists()
        with Lease(path):
            pass


# A holder that lets go between our opening the file and our locking it


def test_file_removed_before_it_could_be_locked_is_made_again(tmp_path, monkeypatch):
    path, honest, locked = tmp_path / "run.ledger", lease._lock, []

    def lock(file):
        if not locked:
            lock_file(path).unlink()  # as the holder does at the end
        locked.append(file)
        honest(file)

    monkeypatch.setattr(lease, "_lock", lock)
    with Lease(path):
        assert len(locked) == 2
        assert lock_file(path).read_text() == str(os.getpid())
        with pytest.raises(LedgerBusy):
            Lease(path)
    assert list(tmp_path.iterdir()) == []


def test_file_replaced_by_that_of_a_third_process_locks_us_out(tmp_path, begin, monkeypatch):
    path, honest, third = tmp_path / "run.ledger", lease._lock, []

    def lock(file):
        if not third:
            lock_file(path).unlink()
            third.append(begin(path))
        honest(file)

    monkeypatch.setattr(lease, "_lock", lock)
    with pytest.raises(LedgerBusy, match="is writing") as told:
        Lease(path)
    assert f"number {third[0].pid})" in str(told.value)


def test_without_a_second_look_two_processes_would_write(tmp_path, begin, monkeypatch):
    """The sabotaged twin of the test above: a lock on a file that is no longer there locks nobody out."""
    path, honest, third = tmp_path / "run.ledger", lease._lock, []

    def lock(file):
        if not third:
            lock_file(path).unlink()
            third.append(begin(path))
        honest(file)

    monkeypatch.setattr(lease, "_lock", lock)
    monkeypatch.setattr(Lease, "_is_at_its_place", lambda self, file: True)
    with Lease(path):
        assert third[0].poll() is None
