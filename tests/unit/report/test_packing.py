"""The votes in a page are those of the ledger, in the steps that it offers."""

import numpy as np
import pytest
from report_cases import a_header, made

from dualrs.report.page import packing
from dualrs.report.page.packing import offered, pack
from dualrs.storage import Ledger
from dualrs.storage.results import read_sampled
from dualrs.votes import SamplingPlan


@pytest.mark.parametrize(
    ("n", "steps"),
    [
        (50, (50,)),
        (500, (100, 200, 500)),
        (700, (100, 200, 500, 700)),
        (10_000, (200, 500, 1_000, 2_000, 5_000, 10_000)),
    ],
)
def test_steps_end_at_n(n, steps):
    assert offered(SamplingPlan(10, n)) == steps


def test_an_adaptive_run_has_its_looks():
    assert offered(SamplingPlan(10, 500, (100, 300, 500))) == (100, 300, 500)


def dense(rows, parts, answers):
    """Counts of every input, (inputs, parts, answers)."""
    found = np.zeros((len(rows), parts, answers), dtype=np.int64)
    for i, row in enumerate(rows):
        for answer, *counts in np.reshape(row, (-1, parts + 1)).tolist():
            found[i, :, answer] = counts
    return found


@pytest.fixture
def path(tmp_path):
    return made(tmp_path / "run.ledger", count=7)


def test_counts_add_up_to_those_of_the_ledger(path):
    with Ledger.open(path) as ledger:
        sampled = read_sampled(ledger)
        packed = pack(ledger, sampled.ids.tolist())
    router, *experts = packed["networks"]
    assert [router["stage"], *(e["sigma"] for e in experts)] == ["router", 0.25, 0.5, 1.0]
    for network, votes in zip((router, *experts), (sampled.votes.router, *sampled.votes.experts), strict=True):
        assert (dense(network["selection"], 1, votes.answers)[:, 0] == votes.selection).all()
        found = dense(network["estimation"], 3, votes.answers)
        assert (found.sum(axis=1) == votes.estimation).all()
        assert (found.sum(axis=2) == (100, 100, 300)).all()


def test_a_very_large_run_keeps_its_votes_and_loses_steps(path, monkeypatch):
    monkeypatch.setattr(packing, "_MOST", 10)
    with Ledger.open(path) as ledger:
        packed = pack(ledger, [row.id for row in ledger.inputs()])
    assert packed["steps"] == (500,)
    assert all(sum(row[1::2]) == 500 for row in packed["networks"][0]["estimation"])


def test_inputs_without_votes_of_a_network_have_none(tmp_path):
    path = made(tmp_path / "run.ledger", a_header(rule="paper", votes="needed"), only_chosen=True)
    with Ledger.open(path) as ledger:
        packed = pack(ledger, [row.id for row in ledger.inputs()])
    asked = [[bool(row) for row in network["estimation"]] for network in packed["networks"][1:]]
    assert (np.sum(asked, axis=0) == 1).all()


def test_the_answer_of_a_core_network(tmp_path):
    header = a_header(rule="aces-0.5", sigmas=(0.5,), sigma_e=0.5, thresholds=(0.5, 1.0))
    with Ledger.open(made(tmp_path / "run.ledger", header)) as ledger:
        packed = pack(ledger, [row.id for row in ledger.inputs()])
        core = ledger.votes([row.id for row in ledger.inputs()]).core
    assert packed["without_noise"] == {
        "class": {"answer": core.argmax(axis=1).tolist(), "radius": None},
        "router": None,
    }
    assert len(packed["networks"]) == 2
