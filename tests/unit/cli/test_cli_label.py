"""Labels from the command line: votes at every sigma, radii of the true class, and the ledger that keeps them."""

import csv

import numpy as np
import pytest
from scipy.stats import beta, norm

from dualrs.storage import Ledger
from dualrs.training.labels import read_labels

WORDS = (
    "--classifier",
    "net.py:classifier",
    "--sigmas",
    "0.25,0.5",
    "--data",
    "net.py:data",
    "--n",
    "60",
    "--seed",
    "8",
)
LOOSE = ("--alpha", "0.01")


def radii(path, alpha=None):
    with Ledger.open(path) as ledger:
        return read_labels(ledger, alpha)


def test_radii_are_those_of_the_true_class(dualrs, folder):
    code, out, err = dualrs("label", "-o", "a.ledger", *WORDS, *LOOSE)
    assert code == 0, err
    assert "best for" in out
    labels = radii(folder / "a.ledger")
    assert labels.sigmas == (0.25, 0.5)
    assert len(labels.ids) == 12
    with Ledger.open(folder / "a.ledger") as ledger:
        rows = ledger.inputs()
        votes = ledger.votes([r.id for r in rows])
    for k, row in enumerate(rows):
        for j, sigma in enumerate((0.25, 0.5)):
            count = int(votes[j].estimation[k, row.label])
            assert votes[j].estimation[k].sum() == 60
            bound = beta.ppf(0.01, count, 60 - count + 1) if count else 0.0  # Clopper and Pearson, written out
            expected = sigma * norm.ppf(bound) if bound > 0.5 else 0.0
            assert labels.radii[k, j] == pytest.approx(expected, rel=1e-9)


def test_inputs_that_win_at_no_sigma_are_dropped_and_counted(dualrs, folder):
    _, out, _ = dualrs("label", "-o", "a.ledger", *WORDS, *LOOSE)
    labels = radii(folder / "a.ledger")
    dropped = int((labels.radii == 0).all(axis=1).sum())
    assert 0 < dropped < 12  # grey levels between two classes win at neither sigma
    assert f"{12 - dropped} inputs, and {dropped} dropped" in out
    assert len(labels.best) == 12 - dropped
    assert np.array_equal(labels.best, labels.radii[labels.kept].argmax(axis=1))


def test_run_in_pieces_ends_as_an_unbroken_one(dualrs, folder):
    dualrs("label", "-o", "whole.ledger", *WORDS, *LOOSE)
    dualrs("label", "-o", "pieces.ledger", *WORDS, *LOOSE, "--inputs", "3:7")
    assert len(radii(folder / "pieces.ledger").ids) == 4
    code, _, err = dualrs("label", "-o", "pieces.ledger", *WORDS, *LOOSE)
    assert code == 0, err
    assert np.array_equal(radii(folder / "whole.ledger").radii, radii(folder / "pieces.ledger").radii)


def test_an_expert_for_each_sigma_votes_at_its_own_only(dualrs, folder):
    experts = ("--expert", "0.25=net.py:classifier", "--expert", "0.5=net.py:other")
    (folder / "net.py").write_text((folder / "net.py").read_text() + "\nother = Half([0.9, 0.5, 0.1]).eval()\n")
    code, _, err = dualrs("label", "-o", "pool.ledger", *experts, *WORDS[2:], *LOOSE)
    assert code == 0, err
    dualrs("label", "-o", "same.ledger", *WORDS, *LOOSE)
    pool, same = radii(folder / "pool.ledger"), radii(folder / "same.ledger")
    assert np.array_equal(pool.radii[:, 0], same.radii[:, 0])
    assert not np.array_equal(pool.radii[:, 1], same.radii[:, 1])


def test_another_alpha_is_derived_from_the_same_votes(dualrs, folder):
    dualrs("label", "-o", "a.ledger", *WORDS, *LOOSE)
    assert (radii(folder / "a.ledger", alpha=0.1).radii >= radii(folder / "a.ledger").radii).all()
    code, out, _ = dualrs("show", "a.ledger", "--alpha", "0.1")
    assert code == 0
    assert "labels · " in out


def test_ledger_of_labels_is_verified_and_gives_no_certificate(dualrs, folder):
    dualrs("label", "-o", "a.ledger", *WORDS, *LOOSE)
    code, out, _ = dualrs("verify", "a.ledger")
    assert code == 0
    assert "nothing was altered" in out
    code, _, err = dualrs("export", "a.ledger", "a.csv", "--rule", "fusion")
    assert code == 2
    assert "labels, and no certificates; leave out --rule" in err


@pytest.mark.parametrize(("suffix", "delimiter"), [(".csv", ","), (".tsv", "\t")])
def test_labels_are_exported_in_full(dualrs, folder, suffix, delimiter):
    dualrs("label", "-o", "a.ledger", *WORDS, *LOOSE)
    assert dualrs("export", "a.ledger", f"a{suffix}")[0] == 0
    known = radii(folder / "a.ledger")
    with (folder / f"a{suffix}").open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter=delimiter))
    assert list(rows[0]) == ["id", "index", *(f"radius_{sigma:g}" for sigma in known.sigmas), "best_sigma"]
    assert [row["id"] for row in rows] == list(known.ids)
    assert [int(row["index"]) for row in rows] == known.index.tolist()
    assert [[float(row[f"radius_{s:g}"]) for s in known.sigmas] for row in rows] == known.radii.tolist()
    best = [float(row["best_sigma"]) for row, kept in zip(rows, known.kept, strict=True) if kept]
    assert best == [known.sigmas[k] for k in known.best]
    assert all(row["best_sigma"] == "" for row, kept in zip(rows, known.kept, strict=True) if not kept)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        pytest.param(("--alpha", "1e-30"), "gives no radius at alpha = 1e-30", id="too few votes"),
        pytest.param(("--alpha", "0"), "alpha must lie strictly between 0 and 1", id="alpha zero"),
        pytest.param(("--data", "net.py:unlabelled"), "has no labels", id="no labels"),
        pytest.param(("--expert", "0.5=net.py:classifier"), "give either --classifier", id="both"),
        pytest.param(("--sigmas", "0.5,0.5"), "must be different", id="equal sigmas"),
        pytest.param(("--sigmas", "x"), "--sigmas takes numbers", id="sigmas that are no numbers"),
        pytest.param(("--classifier", "net.py:training"), "training mode", id="a network in training mode"),
    ],
)
def test_label_refuses(dualrs, folder, words, sentence):
    code, _, err = dualrs("label", "-o", "a.ledger", *WORDS, *words)
    assert code == 2
    assert sentence in err
    assert not (folder / "a.ledger").exists()


def test_labels_are_not_resumed_with_another_network(dualrs, folder):
    dualrs("label", "-o", "a.ledger", *WORDS, *LOOSE)
    (folder / "other.py").write_text((folder / "net.py").read_text().replace("0.1, 0.5, 0.9", "0.1, 0.4, 0.9"))
    code, _, err = dualrs("label", "-o", "a.ledger", "--classifier", "other.py:classifier", *WORDS[2:], *LOOSE)
    assert code == 2
    assert "belongs to another run" in err
    code, _, err = dualrs("certify", "-o", "a.ledger", "--sigma", "0.25", *WORDS[:2], *WORDS[4:], *LOOSE)
    assert code == 2
    assert "belongs to another run" in err


EXPERTS = ("--expert", "0.25=net.py:classifier", "--expert", "0.5=net.py:other")


def test_an_exchanged_expert_is_all_that_votes_again(dualrs, folder):
    (folder / "net.py").write_text((folder / "net.py").read_text() + "\nother = Half([0.9, 0.5, 0.1]).eval()\n")
    dualrs("label", "-o", "old.ledger", *WORDS, *LOOSE)
    dualrs("label", "-o", "fresh.ledger", *EXPERTS, *WORDS[2:], *LOOSE)
    code, out, err = dualrs("label", "-o", "new.ledger", *EXPERTS, *WORDS[2:], *LOOSE, "--reuse", "old.ledger")
    assert code == 0, err
    assert "took over 720 votes from old.ledger" in out
    assert np.array_equal(radii(folder / "new.ledger").radii, radii(folder / "fresh.ledger").radii)
    code, out, _ = dualrs("label", "-o", "new.ledger", *EXPERTS, *WORDS[2:], *LOOSE, "--reuse", "old.ledger")
    assert code == 0
    assert "took over 0 votes" in out
    assert "new.ledger: labels of 12 inputs; nothing was altered" in dualrs("verify", "new.ledger")[1]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        pytest.param(("--reuse", "absent.ledger"), "there is no ledger", id="no such ledger"),
        pytest.param(("--reuse", "net.py"), "is not a ledger", id="no ledger"),
        pytest.param(("--reuse", "old.ledger", "--seed", "1"), "seed is 8 on record but 1", id="another seed"),
        pytest.param(
            ("--reuse", "old.ledger", "--sigmas", "1.0"), "it has no votes of the class at sigma 1", id="other sigmas"
        ),
    ],
)
def test_reuse_is_refused_in_a_sentence(dualrs, folder, words, sentence):
    dualrs("label", "-o", "old.ledger", *WORDS, *LOOSE)
    code, out, err = dualrs("label", "-o", "new.ledger", *WORDS, *LOOSE, *words)
    assert code == 2
    assert sentence in err
    assert "Traceback" not in out + err
    assert not (folder / "new.ledger").exists()


def test_no_rule_and_no_impossible_alpha_apply_to_labels(dualrs):
    dualrs("label", "-o", "a.ledger", *WORDS, *LOOSE)
    code, _, err = dualrs("show", "a.ledger", "--rule", "cohen")
    assert code == 2
    assert "a.ledger holds labels, and no certificates; leave out --rule" in err
    code, _, err = dualrs("show", "a.ledger", "--alpha", "2")
    assert code == 2
    assert "alpha must lie strictly between 0 and 1" in err
