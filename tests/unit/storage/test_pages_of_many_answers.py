"""A thousand classes with confidences: the ledger of a cascade stays small, and every confidence follows from it."""

import contextlib
import sqlite3

import numpy as np
import torch
from torch import nn

import dualrs
from dualrs import Cascade
from dualrs.storage import Ledger, verify

IMAGES = np.random.default_rng(0).integers(0, 256, (2, 1, 6, 6), dtype=np.uint8)


def thousand():
    generator = torch.Generator().manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(36, 1000)).eval()
    for parameter in network.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator)
    return network


def test_ledger_of_a_thousand_classes(tmp_path):
    path = tmp_path / "run.ledger"
    model = Cascade(thousand(), (0.1, 0.25), batch_size=200)
    settings = {"n": 1_000, "n0": 100, "seed": 0, "rule": "cascade-0.4"}
    found = model.certify(IMAGES, **settings, ledger=path)
    with Ledger.open(path) as ledger:
        assert verify(ledger) == []
        assert set(ledger.rows.answers.values()) == {5000}
    votes = dualrs.open(path)
    assert list(votes.certify()) == list(found) == list(model.certify(IMAGES, **settings))
    passes = [votes.votes.experts[0].confident(c).estimation[:, -1] for c in (0.3, 0.4, 0.5, 0.6)]
    assert (np.diff(passes, axis=0) >= 0).all()
    assert passes[-1].sum() > 0
    assert path.stat().st_size < 200_000


def test_no_votes_for_many_answers_take_a_page_of_their_own(tmp_path):
    """SQLite keeps a row of this kind of table in its place up to so many bytes; with small pages half was empty."""
    path = tmp_path / "run.ledger"
    images = np.random.default_rng(1).integers(100, 156, (3, 1, 6, 6), dtype=np.uint8)
    Cascade(thousand(), (0.5, 1.0), batch_size=200).certify(images, n=2_000, n0=100, seed=0, ledger=path)
    with contextlib.closing(sqlite3.connect(path)) as file:
        (page,) = file.execute("PRAGMA page_size").fetchone()
        (most,) = file.execute("SELECT max(length(counts) + length(input)) FROM votes").fetchone()
    assert 1_000 < most + 60 <= (page - 12) * 64 // 255 - 23
