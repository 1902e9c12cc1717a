"""What reports say of a ledger of `certify --adaptive`: its own rule, the votes drawn, and that n is a bound."""

import csv
import json
import re
import sqlite3

import pytest

TWO_STAGES = (
    *("--router", "net.py:router", "--classifier", "net.py:classifier", "--sigmas", "0.1,0.2", "--sigma-e", "0.2"),
    *("--data", "net.py:data", "--n", "800", "--n0", "20", "--adaptive"),
)
AT_MOST = "adaptive, at most n 800 · n0 20"


@pytest.fixture
def ledger(dualrs, folder):
    code, out, err = dualrs("certify", *TWO_STAGES, "-o", "run.ledger")
    assert code == 0, err
    assert AT_MOST in out
    return folder / "run.ledger"


def rows(out):
    return {row["method"]: row for row in csv.DictReader(out.splitlines())}


def refused(answer):
    code, _, err = answer
    assert code == 2
    assert "Traceback" not in err
    return err.splitlines()[-1].removeprefix("error: ")


def test_compare_offers_the_rule_of_the_run_with_the_votes_that_were_drawn(dualrs, ledger):
    code, out, err = dualrs("compare", ledger, "--format", "csv")
    assert code == 0, err
    (row,) = rows(out).values()
    assert row["method"] == "fusion"
    assert row["title"] == "dual, rule fusion, adaptive, at most n 800"
    connection = sqlite3.connect(ledger)
    drawn = [n for (n,) in connection.execute("SELECT sum(stop - start) FROM votes GROUP BY input")]
    connection.close()
    assert float(row["mean votes"]) == sum(drawn) / 12
    assert int(row["worst votes"]) == max(drawn)
    assert min(drawn) < 2 * 820  # some input stopped early
    assert "run: adaptive, at most 800 votes a stage; votes are those that were drawn" in dualrs("compare", ledger)[1]


def test_other_rules_are_there_by_name_with_a_sentence(dualrs, ledger):
    code, out, err = dualrs("compare", ledger, "--methods", "paper,fusion", "--format", "csv")
    assert code == 0, err
    found = rows(out)
    assert "taken for fusion" in found["paper"]["guarantee"]
    assert "lower than votes of its own would give" in found["paper"]["guarantee"]
    assert found["fusion"]["guarantee"] == "wrong with probability at most 0.001 for each input"


@pytest.mark.parametrize("name", ["multiscale", "multiscale-authors", "oracle"])
def test_methods_that_read_counts_at_a_fixed_level_are_refused(dualrs, ledger, name):
    sentence = refused(dualrs("compare", ledger, "--methods", name))
    assert sentence.startswith(f"method {name} cannot use votes of an adaptive run")


def test_radii_are_those_of_the_looks_wherever_they_are_shown(dualrs, ledger):
    """Each command gives the radius on record, and none that the counts would give at a fixed level."""
    connection = sqlite3.connect(ledger)
    recorded = dict(connection.execute("SELECT input, radius FROM certificates"))
    connection.close()
    assert dualrs("export", ledger, "out.csv")[0] == 0
    with open("out.csv") as file:
        assert {row["id"]: float(row["radius"]) for row in csv.DictReader(file)} == recorded
    assert dualrs("report", ledger)[0] == 0
    with open("report.html") as file:
        page = file.read()
    run = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])["runs"][0]
    assert run["adaptive"]
    assert run["votes"]["steps"][-1] == 800
    assert len(run["votes"]["steps"]) > 1  # the script reads bounds at the looks, which tests/browser compares
    assert [method["name"] for method in run["methods"]] == ["fusion"]
    assert AT_MOST in page
    assert "this run is adaptive" in run["notes"][0]


def test_verify_show_why_and_figures(dualrs, ledger):
    assert "nothing was altered" in dualrs("verify", ledger)[1]
    assert AT_MOST in dualrs("show", ledger)[1]
    assert AT_MOST in dualrs("why", ledger, "0")[1]
    for name in ("accuracy", "p-a"):
        assert dualrs("figure", name, ledger, "-o", f"{name}.svg")[0] == 0
    for name, what in (
        ("slack", "the slack of the routing"),
        ("regret", "a comparison of sigmas"),
        ("best-sigma", "a comparison of sigmas"),
    ):
        sentence = refused(dualrs("figure", name, ledger))
        assert "is of an adaptive run" in sentence
        assert f"{what} needs a run with a fixed n" in sentence


def test_one_sigma(dualrs):
    words = ("--classifier", "net.py:classifier", "--sigma", "0.1", "--data", "net.py:data", "--n", "800", "--n0", "20")
    assert dualrs("certify", *words, "--adaptive", "-o", "one.ledger")[0] == 0
    (row,) = rows(dualrs("compare", "one.ledger", "--format", "csv")[1]).values()
    assert row["method"] == "sigma-0.1"
    assert float(row["mean votes"]) < 820
    assert dualrs("report", "one.ledger")[0] == 0
    assert "fixed n" in refused(dualrs("figure", "best-sigma", "one.ledger"))
