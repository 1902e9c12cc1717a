"""certify --core and what follows from its ledger, used as a user would."""

import csv
import json
import re

import pytest

NETWORKS = """
from net import Half, data


class Sharp(Half):
    def forward(self, x):
        return 12 * super().forward(x)


classifier = Sharp([0.1, 0.5, 0.9]).eval()
core = Half([0.1, 0.5, 0.9]).eval()
"""

RECIPE = """
data = "net.py:data"
[model]
classifier = "sharp.py:classifier"
core = "sharp.py:core"
sigma = 0.1
thresholds = [0.3, 0.8]
[certify]
n = 200
n0 = 20
"""

ACES = (
    *("--classifier", "sharp.py:classifier", "--core", "sharp.py:core", "--sigma", "0.1", "--thresholds", "0.3,0.8"),
    *("--data", "net.py:data", "--n", "200", "--n0", "20", "--seed", "0"),
)


@pytest.fixture(autouse=True)
def networks(folder):
    (folder / "sharp.py").write_text(NETWORKS)


@pytest.fixture
def ledger(dualrs, folder):
    code, _, err = dualrs("certify", *ACES, "-o", "aces.ledger")
    assert code == 0, err
    return folder / "aces.ledger"


def refused(answer):
    code, _, err = answer
    assert code == 2
    assert "Traceback" not in err
    return err.splitlines()[-1].removeprefix("error: ")


@pytest.fixture
def accuracy(dualrs):
    """Certified accuracy at radius 0 and just beyond it, by method."""

    def read(*words):
        code, out, err = dualrs("compare", *words, "--radii", "0,0.001", "--format", "csv")
        assert code == 0, err
        rows = csv.DictReader(out.splitlines())
        return {row["method"]: (float(row["accuracy at 0"]), float(row["accuracy at 0.001"])) for row in rows}

    return read


def test_certify_says_how_many_the_core_answers(dualrs, folder):
    code, out, err = dualrs("certify", *ACES, "-o", "aces.ledger")
    assert code == 0, err
    assert "rule aces-0.3 · alpha 0.001 · n 200 · n0 20" in out
    assert re.search(r"none +█+ \d+", out)  # the sigma under which the core sees an input
    assert re.search(r"core +█+ \d+", out)
    assert "predicted" not in out  # an answer of the core is no abstention


def test_the_recipe_and_the_options_are_one_run(dualrs, ledger, folder):
    (folder / "aces.toml").write_text(RECIPE)
    code, out, err = dualrs("certify", "aces.toml", "-o", ledger)
    assert code == 0, err
    code, out, err = dualrs("certify", "aces.toml", "--rule", "aces-0.8", "-o", "other.ledger")
    assert code == 0, err
    assert "rule aces-0.8" in out


def test_compare_has_a_row_for_each_threshold(dualrs, ledger, accuracy):
    rows = accuracy(ledger)
    assert set(rows) >= {"aces-0.3", "aces-0.8"}
    at_zero, beyond = rows["aces-0.3"]
    assert at_zero > beyond  # what the core answers counts at radius 0 only
    code, out, err = dualrs("compare", ledger, "--baseline", "aces-0.3")
    assert code == 0, err
    assert "minus aces-0.3" in out
    assert "ACES, entropy up to 0.3 (Horvath et al.). Guarantee: wrong with probability at most 0.001" in out
    assert "the rule of the run is aces-0.3" in out


def test_compare_with_all_votes_has_the_sigma_alone_too(dualrs, accuracy):
    assert dualrs("certify", *ACES, "--all-votes", "-o", "all.ledger")[0] == 0
    assert set(accuracy("all.ledger")) == {"sigma-0.1", "aces-0.3", "aces-0.8"}


def test_aces_stands_beside_the_dual_rules_of_another_ledger(dualrs, ledger, two_stages, accuracy):
    assert dualrs("certify", *two_stages, "--all-votes", "-o", "dual.ledger")[0] == 0
    rows = accuracy("dual.ledger", ledger, "--methods", "dual/fusion,aces/aces-0.8")
    assert set(rows) == {"dual/fusion", "aces/aces-0.8"}
    sentence = refused(dualrs("compare", "dual.ledger", ledger, "--methods", "fusion"))
    assert "method fusion needs votes of a router and experts, and" in sentence
    assert "aces.ledger is of a selector, a classifier and a core network" in sentence
    sentence = refused(dualrs("compare", "dual.ledger", "--methods", "aces-0.5"))
    assert "dual.ledger is of a router and experts; run `dualrs certify --core" in sentence


def test_everything_else_reads_the_ledger(dualrs, ledger, folder, accuracy):
    assert "nothing was altered" in dualrs("verify", ledger)[1]
    assert dualrs("show", ledger, "--rule", "aces-0.8")[0] == 0
    for name in ("accuracy", "p-a"):
        assert dualrs("figure", name, ledger, "-o", f"{name}.svg")[0] == 0
    assert dualrs("export", ledger, "table.tsv")[0] == 0
    with (folder / "table.tsv").open() as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert any(float(row["radius"]) == 0 and int(row["predict"]) >= 0 for row in rows)
    assert "12 of 12 inputs done" in dualrs("status", ledger)[1]
    # A table of another project, for all one can tell: it counts alike.
    rows = accuracy(ledger, "table.tsv", "--methods", "aces-0.3")
    assert rows["table"] == rows["aces-0.3"]
    sentence = refused(dualrs("show", ledger, "--rule", "fusion"))
    assert sentence == (
        "rule fusion needs votes of a router and experts, but these are of a selector, a classifier and a core network"
    )


def test_the_page_shows_who_answers(dualrs, ledger, folder):
    code, _, err = dualrs("report", ledger, "--data", "net.py:data")
    assert code == 0, err
    text = (folder / "report.html").read_text()
    run = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])["runs"][0]
    assert run["route_names"] == ["entropy up to 0.3", "entropy 0.3 to 0.8", "entropy above 0.8"]
    assert run["router_name"] == "selector"
    assert run["rule"] == "aces-0.3"
    assert max(run["votes"]["without_noise"]["class"]["answer"]) >= 0


def test_why_of_an_input_that_the_core_answers_and_of_one_that_it_does_not(dualrs, ledger, folder):
    answers = {place: dualrs("why", ledger, place)[1] for place in map(str, range(12))}
    by_core = next(place for place, out in answers.items() if "without a radius (by the core)" in out)
    certified = next(place for place, out in answers.items() if "within L2 radius" in out)
    sentence = r"The core network answers, .*: \d+ of 200 votes of the selector find an entropy above 0\.3\."
    assert re.search(sentence, " ".join(answers[by_core].split()))
    assert re.search(r"core network, without noise\n +class \d", answers[by_core])
    assert re.search(r"votes of the selector\n +entropy up to 0.3", answers[certified])
    assert "limits it" in answers[certified]
    for place in (by_core, certified):
        code, _, err = dualrs("why", ledger, place, "-o", "why.png", "--data", "net.py:data")
        assert code == 0, err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--rule", "fusion"), "rule 'fusion' does not fit this model with a core network; its rules are aces-0.3"),
        (("--adaptive",), "rule aces-0.3 has no adaptive form"),
        (("--router", "net.py:router"), "beside a core network, give a classifier, one sigma and thresholds"),
        (("--thresholds", "0.8,0.3"), "must be positive and rising"),
        (("--thresholds", "a"), "--thresholds takes numbers separated by commas"),
        (("--core", "net.py:router"), "different numbers of classes"),
    ],
)
def test_misuse_is_a_sentence(dualrs, folder, words, sentence):
    assert sentence in refused(dualrs("certify", *ACES, "-o", "bad.ledger", *words))
    assert not (folder / "bad.ledger").exists()


def test_thresholds_without_a_core_are_refused(dualrs):
    words = ("--classifier", "sharp.py:classifier", "--sigma", "0.1", "--data", "net.py:data", "--thresholds", "0.3")
    assert "go with a core network; name one" in refused(dualrs("certify", *words, "-o", "bad.ledger"))


def test_rules_of_aces_are_refused_elsewhere(dualrs, two_stages):
    sentence = refused(dualrs("certify", *two_stages, "--rule", "aces-0.5", "-o", "bad.ledger"))
    assert sentence == "rule aces-0.5 is for a model with a core network; use paper, nosplit or fusion"
