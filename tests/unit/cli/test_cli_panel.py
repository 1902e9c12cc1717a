"""Several models in one pass from the command line."""

from dualrs.storage import Ledger

RECIPE = """
data = "net.py:data"
[model]
router = "net.py:router"
classifier = "net.py:{classifier}"
sigmas = [0.25, 0.5]
sigma_e = 0.5
[certify]
n = {n}
n0 = 10
alpha = 0.05
rule = "paper"
seed = 0
"""


def write(folder, name, classifier="classifier", n=60):
    (folder / f"{name}.toml").write_text(RECIPE.format(classifier=classifier, n=n))
    return f"{name}.toml"


def test_each_ledger_is_what_certify_writes(dualrs, folder):
    a, b = write(folder, "a"), write(folder, "b", n=60)
    code, out, err = dualrs("panel", a, b, "-o", "runs", "--inputs", "0:4")
    assert code == 0, err
    assert "sampled 4 inputs for a, b;" in out
    assert "dualrs compare runs/a.ledger runs/b.ledger" in out
    dualrs("certify", a, "-o", "alone.ledger", "--inputs", "0:4", "--all-votes")
    with Ledger.open(folder / "alone.ledger") as alone:
        votes = list(alone.database.rows("SELECT * FROM votes"))
        for name in "ab":
            with Ledger.open(folder / "runs" / f"{name}.ledger") as ledger:
                assert list(ledger.database.rows("SELECT * FROM votes")) == votes
                assert ledger.header.votes == "all"


def test_votes_are_taken_over(dualrs, folder):
    write(folder, "a")
    write(folder, "b")
    dualrs("certify", "a.toml", "-o", "old.ledger", "--all-votes")
    code, _, err = dualrs("panel", "a.toml", "b.toml", "-o", "runs", "--reuse", "old.ledger")
    assert code == 0, err
    with Ledger.open(folder / "runs" / "b.ledger") as ledger:
        assert len(ledger.concluded()) == 12


def test_misuse_is_one_sentence(dualrs, folder):
    a, b = write(folder, "a"), write(folder, "b", n=70)
    code, _, err = dualrs("panel", a, a, "-o", "runs")
    assert code == 2
    assert "two of the models have the same name" in err
    code, _, err = dualrs("panel", a, b, "-o", "runs")
    assert code == 2
    assert "n is 60 in a.toml, 70 in b.toml" in err
    assert "Traceback" not in err
    assert not (folder / "runs").exists()
