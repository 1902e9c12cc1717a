"""Bad input: exit code 2, one clear sentence, no traceback, and the ledger as it was."""

import os
import sqlite3
import sys

import pytest

MIXED = """
import numpy as np


class Mixed:
    name, ids, labels, fingerprint = "mixed", ("0", "1"), None, "mixed"

    def image(self, index):
        return np.full((1, 4, 4 + index), 128, dtype=np.uint8)


mixed = Mixed()
"""
ONE_STAGE = ("--classifier", "net.py:classifier", "--sigma", "0.1", "--data", "net.py:data", "--n", "100")


def replaced(words, option, value):
    """The same command with one option changed, added or (None) left out."""
    words = list(words)
    if option in words:
        place = words.index(option)
        del words[place : place + 2]
    return words if value is None else [*words, option, value]


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        pytest.param("--n", "5", "take n >=", id="n too small for alpha"),
        pytest.param("--n", "0", "certify.n", id="no votes at all"),
        pytest.param("--n0", "0", "certify.n0", id="no selection votes"),
        pytest.param("--alpha", "1.5", "certify.alpha", id="alpha above one"),
        pytest.param("--rule", "best", "unknown rule 'best'", id="unknown rule"),
        pytest.param("--rule", "cohen", "rule cohen is for one sigma", id="rule for another kind of model"),
        pytest.param("--sigma-e", "0.15", "lies below the largest candidate sigma", id="sigma_e below a candidate"),
        pytest.param("--sigmas", "0.1", "at least two candidate sigmas", id="one candidate"),
        pytest.param("--sigmas", "0.1,0.1", "must be different", id="equal candidates"),
        pytest.param("--sigmas", "0.1,0.15,0.2", "the router has 2 answers", id="router with too few answers"),
        pytest.param("--sigmas", "a,b", "separated by commas", id="sigmas that are no numbers"),
        pytest.param("--sigmas", "0,0.2", "must be positive", id="no noise"),
        pytest.param("--sigma-e", None, "a router needs sigmas", id="sigma_e missing"),
        pytest.param("--classifier", None, "either a classifier or experts", id="no classifier"),
        pytest.param("--classifier", "net.py:training", "training mode", id="module in training mode"),
        pytest.param("--classifier", "net.py:nan", "NaN or infinite logits", id="NaN logits"),
        pytest.param("--classifier", "net.py:numbers", "must be a torch.nn.Module", id="not a module"),
        pytest.param("--classifier", "net.py:absent", "no attribute 'absent'", id="no such attribute"),
        pytest.param("--classifier", "absent:net", "there is no module absent", id="no such module"),
        pytest.param("--classifier", "absent.py:net", "there is no file", id="no such file"),
        pytest.param("--classifier", "net.py", "not of the form module:attribute", id="no attribute named"),
        pytest.param("--classifier", "net.py:needs_arguments", "needs arguments", id="function with arguments"),
        pytest.param("--data", "net.py:bright", "pixels must lie in [0, 1]", id="pixels out of range"),
        pytest.param("--data", "net.py:numbers", "expected a dualrs dataset", id="not a dataset"),
        pytest.param("--data", None, "data: is missing", id="no data"),
        pytest.param("--inputs", "5:5", "leaves none of the 12 inputs", id="no inputs left"),
        pytest.param("--inputs", "a:b", "START:STOP:STEP", id="inputs that are no range"),
        pytest.param("--expert", "net.py:classifier", "SIGMA=module:attribute", id="expert without sigma"),
        pytest.param("--device", "abacus", "unknown device", id="unknown device"),
        pytest.param("--dtype", "int8", "unknown dtype", id="unknown dtype"),
        pytest.param("--batch-size", "0", "engine.batch_size", id="empty batches"),
        pytest.param("--seed", "-1.5", "", id="seed that is no number"),
    ],
)
def test_certify_refuses(dualrs, two_stages, folder, option, value, sentence):
    code, out, err = dualrs("certify", *replaced(two_stages, option, value), "-o", "run.ledger")
    assert code == 2
    assert sentence in err
    assert "Traceback" not in out + err
    assert not (folder / "run.ledger").exists()


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        pytest.param("--seed", "1", "seed is 0 on record but 1 was given", id="another seed"),
        pytest.param("--n", "300", "n is 200 on record but 300 was given", id="another n"),
        pytest.param("--rule", "paper", "rule is fusion on record but paper was given", id="another rule"),
        pytest.param("--data", "net.py:unlabelled", "dataset", id="other data"),
        pytest.param("--router", "net.py:other", "model 'router'", id="another router"),
    ],
)
def test_a_ledger_of_another_run_is_refused_and_left_alone(dualrs, two_stages, folder, option, value, sentence):
    (folder / "net.py").write_text((folder / "net.py").read_text() + "\nother = Half([0.3, 0.8]).eval()\n")
    assert dualrs("certify", *two_stages, "-o", "run.ledger")[0] == 0
    before = (folder / "run.ledger").read_bytes()
    code, _, err = dualrs("certify", *replaced(two_stages, option, value), "-o", "run.ledger")
    assert code == 2
    assert "belongs to another run" in err
    assert sentence in err
    assert (folder / "run.ledger").read_bytes() == before
    assert os.listdir(folder).count("run.ledger") == 1


@pytest.mark.parametrize("command", ["show", "verify", "export"])
@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        pytest.param(None, "there is no ledger", id="missing"),
        pytest.param(b"idx\tlabel\n", "is not a ledger", id="not SQLite"),
        pytest.param(b"", "is empty", id="empty"),
        pytest.param(b"SQLite format 3\0" + b"\1" * 200, "restore a copy of it", id="damaged"),
    ],
)
def test_what_is_no_ledger_is_refused(dualrs, folder, command, content, sentence):
    if content is not None:
        (folder / "x.ledger").write_bytes(content)
    code, out, err = dualrs(command, "x.ledger", *(["x.tsv"] if command == "export" else []))
    assert code == 2
    assert sentence in err
    assert "Traceback" not in out + err


def test_a_truncated_ledger_is_refused(dualrs, folder):
    assert dualrs("certify", *ONE_STAGE, "-o", "run.ledger")[0] == 0
    whole = (folder / "run.ledger").read_bytes()
    (folder / "run.ledger").write_bytes(whole[: len(whole) // 2])
    code, out, err = dualrs("show", "run.ledger")
    assert code == 2
    assert "restore a copy of it" in err
    assert "Traceback" not in out + err


def test_a_full_disk_keeps_what_was_recorded(dualrs, folder, monkeypatch):
    from dualrs.storage.database import Database

    began = Database.write_ahead

    def small_disk(self):
        began(self)
        pages = self._number("PRAGMA page_count")
        self.execute(f"PRAGMA max_page_count = {pages + 2}")

    monkeypatch.setattr(Database, "write_ahead", small_disk)
    words = replaced(ONE_STAGE, "--n", "20000")
    code, out, err = dualrs("certify", *words, "-o", "run.ledger")
    assert code == 2
    assert "free some disk space" in err
    assert "Traceback" not in out + err
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert recorded(folder / "run.ledger") >= 0
    code, out, err = dualrs("certify", *words, "-o", "run.ledger")
    assert code == 0, err
    assert dualrs("verify", "run.ledger")[0] == 0


def test_show_refuses_a_rule_that_the_votes_cannot_serve(dualrs):
    assert dualrs("certify", *ONE_STAGE, "-o", "run.ledger")[0] == 0
    code, _, err = dualrs("show", "run.ledger", "--rule", "fusion")
    assert code == 2
    assert "needs votes of a router" in err


def test_export_refuses_an_unknown_format(dualrs):
    assert dualrs("certify", *ONE_STAGE, "-o", "run.ledger")[0] == 0
    code, _, err = dualrs("export", "run.ledger", "run.xlsx")
    assert code == 2
    assert ".tsv, .csv, .parquet" in err


def test_a_recipe_with_an_unknown_key_is_refused(dualrs, folder):
    (folder / "r.toml").write_text('data = "net.py:data"\nspeed = "fast"\n[model]\nclassifier = "a:b"\nsigma = 0.1\n')
    code, _, err = dualrs("certify", "r.toml")
    assert code == 2
    assert "speed: unknown key" in err


def test_merging_ledgers_of_two_runs_is_refused_and_leaves_nothing(dualrs, folder):
    assert dualrs("certify", *ONE_STAGE, "-o", "a.ledger", "--inputs", "0:2")[0] == 0
    assert dualrs("certify", *ONE_STAGE, "-o", "b.ledger", "--seed", "1", "--inputs", "2:4")[0] == 0
    code, _, err = dualrs("merge", "c.ledger", "a.ledger", "b.ledger")
    assert code == 2
    assert "seed" in err
    assert not (folder / "c.ledger").exists()
    assert dualrs("merge", "c.ledger", "b.ledger")[0] == 0
    before = rows_of(folder / "c.ledger")
    assert dualrs("merge", "c.ledger", "b.ledger", "a.ledger")[0] == 2
    assert rows_of(folder / "c.ledger") == before


def test_a_failed_first_attempt_does_not_stand_in_the_way(dualrs, folder):
    (folder / "sizes.py").write_text(MIXED)
    words = replaced(ONE_STAGE, "--data", "sizes.py:mixed")
    code, _, err = dualrs("certify", *words, "-o", "run.ledger", "--inputs", "0:2")
    assert code == 2
    assert "all must be alike" in err
    assert not (folder / "run.ledger").exists()
    code, _, err = dualrs("certify", *words, "-o", "run.ledger", "--inputs", "1:2")
    assert code == 0, err


def test_a_secret_seed_is_recorded_and_kept_by_the_run_that_goes_on(dualrs, folder):
    for inputs in ("0:2", "0:4"):
        code, out, err = dualrs("certify", *ONE_STAGE, "-o", "run.ledger", "--inputs", inputs)
        assert code == 0, err
    assert "seed 0x" in out
    seed = out.split("seed ")[1].split()[0]
    assert dualrs("certify", *ONE_STAGE, "-o", "again.ledger", "--inputs", "0:4", "--seed", seed)[0] == 0
    assert rows_of(folder / "again.ledger") == rows_of(folder / "run.ledger")
    assert dualrs("certify", *ONE_STAGE, "-o", "other.ledger", "--inputs", "0:4")[0] == 0
    assert rows_of(folder / "other.ledger") != rows_of(folder / "run.ledger")


def rows_of(path):
    with sqlite3.connect(path) as file:
        return [row[:-1] for row in file.execute("SELECT * FROM votes ORDER BY 1, 2, 3, 4, 5")]


def recorded(path):
    with sqlite3.connect(path) as file:
        return file.execute("SELECT count(*) FROM votes").fetchone()[0]


@pytest.mark.parametrize("command", ["certify", "predict", "evaluate", "train"])
def test_images_that_the_network_does_not_take_are_refused_in_a_sentence(dualrs, folder, command):
    (folder / "colour.py").write_text(
        "import torch\nfrom torch import nn\n\nnetwork = nn.Sequential(nn.Conv2d(3, 3, 4), nn.Flatten()).eval()\n"
    )
    named = {
        "certify": ("--classifier", "colour.py:network", "--sigma", "0.1", "-o", "run.ledger"),
        "predict": ("--classifier", "colour.py:network", "--sigma", "0.1"),
        "evaluate": ("colour.py:network",),
        "train": ("classifier", "out.safetensors", "--from", "colour.py:network", "--test", "net.py:data"),
    }[command]
    more = ("--batch-size", "4") if command == "train" else ()
    code, _, err = dualrs(command, *named, "--data", "net.py:data", *more)
    assert code == 2
    assert "fails on images of 1 x 4 x 4" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("picture", ["curve.png", "curve.xyz"])
def test_a_picture_that_cannot_be_drawn_is_refused_before_the_run(dualrs, folder, two_stages, monkeypatch, picture):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, _, err = dualrs("certify", *two_stages, "-o", "run.ledger", "--picture", picture)
    assert code == 2
    assert ("pip install 'dualrs[figures]'" if picture.endswith("png") else "a picture ends in .png") in err
    assert not (folder / "run.ledger").exists()


def test_another_alpha_or_rule_on_a_ledger_is_pointed_to_show(dualrs, ledger, two_stages):
    for words, shown in ((("--alpha", "0.01"), "--alpha 0.01"), (("--rule", "paper"), "--rule paper")):
        code, _, err = dualrs("certify", *two_stages, "--all-votes", "-o", "run.ledger", *words)
        assert code == 2
        assert f"dualrs show run.ledger {shown}" in err
    _, _, err = dualrs("certify", *two_stages, "--all-votes", "-o", "run.ledger", "--alpha", "0.01", "--n", "300")
    assert "dualrs show" not in err


def test_threads_are_given_on_the_command_line(dualrs, two_stages):
    code, _, err = dualrs("certify", *two_stages, "-o", "run.ledger", "--threads", "1")
    assert code == 0, err
