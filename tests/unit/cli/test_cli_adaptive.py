"""`dualrs certify --adaptive`, used as a user would: fewer votes, its targets, and what it refuses."""

import json
import sqlite3

import pytest


def votes(path):
    with sqlite3.connect(path) as file:
        return file.execute("SELECT sum(stop - start) FROM votes").fetchone()[0]


def header(path):
    with sqlite3.connect(path) as file:
        return json.loads(file.execute("SELECT fields FROM header").fetchone()[0])


@pytest.fixture
def words(two_stages):
    """A command with enough votes for several looks."""
    given = list(two_stages)
    given[given.index("--n") + 1] = "1000"
    return given


def test_fewer_votes_and_a_sound_ledger(dualrs, words, folder):
    code, _, err = dualrs("certify", *words, "-o", "fixed.ledger")
    assert code == 0, err
    code, out, err = dualrs("certify", *words, "--adaptive", "-o", "adaptive.ledger")
    assert code == 0, err
    assert "rule fusion · alpha 0.001 · adaptive, at most n 1,000 · n0 20 · seed 0" in out
    assert votes(folder / "adaptive.ledger") < votes(folder / "fixed.ledger")
    code, out, _ = dualrs("verify", "adaptive.ledger")
    assert code == 0
    assert "12 certificates follow from their votes" in out


def test_target_is_the_radii_of_the_tables_unless_given(dualrs, words, folder):
    assert dualrs("certify", *words, "--adaptive", "-o", "run.ledger")[0] == 0
    fields = header(folder / "run.ledger")
    assert fields["looks"] == [100, 200, 300, 400, 500, 600, 800, 1000]
    assert fields["target"] == "radii 0.0,0.25,0.5,0.75,1.0,1.25,1.5,1.75,2.0,2.25,2.5"


@pytest.mark.parametrize(
    ("option", "value", "target"),
    [
        pytest.param("--radii", "0.1,0.05", "radii 0.05,0.1", id="radii"),
        pytest.param("--tolerance", "0.01", "tolerance 0.01", id="a tolerance"),
    ],
)
def test_target_can_be_given(dualrs, words, folder, option, value, target):
    assert dualrs("certify", *words, "--adaptive", option, value, "-o", "run.ledger")[0] == 0
    assert header(folder / "run.ledger")["target"] == target
    assert dualrs("verify", "run.ledger")[0] == 0


def test_the_same_command_goes_on_and_another_target_does_not(dualrs, words, folder):
    command = ("certify", *words, "--adaptive", "--radii", "0.05,0.1", "-o", "run.ledger")
    assert dualrs(*command, "--inputs", ":4")[0] == 0
    assert dualrs(*command)[0] == 0
    before = (folder / "run.ledger").read_bytes()
    code, _, err = dualrs("certify", *words, "--adaptive", "--tolerance", "0.1", "-o", "run.ledger")
    assert code == 2
    assert "target is radii 0.05,0.1 on record but tolerance 0.1 was given" in err
    code, _, err = dualrs("certify", *words, "-o", "run.ledger")
    assert code == 2
    assert "belongs to another run" in err
    assert (folder / "run.ledger").read_bytes() == before


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        pytest.param(("--adaptive", "--radii", "0.1", "--tolerance", "0.1"), "not both", id="two targets"),
        pytest.param(("--adaptive", "--all-votes"), "does not ask for all votes", id="all votes"),
        pytest.param(("--radii", "0.1"), 'for budget = "adaptive"', id="radii of a fixed n"),
        pytest.param(("--tolerance", "0.1"), 'for budget = "adaptive"', id="a tolerance of a fixed n"),
        pytest.param(("--adaptive", "--radii", "a,b"), "--radii takes numbers", id="radii that are no numbers"),
        pytest.param(("--adaptive", "--radii", "-0.1"), "none of them negative", id="a negative radius"),
        pytest.param(("--adaptive", "--tolerance", "0"), "certify.tolerance", id="no tolerance"),
        pytest.param(("--adaptive", "--n", "10"), "take n >=", id="n too small for alpha"),
    ],
)
def test_adaptive_refuses(dualrs, words, folder, more, sentence):
    code, out, err = dualrs("certify", *words, *more, "-o", "run.ledger")
    assert code == 2
    assert sentence in err.replace("\n", " ")
    assert "Traceback" not in out + err
    assert not (folder / "run.ledger").exists()


def test_a_recipe_may_ask_for_it(dualrs, folder):
    (folder / "small.toml").write_text(
        'data = "net.py:data"\n[model]\nclassifier = "net.py:classifier"\nsigma = 0.1\n'
        '[certify]\nn = 1000\nbudget = "adaptive"\nradii = [0.05, 0.1]\n'
    )
    code, _, err = dualrs("certify", "small.toml")
    assert code == 0, err
    assert header(folder / "runs" / "small.ledger")["target"] == "radii 0.05,0.1"


def test_another_rule_reads_the_votes_at_the_levels_of_their_looks(dualrs, words):
    """`show` may derive another rule from adaptive votes; it says how they were gathered."""
    assert dualrs("certify", *words, "--adaptive", "-o", "run.ledger")[0] == 0
    code, out, err = dualrs("show", "run.ledger", "--rule", "paper")
    assert code == 0, err
    assert "rule paper" in out
    assert "adaptive" in out
