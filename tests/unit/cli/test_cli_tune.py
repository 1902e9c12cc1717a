"""tune, used as a user would: calibrate, write, certify other inputs, and be told where the inputs are the same."""

import re
import tomllib

import pytest

NETWORKS = '''
class Gained(Half):
    """The same answers, more or less sure."""

    def forward(self, x):
        return 8 * super().forward(x)


gained = Gained([0.1, 0.5, 0.9]).eval()


def many():
    grey = torch.linspace(0, 255, 30).byte()
    return grey[:, None, None, None].expand(30, 1, 4, 4), (grey.float() / 255 * 3).long().clamp(max=2)


def many_unlabelled():
    return many()[0]
'''
RECIPE = """# What: a cascade, to be tuned
data = "net.py:many"

[model]
classifier = "net.py:gained"  # sure of itself
sigmas = [0.1, 0.2]
confidences = [0.5]

[certify]
n = 200  # few
n0 = 20
"""
CASCADE = ("--classifier", "net.py:gained", "--sigmas", "0.1,0.2", "--data", "net.py:many", "--n", "200", "--n0", "20")


@pytest.fixture(autouse=True)
def problem(folder):
    with (folder / "net.py").open("a") as file:
        file.write(NETWORKS)
    (folder / "cascade.toml").write_text(RECIPE)


@pytest.fixture
def calibration(dualrs):
    """Votes on 20 of the 30 inputs."""
    words = ("--confidences", "0.4,0.6", "--inputs", "0:20", "--seed", "0")
    code, _, err = dualrs("certify", *CASCADE, *words, "--all-votes", "-o", "calibration.ledger")
    assert code == 0, err
    return "calibration.ledger"


def flat(out):
    """What is printed, with its lines joined."""
    return " ".join(out.split())


def test_the_choice_is_shown_with_what_it_is_worth(dualrs, calibration):
    code, out, _ = dualrs("tune", calibration, "--radii", "0,0.1,0.2")
    assert code == 0
    assert "on the inputs it was chosen on; 9 forms tried, all of them" in out
    for row in ("plain", "1 stage may pass", "2 stages may pass", "chosen", "cross-validated"):
        assert f"│ {row} " in out
    assert re.search(r"[+-]\d+\.\d\d \[[+-]\d+\.\d\d, [+-]\d+\.\d\d\]", out)
    assert "votes pass at sigma 0.2, the rest as chosen" in out
    assert re.search(r"^ +0\.6 +\d+\.\d\d", out, re.MULTILINE)
    assert "tuned on these 20 inputs, by their votes: no estimate of accuracy on others" in flat(out)
    assert "points better than that" in flat(out)
    assert "wrote" not in out
    assert dualrs("tune", calibration, "--radii", "0,0.1,0.2")[1] == out


def test_what_is_chosen_can_be_derived_from_the_ledger(dualrs, calibration):
    _, out, _ = dualrs("tune", calibration, "--radii", "0,0.1", "--weights", "1,3", "--thresholds", "0.6")
    chosen = re.search(r"^chosen: (.*)$", out, re.MULTILINE)[1]
    assert dualrs("show", calibration, "--rule", chosen)[0] == 0
    assert "36 forms tried" in out
    assert "weighted mean of certified accuracy over 2 radii" in flat(out)


def written(folder, name="cascade.toml"):
    text = (folder / name).read_text()
    return text, tomllib.loads(text)


def test_a_recipe_takes_the_rule_and_the_record(dualrs, calibration, folder, monkeypatch):
    _forced(monkeypatch, (0.6,))
    code, out, err = dualrs("tune", calibration, "--radii", "0,0.1", "--write", "cascade.toml")
    assert code == 0, err
    assert "wrote rule cascade-0.6 to cascade.toml" in out
    text, content = written(folder)
    head = RECIPE.replace("confidences = [0.5]", "confidences = [0.5, 0.6]")
    assert text.startswith(head.replace("[certify]\n", '[certify]\nrule = "cascade-0.6"\n'))
    tuned = content["tuned"]
    assert [tuned[key] for key in ("rule", "seed", "n", "n0", "radii")] == ["cascade-0.6", "0", 200, 20, [0.0, 0.1]]
    assert "weights" not in tuned
    assert len("".join(tuned["inputs"])) == 20 * 8
    assert dualrs("tune", calibration, "--radii", "0,0.1", "--write", "cascade.toml")[0] == 0
    assert written(folder)[0] == text
    assert dualrs("recipe", "check", "cascade.toml")[0] == 0


def _forced(monkeypatch, confidences):
    """Have the search choose a form, whatever its votes say."""
    from dualrs.report.tune import _Search
    from dualrs.schemes.form import Form

    monkeypatch.setattr(_Search, "best", lambda self, rows: Form(confidences))


def test_confidences_that_a_cascade_records_anyway_are_not_written(dualrs, calibration, folder, monkeypatch):
    _forced(monkeypatch, (0.6,))
    (folder / "cascade.toml").write_text(RECIPE.replace("confidences = [0.5]\n", ""))
    assert dualrs("tune", calibration, "--write", "cascade.toml")[0] == 0
    assert "confidences" not in written(folder)[1]["model"]


def test_a_bundle_takes_it_and_certifies_by_it(dualrs, calibration, folder, monkeypatch):
    _forced(monkeypatch, (0.6,))
    (folder / "bundle").mkdir()
    (folder / "bundle" / "bundle.toml").write_text(RECIPE.replace("net.py", "../net.py"))
    code, out, err = dualrs("tune", calibration, "--write", "bundle")
    assert code == 0, err
    assert "wrote rule cascade-0.6 to bundle/bundle.toml" in out
    code, out, err = dualrs("certify", "--model", "bundle", "--inputs", "20:30", "-o", "new.ledger")
    assert code == 0, err
    assert "rule cascade-0.6" in out
    assert "tuned on" not in out


@pytest.fixture
def tuned(dualrs, calibration, monkeypatch):
    """The recipe with a rule that was tuned on the first 20 of 30 inputs, under seed 0."""
    with monkeypatch.context() as patch:
        _forced(patch, (0.6,))
        assert dualrs("tune", calibration, "--write", "cascade.toml")[0] == 0
    return "cascade.toml"


NOTE = "tuned on 5 of these 15 inputs: no estimate of accuracy on others"


def test_results_on_the_inputs_of_the_tuning_say_so(dualrs, tuned, folder):
    code, out, err = dualrs("certify", tuned, "--inputs", "15:30", "--all-votes", "-o", "run.ledger")
    assert code == 0, err
    assert NOTE in flat(out)
    _, out, _ = dualrs("show", "run.ledger")
    assert NOTE in flat(out)
    assert "5 of these inputs, by votes under other noise" in flat(out)
    assert "tuned on" not in dualrs("show", "run.ledger", "--rule", "cascade")[1]
    _, out, _ = dualrs("compare", "run.ledger")
    assert f"cascade-0.6: {NOTE}" in flat(out)
    assert flat(out).count("its numbers were chosen on 5 of these inputs") == 1
    assert dualrs("report", "run.ledger", "-o", "page.html")[0] == 0
    page = (folder / "page.html").read_text()
    assert f"votes pass below 0.6: {NOTE}" in page
    assert "its numbers were chosen on 5 of these inputs" in page
    assert dualrs("verify", "run.ledger")[0] == 0


def test_the_very_votes_of_the_tuning_have_no_guarantee(dualrs, tuned, folder):
    assert dualrs("certify", tuned, "--inputs", "15:30", "--all-votes", "--seed", "0", "-o", "run.ledger")[0] == 0
    for command in ("show", "compare"):
        out = flat(dualrs(command, "run.ledger")[1])
        assert NOTE in out
        assert "but its numbers were chosen by these votes on 5 of the inputs, which it does not cover" in out
    assert "the rule of the run is cascade-0.6, chosen by some of its votes" in out
    assert dualrs("report", "run.ledger", "-o", "page.html")[0] == 0
    assert re.search(r'<tr class=bare><th scope="row">[^<]*votes pass below 0\.6', (folder / "page.html").read_text())


def test_a_panel_keeps_the_record_too(dualrs, tuned):
    assert dualrs("panel", tuned, "--inputs", "15:30", "-o", "ledgers")[0] == 0
    assert NOTE in flat(dualrs("show", "ledgers/cascade.ledger")[1])


def test_on_other_inputs_nothing_is_said(dualrs, tuned):
    code, out, _ = dualrs("certify", tuned, "--inputs", "20:30", "-o", "run.ledger")
    assert code == 0
    assert "rule cascade-0.6" in out
    assert "tuned" not in out
    assert "tuned" not in dualrs("compare", "run.ledger")[1]


def refused(answer):
    code, _, err = answer
    assert code == 2
    assert "Traceback" not in err
    return flat(err).removeprefix("error: ")


def test_ledgers_and_options_that_do_not_serve(dualrs, calibration, two_stages):
    assert "2 weights for 3 radii" in refused(dualrs("tune", calibration, "--radii", "0,1,2", "--weights", "1,2"))
    assert "--weights takes numbers" in refused(dualrs("tune", calibration, "--weights", "a"))
    assert "at least 1/2" in refused(dualrs("tune", calibration, "--thresholds", "0.3"))
    assert dualrs("certify", *two_stages, "--all-votes", "-o", "dual.ledger")[0] == 0
    assert "sample again with --confidences" in refused(dualrs("tune", "dual.ledger"))
    single = ("--classifier", "net.py:gained", "--sigma", "0.1", "--data", "net.py:many", "--n", "200", "--n0", "20")
    assert dualrs("certify", *single, "-o", "one.ledger")[0] == 0
    assert "a cascade is tuned on votes at several sigmas" in refused(dualrs("tune", "one.ledger"))
    assert dualrs("certify", *CASCADE, "--adaptive", "-o", "adaptive.ledger")[0] == 0
    assert "is an adaptive run" in refused(dualrs("tune", "adaptive.ledger"))
    assert dualrs("certify", *CASCADE, "--inputs", "0:10", "--all-votes", "-o", "few.ledger")[0] == 0
    assert "has 10 finished inputs" in refused(dualrs("tune", "few.ledger"))
    assert dualrs("certify", *CASCADE, "-o", "part.ledger")[0] == 0
    assert "sample with --all-votes" in refused(dualrs("tune", "part.ledger"))
    words = (*CASCADE, "--data", "net.py:many_unlabelled", "--all-votes", "-o", "unlabelled.ledger")
    assert dualrs("certify", *words)[0] == 0
    assert "have no label" in refused(dualrs("tune", "unlabelled.ledger"))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[model]\n", '[model]\nrouter = "net.py:router"\nsigma_e = 0.2\n', "has a router, and rule cascade goes"),
        ("sigmas = [0.1, 0.2]", "sigmas = [0.1, 0.3]", "the sigmas of cascade.toml are [0.1, 0.3]"),
        ('[certify]\nn = 200  # few\nn0 = 20', "[certify]\nm = 2", "certify.m: unknown key"),
    ],
)  # fmt: skip
def test_recipes_that_cannot_take_it_are_left_alone(dualrs, calibration, folder, old, new, said):
    text = RECIPE.replace(old, new)
    assert text != RECIPE
    (folder / "cascade.toml").write_text(text)
    assert said in refused(dualrs("tune", calibration, "--write", "cascade.toml"))
    assert (folder / "cascade.toml").read_text() == text


def test_a_recipe_laid_out_otherwise_is_left_alone(dualrs, calibration, folder):
    text = "certify = { n = 200, n0 = 20 }\n" + RECIPE.partition("[certify]")[0]
    (folder / "cascade.toml").write_text(text)
    err = refused(dualrs("tune", calibration, "--write", "cascade.toml"))
    assert "cannot be changed and otherwise kept: give [certify] lines of its own" in err
    assert (folder / "cascade.toml").read_text() == text
    assert "is not a bundle" in refused(dualrs("tune", calibration, "--write", "."))
