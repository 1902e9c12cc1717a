"""certify --neighbours and --ascent, and memory, used as a user would."""

import csv
import re

import pytest

CLASSIFIER = ("--classifier", "net.py:classifier")
NEAR = (*CLASSIFIER, "--sigma", "0.2", "--neighbours", "known.py:known")
KNOWN = """
import torch

known = torch.linspace(0, 255, 24).byte()[:, None, None, None].expand(24, 1, 4, 4)
"""
DATA = ("--data", "net.py:data", "--n", "200", "--n0", "20", "--seed", "0")
ASCENT = """
data = "net.py:data"
[model]
classifier = "net.py:classifier"
sigma = 0.2
ascent = true
steps = 4
draws = 10
[certify]
n = 200
n0 = 20
seed = 0
"""
NEIGHBOURS = """
data = "net.py:data"
[model]
classifier = "net.py:classifier"
sigma = 0.2
neighbours = "known.py:known"
k = 3
rate = 0.5
centre = 0.5
[certify]
n = 200
n0 = 20
seed = 0
"""


@pytest.fixture(autouse=True)
def known(folder):
    (folder / "known.py").write_text(KNOWN)


def done(answer):
    code, out, err = answer
    assert code == 0, err
    return re.sub(r"\s+", " ", out)


def refused(answer):
    code, _, err = answer
    assert code == 2
    assert "Traceback" not in err
    return err.splitlines()[-1].removeprefix("error: ")


@pytest.fixture
def near(dualrs, folder):
    (folder / "near.toml").write_text(NEIGHBOURS)
    done(dualrs("certify", "near.toml", "-o", "near.ledger"))
    return "near.ledger"


@pytest.fixture
def ascent(dualrs, folder):
    (folder / "ascent.toml").write_text(ASCENT)
    said = done(dualrs("certify", "ascent.toml", "-o", "ascent.ledger"))
    assert "guarantee: none at level 0.001" in said
    return "ascent.ledger"


def test_every_input_has_a_sigma_and_every_command_takes_the_ledger(dualrs, near, folder):
    assert "rule sukenik" in done(dualrs("show", near))
    assert "certificates follow from their votes" in done(dualrs("verify", near))
    assert "came out the same" in done(dualrs("verify", near, "--redraw", "5", "--recipe", "near.toml"))
    assert "Sukenik et al." in done(dualrs("compare", near))
    said = done(dualrs("why", near, "3", "-o", "why.png", "--recipe", "near.toml"))
    assert "under its sigma" in said
    done(dualrs("report", near, "-o", "page.html"))
    assert (
        "The formula of rule sukenik is not among those that this page works out" in (folder / "page.html").read_text()
    )
    done(dualrs("figure", "accuracy", near))
    for name, complaint in {
        "best-sigma": "a sigma of its own",
        "regret": "a sigma of its own",
        "slack": "use sukenik",
    }.items():
        code, _, err = dualrs("figure", name, near)
        assert code == 2
        assert complaint in err.replace("\n", " ")
    assert "certificates under rule sukenik" in done(dualrs("status", near))


def test_neighbours_may_be_named_by_hand_and_asked_for_predictions(dualrs):
    assert "rule sukenik" in done(dualrs("certify", *NEAR, *DATA, "-o", "hand.ledger", "--inputs", "0:2"))
    assert "sigma" in done(dualrs("predict", *NEAR, "--data", "net.py:data", "--n", "100", "--inputs", "0:2"))


def test_certificates_are_attacked(dualrs, near):
    said = done(dualrs("attack", near, "--recipe", "near.toml", "--inputs", "2:3"))
    assert "flip" in said or "broken" in said or "attack" in said


def test_no_guarantee_is_said_wherever_there_is_none(dualrs, ascent):
    every = (("show",), ("compare",), ("why", "5"), ("status",), ("export", "rows.csv"))
    for words in ((name, ascent, *rest) for name, *rest in every):
        assert "guarantee" in done(dualrs(*words)), words
    assert "came out the same" in done(dualrs("verify", ascent, "--redraw", "3", "--recipe", "ascent.toml"))


def test_memory_of_classes_says_what_it_claims_and_writes_a_table(dualrs, ascent, folder):
    said = done(dualrs("memory", ascent, "--data", "net.py:data", "-o", "remembered.tsv"))
    assert "because the memory says so" in said
    assert "nothing is claimed of inputs that came before" in said
    assert re.search(r"in the opposite order, \d+ of 12 inputs get another class", said)
    assert "remembered" in done(dualrs("compare", ascent, "remembered.tsv"))


def test_memory_of_sigmas_takes_votes_at_several(dualrs, ascent):
    several = ("--classifier", "net.py:classifier", "--sigmas", "0.1,0.3", "--all-votes", *DATA, "-o", "several.ledger")
    done(dualrs("certify", *several))
    said = done(dualrs("memory", "several.ledger", "--by", "sigma", "--data", "net.py:data"))
    assert "wrong with probability at most 0.001" in said
    told = refused(dualrs("memory", ascent, "--by", "sigma", "--data", "net.py:data"))
    assert "one sigma for each input" in told


def test_memory_needs_the_images_of_the_run(dualrs, ascent):
    assert "No images" in refused(dualrs("memory", ascent))
    assert "is not the data of the run" in refused(dualrs("memory", ascent, "--data", "net.py:unlabelled"))


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--neighbours", "known.py:known", "--ascent", "--sigma", "0.2"), "neighbours or ascent"),
        (("--neighbours", "known.py:known", "--sigmas", "0.1,0.2"), "one sigma about which they lie"),
        (("--sigma", "0.2", "--neighbours", "known.py:known", "--rule", "as-if-constant"), "use sukenik"),
        (("--sigma", "0.2", "--ascent", "--rule", "sukenik"), "use as-if-constant"),
        (("--sigma", "0.2", "--neighbours", "known.py:known", "--adaptive"), "no adaptive form"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(dualrs, words, complaint):
    assert complaint in refused(dualrs("certify", *CLASSIFIER, *words, *DATA, "-o", "no.ledger"))


def test_a_longer_run_goes_on_from_a_shorter_one(dualrs, near, folder):
    four = ("certify", "near.toml", "--inputs", "0:4")
    done(dualrs(*four, "--n", "1000", "-o", "short.ledger"))
    done(dualrs(*four, "--n", "2000", "--reuse", "short.ledger", "-o", "long.ledger"))
    done(dualrs(*four, "--n", "2000", "-o", "alone.ledger"))
    tables = []
    for name in ("long", "alone"):
        done(dualrs("export", f"{name}.ledger", f"{name}.csv"))
        rows = csv.DictReader((folder / f"{name}.csv").read_text().splitlines())
        tables.append([(row["id"], row["prediction"], row["radius"], row["sigma_c"]) for row in rows])
    assert tables[0] == tables[1]
