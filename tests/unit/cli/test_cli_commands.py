"""The commands, used as a user would."""

import re
import sqlite3

import pytest


@pytest.fixture
def ledger(dualrs, two_stages, folder):
    code, _, err = dualrs("certify", *two_stages, "-o", "run.ledger")
    assert code == 0, err
    return folder / "run.ledger"


def test_the_table_of_all_radii_fits_80_columns(dualrs, two_stages, monkeypatch):
    assert dualrs("certify", *two_stages, "-o", "run.ledger")[0] == 0
    monkeypatch.setenv("COLUMNS", "80")
    radii = ",".join(f"{0.01 * k:g}" for k in range(10))
    for more in ((), ("--radii", radii), ("--radii", f"{radii},{radii},{radii}")):
        code, out, _ = dualrs("show", "run.ledger", *more)
        assert code == 0
        assert "…" not in out
        assert max(map(len, out.splitlines())) <= 80
    assert out.count("┏") == 3  # of thirty radii, in pieces


def test_certify_shows_what_it_found(dualrs, two_stages):
    code, out, _ = dualrs("certify", *two_stages, "-o", "run.ledger")
    assert code == 0
    assert "certified accuracy (%) at L2 radius" in out
    assert "rule fusion · alpha 0.001 · n 200 · n0 20 · seed 0" in out
    assert re.search(r"inputs\s+12", out)


def test_one_stage_uses_rule_cohen(dualrs):
    words = ("--classifier", "net.py:classifier", "--sigma", "0.1", "--data", "net.py:data", "--n", "200")
    code, out, _ = dualrs("certify", *words, "-o", "one.ledger")
    assert code == 0
    assert "rule cohen" in out


def test_experts_are_given_one_by_one(dualrs):
    words = ("--router", "net.py:router", "--expert", "0.1=net.py:classifier", "--expert", "0.2=net.py:classifier")
    more = ("--sigmas", "0.1,0.2", "--sigma-e", "0.2", "--data", "net.py:data", "--n", "200", "--rule", "paper-1:4")
    code, out, _ = dualrs("certify", *words, *more, "-o", "experts.ledger")
    assert code == 0
    assert "rule paper-1:4" in out


def test_certify_again_changes_nothing(dualrs, two_stages, ledger):
    before = rows(ledger)
    code, out, _ = dualrs("certify", *two_stages, "-o", ledger)
    assert code == 0
    assert rows(ledger) == before
    assert re.search(r"inputs\s+12", out)


def test_recipe_names_the_ledger_and_options_win_over_it(dualrs, folder):
    (folder / "small.toml").write_text(
        'data = "net.py:data"\n[model]\nclassifier = "net.py:classifier"\nsigma = 0.1\n[certify]\nn = 100\n'
    )
    code, out, _ = dualrs("certify", "small.toml", "--n", "150")
    assert code == 0
    assert "n 150" in out
    assert (folder / "runs" / "small.ledger").exists()


def test_a_recipe_is_read_from_its_own_folder(dualrs, folder):
    (folder / "deep").mkdir()
    (folder / "deep" / "r.toml").write_text(
        'data = "../net.py:data"\n[model]\nclassifier = "../net.py:classifier"\nsigma = 0.1\n[certify]\nn = 100\n'
    )
    assert dualrs("certify", "deep/r.toml")[0] == 0


def test_show_derives_under_another_rule_and_alpha(dualrs, ledger):
    code, out, _ = dualrs("show", ledger, "--rule", "paper", "--alpha", "0.05", "--radii", "0,0.1")
    assert code == 0
    assert "rule paper · alpha 0.05" in out
    assert "limited by" in out
    assert "sigma" in out


def test_show_says_when_inputs_are_unfinished(dualrs, ledger):
    with sqlite3.connect(ledger) as file:
        file.execute("DELETE FROM certificates WHERE input = '3'")
    assert "1 inputs are not finished" in dualrs("show", ledger)[1]


def test_show_without_labels_has_no_accuracy(dualrs):
    words = ("--classifier", "net.py:classifier", "--sigma", "0.1", "--data", "net.py:unlabelled", "--n", "100")
    code, out, _ = dualrs("certify", *words, "-o", "u.ledger")
    assert code == 0
    assert "no certified accuracy: inputs have no labels" in out


def test_verify_is_content_with_a_sound_ledger(dualrs, ledger):
    code, out, _ = dualrs("verify", ledger)
    assert code == 0
    assert "12 certificates follow from their votes" in out


@pytest.mark.parametrize(
    ("sabotage", "complaint"),
    [
        ("UPDATE certificates SET radius = radius + 1e-6 WHERE input = '0'", "input 0"),
        ("UPDATE inputs SET label = 1 - label WHERE id = '0'", "input 0"),
        ("UPDATE header SET fields = replace(fields, '\"n0\":20', '\"n0\":21')", "header"),
        ("DELETE FROM votes WHERE input = '5' AND part = 'estimation' AND stage = 'router'", "input 5"),
    ],
    ids=["a changed radius", "a changed label", "a changed header", "missing votes"],
)
def test_verify_finds(dualrs, ledger, sabotage, complaint):
    with sqlite3.connect(ledger) as file:
        file.execute(sabotage)
    code, out, _ = dualrs("verify", ledger)
    assert code == 1
    assert complaint in out


def test_more_votes_later_go_on_in_a_new_ledger_which_says_so(dualrs, folder):
    words = ("--classifier", "net.py:classifier", "--sigma", "0.2", "--data", "net.py:data", "--inputs", "0:3")
    assert dualrs("certify", *words, "--n", "1000", "-o", "few.ledger")[0] == 0
    before = (folder / "few.ledger").read_bytes()
    code, _, err = dualrs("certify", *words, "--n", "2000", "-o", "few.ledger")
    assert code == 2
    assert "more votes go on from these in a new ledger, with --reuse few.ledger" in err
    code, out, err = dualrs("certify", *words, "--n", "2000", "-o", "more.ledger", "--reuse", "few.ledger")
    assert code == 0, err
    said = "the first of these votes were certified before, n 1,000 at alpha 0.001"
    for shown in (out, dualrs("show", "more.ledger")[1], dualrs("compare", "more.ledger")[1]):
        assert said in " ".join(shown.split())
        assert "looks 2 times, at 0.002 together" in " ".join(shown.split())
    assert dualrs("report", "more.ledger")[0] == 0
    assert said in (folder / "report.html").read_text()
    assert said not in dualrs("show", "few.ledger")[1]
    assert (folder / "few.ledger").read_bytes() == before
    assert dualrs("verify", "few.ledger", "more.ledger")[0] == 0


def test_export_and_import_agree(dualrs, ledger, folder):
    assert dualrs("export", ledger, "run.tsv")[0] == 0
    assert (folder / "run.tsv").read_text().startswith("idx\tlabel\tpredict\tradius\tcorrect\ttime\n")
    shown = dualrs("show", ledger)[1]
    code, out, _ = dualrs("import", "run.tsv", "-o", "again.csv")
    assert code == 0
    assert (folder / "again.csv").exists()
    assert re.findall(r"│.*│", out) == re.findall(r"│.*│", shown)  # the same accuracies


def test_import_reports_a_running_total(dualrs, folder):
    lines = ["idx\tlabel\tpredict\tradius\tcorrect\ttime"]
    lines += [f"{i}\t1\t1\t0.123\t{i + 1}\t0:00:01.0" for i in range(5)]
    (folder / "peer.tsv").write_text("\n".join(lines) + "\n")
    code, out, _ = dualrs("import", "peer.tsv")
    assert code == 0
    assert "running total" in out


def test_shards_merge_into_the_whole(dualrs, two_stages, ledger):
    for name, part in (("a.ledger", ":5"), ("b.ledger", "5:")):
        assert dualrs("certify", *two_stages, "-o", name, "--inputs", part)[0] == 0
    assert dualrs("merge", "whole.ledger", "a.ledger", "b.ledger")[0] == 0
    assert rows(ledger.parent / "whole.ledger") == rows(ledger)
    assert dualrs("verify", "whole.ledger")[0] == 0


def test_predict_prints_and_writes(dualrs, two_stages, folder):
    words = two_stages[:-4]
    code, out, _ = dualrs("predict", *words, "--n", "100", "-o", "p.tsv")
    assert code == 0
    assert "12 inputs" in out
    lines = (folder / "p.tsv").read_text().splitlines()
    assert lines[0] == "id\tlabel\tpredict\tsigma_c\toutcome"
    assert len(lines) == 13


def test_version(dualrs):
    from dualrs import __version__

    assert dualrs("--version")[1] == f"dualrs {__version__}\n"


@pytest.mark.parametrize("command", ["certify", "predict", "show", "verify", "export", "import", "merge"])
def test_help_teaches(dualrs, command):
    code, out, _ = dualrs(command, "--help")
    assert code == 0
    assert "Usage" in out


def rows(path):
    """Everything in a ledger but times."""
    with sqlite3.connect(path) as file:
        votes = file.execute("SELECT * FROM votes ORDER BY input, stage, part, sigma, start").fetchall()
        certificates = file.execute(
            "SELECT input, prediction, radius, sigma_c, r_sigma, r_c, limited_by, outcome FROM certificates ORDER BY 1"
        ).fetchall()
    return votes, certificates
