"""A process killed while SQLite writes its pages leaves a journal beside the file: the next run undoes what it says."""

import shutil
import sqlite3

import numpy as np
import pytest
import torch
from torch import nn

from dualrs import Smoothed
from dualrs.data.dataset import ArrayDataset
from dualrs.errors import LedgerError
from dualrs.jobs import certify_dataset
from dualrs.schemes import rule
from dualrs.storage import Ledger, verify
from dualrs.votes import SamplingPlan


class Bright(nn.Module):
    def forward(self, x):
        grey = x.mean(dim=(1, 2, 3))
        return torch.stack([grey, 1 - grey], dim=1)


IMAGES = ArrayDataset(np.full((2, 1, 4, 4), 200, dtype=np.uint8), [0, 0], name="grey")


def certify(path):
    certify_dataset(
        Smoothed(Bright().eval(), sigma=0.5), IMAGES, path,
        plan=SamplingPlan(10, 100), alpha=0.05, rule=rule("cohen"), seed=0, indices=[0, 1],
    )  # fmt: skip


def killed_in_the_middle(path, tmp_path):
    """What lies on disk when a process dies within a transaction whose pages have begun to reach the file."""
    working = tmp_path / "working.db"
    if path.exists():
        shutil.copy(path, working)
    connection = sqlite3.connect(working, isolation_level=None)
    connection.execute("PRAGMA cache_size = 1")  # pages spill into the file before the commit
    connection.execute("BEGIN EXCLUSIVE")
    connection.execute("CREATE TABLE half (done BLOB)")
    connection.executemany("INSERT INTO half VALUES (?)", [(bytes(4000),)] * 50)
    shutil.copy(working, path)
    shutil.copy(f"{working}-journal", f"{path}-journal")
    connection.close()
    assert path.stat().st_size > 4096


def test_run_whose_founding_was_cut_off_begins_anew(tmp_path):
    path = tmp_path / "run.ledger"
    killed_in_the_middle(path, tmp_path)
    certify(path)
    with Ledger.open(path) as ledger:
        assert verify(ledger) == []
        assert len(ledger.concluded()) == 2


def test_run_that_was_cut_off_later_keeps_what_it_had(tmp_path):
    path = tmp_path / "run.ledger"
    certify(path)
    with Ledger.open(path) as ledger:
        before = ledger.certificates()
    killed_in_the_middle(path, tmp_path)
    certify(path)
    with Ledger.open(path) as ledger:
        assert verify(ledger) == []
        assert ledger.certificates() == before


def test_reader_says_what_to_do_and_changes_nothing(tmp_path):
    path = tmp_path / "run.ledger"
    certify(path)
    killed_in_the_middle(path, tmp_path)
    content = path.read_bytes()
    with pytest.raises(LedgerError, match="in the middle of a write by a process that was killed: run the command"):
        Ledger.open(path)
    assert path.read_bytes() == content
    assert (tmp_path / "run.ledger-journal").exists()
