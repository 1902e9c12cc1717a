"""Assigning sigmas from the command line, and what the other commands make of the ledger that keeps them."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from dualrs.storage import Ledger
from dualrs.training.assigned import read_assigned

ROUTER = ("--router", "net.py:router", "--sigmas", "0.25,0.5", "--sigma-e", "0.5")
WORDS = (*ROUTER, "--data", "net.py:data", "--n", "60", "--seed", "0")


def assigned(path):
    with Ledger.open(path) as ledger:
        return read_assigned(ledger)


def tamper(path, sql):
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(sql).rowcount


def test_every_input_gets_the_sigma_that_the_router_names(dualrs, folder):
    code, out, err = dualrs("assign", "-o", "a.ledger", *WORDS)
    assert code == 0, err
    found = assigned(folder / "a.ledger")
    assert len(found.ids) == 12
    # The router prefers 0.25 for greys below the middle; those beside it are too close to call.
    assert found.sigma_c.tolist() == [0.25] * 6 + [0.5] * 6
    assert found.decided[[0, 1, 2, -3, -2, -1]].all()
    undecided = int((~found.decided).sum())
    assert 0 < undecided < 6
    assert f"12 inputs, and {undecided} of them undecided" in out
    assert dualrs("show", "a.ledger")[1] == out
    assert "alpha 0.2" in dualrs("show", "a.ledger", "--alpha", "0.2")[1]


def test_only_the_router_votes_and_only_at_sigma_e(dualrs, folder):
    dualrs("assign", "-o", "a.ledger", *WORDS)
    with Ledger.open(folder / "a.ledger") as ledger:
        votes = list(ledger.database.rows("SELECT DISTINCT stage, part, sigma, start, stop FROM votes"))
        header = ledger.header
    assert votes == [("router", "estimation", 0.5, 0, 60)]
    assert (header.rule, header.scheme.classes, set(header.models)) == ("assigned", 0, {"router"})


def test_votes_are_those_that_a_router_gives_in_predict(dualrs, folder):
    """The same noise under the same seed: sigma_c of training is sigma_c of inference."""
    dualrs("assign", "-o", "a.ledger", *WORDS)
    code, out, err = dualrs("predict", *WORDS, "--classifier", "net.py:classifier")
    assert code == 0, err
    sigmas = [line.split("│")[3].strip() for line in out.splitlines() if line.startswith("│")]
    assert [float(s) for s in sigmas] == assigned(folder / "a.ledger").sigma_c.tolist()


def test_labels_are_not_needed(dualrs, folder):
    dualrs("assign", "-o", "a.ledger", *WORDS)
    code, _, err = dualrs("assign", "-o", "b.ledger", *ROUTER, "--data", "net.py:unlabelled", *WORDS[-4:])
    assert code == 0, err
    assert np.array_equal(assigned(folder / "a.ledger").sigma_c, assigned(folder / "b.ledger").sigma_c)


def test_run_in_pieces_ends_as_an_unbroken_one(dualrs, folder):
    dualrs("assign", "-o", "whole.ledger", *WORDS)
    dualrs("assign", "-o", "pieces.ledger", *WORDS, "--inputs", "3:7")
    assert assigned(folder / "pieces.ledger").index.tolist() == [3, 4, 5, 6]
    dualrs("assign", "-o", "pieces.ledger", *WORDS)
    whole, pieces = assigned(folder / "whole.ledger"), assigned(folder / "pieces.ledger")
    assert np.array_equal(whole.sigma_c, pieces.sigma_c)
    assert np.array_equal(whole.decided, pieces.decided)


def test_shards_are_merged_and_verified(dualrs, folder):
    dualrs("assign", "-o", "whole.ledger", *WORDS)
    dualrs("assign", "-o", "a.ledger", *WORDS, "--inputs", "0:5")
    dualrs("assign", "-o", "b.ledger", *WORDS, "--inputs", "5:12")
    code, out, _ = dualrs("merge", "both.ledger", "a.ledger", "b.ledger")
    assert code == 0
    assert "both.ledger: assigned sigmas of 12 inputs" in out
    assert np.array_equal(assigned(folder / "whole.ledger").sigma_c, assigned(folder / "both.ledger").sigma_c)
    code, out, _ = dualrs("verify", "both.ledger")
    assert code == 0
    assert "both.ledger: assigned sigmas of 12 inputs; nothing was altered" in out


def test_assigned_sigmas_are_exported(dualrs, folder):
    parquet = pytest.importorskip("pyarrow.parquet")
    dualrs("assign", "-o", "a.ledger", *WORDS)
    assert dualrs("export", "a.ledger", "a.parquet")[1] == "wrote 12 rows to a.parquet\n"
    known, table = assigned(folder / "a.ledger"), parquet.read_table(folder / "a.parquet").to_pydict()
    assert list(table) == ["id", "index", "sigma_c", "decided"]
    assert table["id"] == list(known.ids)
    assert table["sigma_c"] == known.sigma_c.tolist()
    assert table["decided"] == known.decided.astype(int).tolist()


def test_altered_votes_are_found(dualrs, folder):
    dualrs("assign", "-o", "a.ledger", *WORDS)
    tamper(
        folder / "a.ledger", "UPDATE votes SET counts = (SELECT counts FROM votes WHERE input = '11') WHERE input = '1'"
    )
    code, out, _ = dualrs("verify", "a.ledger")
    assert code == 1
    assert "seal does not match" in out
    code, _, err = dualrs("show", "a.ledger")
    assert code == 2
    assert "a.ledger: input 1, estimation votes 0 to 60 of router" in err


def test_unfinished_inputs_are_counted(dualrs, folder):
    dualrs("assign", "-o", "a.ledger", *WORDS)
    tamper(folder / "a.ledger", "DELETE FROM votes WHERE input IN ('3', '8')")
    _, out, _ = dualrs("show", "a.ledger")
    assert "2 inputs are not finished; run the same command again to resume" in out
    assert "10 inputs, and " in out


def test_few_votes_assign_without_deciding(dualrs):
    code, out, err = dualrs("assign", "-o", "a.ledger", *WORDS, "--n", "3")
    assert code == 0, err
    assert "12 inputs, and 12 of them undecided" in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        pytest.param(("--alpha", "0"), "alpha must lie strictly between 0 and 1", id="alpha zero"),
        pytest.param(("--sigmas", "0.5"), "at least two candidate sigmas", id="one candidate"),
        pytest.param(("--sigmas", "0.5,0.5"), "must be different", id="equal candidates"),
        pytest.param(("--sigmas", "0.1,0.2,0.5"), "the router has 2 answers", id="router with too few answers"),
        pytest.param(("--sigmas", "0.25,1.0"), "lies below the largest candidate", id="sigma_e below a candidate"),
        pytest.param(("--router", "net.py:training"), "the router is in training mode", id="in training mode"),
        pytest.param(("--router", "net.py:nan"), "NaN or infinite logits", id="NaN"),
        pytest.param(("--inputs", "5:5"), "none of the 12 inputs", id="no inputs"),
    ],
)
def test_assign_refuses(dualrs, folder, words, sentence):
    code, _, err = dualrs("assign", "-o", "a.ledger", *WORDS, *words)
    assert code == 2
    assert sentence in err
    assert not (folder / "a.ledger").exists()


def test_a_router_must_be_named(dualrs):
    code, _, err = dualrs("assign", "-o", "a.ledger", *WORDS[2:])
    assert code == 2
    assert "--router" in err


NETWORKS = ("--router", "net.py:router", "--classifier", "net.py:classifier")
CERTIFY = (*NETWORKS, *WORDS[2:], "--alpha", "0.05")
LABEL = ("--classifier", "net.py:classifier", "--sigmas", "0.25,0.5", "--data", "net.py:data", "--n", "60")


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        pytest.param(
            ("show", "a.ledger", "--rule", "fusion"), "no certificates; leave out --rule", id="show by a rule"
        ),
        pytest.param(
            ("show", "a.ledger", "--radii", "0,1", "--picture", "a.png"), "leave out --radii and --picture", id="radii"
        ),
        pytest.param(
            ("export", "a.ledger", "a.csv", "--rule", "fusion"), "holds assigned sigmas, and no cert", id="by a rule"
        ),
        pytest.param(
            ("certify", "-o", "a.ledger", *CERTIFY), "rule is assigned on record but fusion", id="certify onto it"
        ),
        pytest.param(("label", "-o", "a.ledger", *LABEL), "rule is assigned on record but labels", id="label onto it"),
        pytest.param(
            ("label", "-o", "b.ledger", *LABEL, "--reuse", "a.ledger"),
            "holds assigned sigmas, which labels cannot be made from",
            id="reuse",
        ),
        pytest.param(
            ("train", "router", "r.safetensors", "--labels", "a.ledger", "--data", "net.py:data"),
            "holds assigned sigmas, not labels; run `dualrs label`",
            id="learn from it",
        ),
        pytest.param(
            ("assign", "-o", "a.ledger", *WORDS, "--seed", "1"), "seed is 0 on record but 1", id="another seed"
        ),
        pytest.param(
            ("assign", "-o", "a.ledger", "--router", "net.py:other", *WORDS[2:]), "model 'router'", id="another router"
        ),
    ],
)
def test_what_cannot_be_done_with_the_ledger_is_said_and_leaves_it_alone(dualrs, folder, command, sentence):
    (folder / "net.py").write_text((folder / "net.py").read_text() + "\nother = Half([0.3, 0.8]).eval()\n")
    dualrs("assign", "-o", "a.ledger", *WORDS)
    before = (folder / "a.ledger").read_bytes()
    code, out, err = dualrs(*command)
    assert code == 2
    assert sentence in err
    assert "Traceback" not in out + err
    assert (folder / "a.ledger").read_bytes() == before
    assert not (folder / "b.ledger").exists()
