"""certify --all-votes and compare, used as a user would."""

import csv

import pytest


def test_every_method_side_by_side(dualrs, ledger):
    code, out, _ = dualrs("compare", ledger)
    assert code == 0
    for name in ("sigma-0.1", "sigma-0.2", "multiscale", "multiscale-authors", "paper", "nosplit", "fusion", "oracle"):
        assert f"│ {name} " in out
    assert "│ envelope " in out
    assert "certified accuracy (%) at L2 radius, 12 inputs" in out
    assert "ACR, the average certified radius, is dominated by easy inputs" in out
    assert "none at level 0.001" in out
    assert "minus" not in out


def test_differences_against_a_baseline(dualrs, ledger):
    code, out, _ = dualrs("compare", ledger, "--baseline", "paper", "--methods", "paper,fusion", "--radii", "0,0.1")
    assert code == 0
    assert "minus paper" in out
    assert "95% intervals of a paired bootstrap over inputs (10,000 resamples)" in out
    assert "nosplit" not in out


def test_nothing_is_cut_off_on_a_narrow_terminal(dualrs, ledger, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    code, out, _ = dualrs("compare", ledger, "--baseline", "paper")
    assert code == 0
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 60


def test_an_experiment_with_experts_needs_all_votes_too(dualrs, folder):
    words = ("--router", "net.py:router", "--expert", "0.1=net.py:classifier", "--expert", "0.2=net.py:classifier")
    more = ("--sigmas", "0.1,0.2", "--sigma-e", "0.2", "--data", "net.py:data", "--n", "200", "--n0", "20")
    assert dualrs("certify", *words, *more, "--all-votes", "-o", "experts.ledger")[0] == 0
    assert "sigma-0.1" in dualrs("compare", "experts.ledger")[1]


@pytest.mark.parametrize(
    ("name", "option", "start"),
    [
        ("t.md", (), "Certified accuracy (%)"),
        ("t.csv", (), "method,title,guarantee"),
        ("t.tex", (), "% Certified accuracy (%)"),
        ("t.txt", (), "certified accuracy (%)"),
        ("t.txt", ("--format", "csv"), "method,title,guarantee"),
    ],
)
def test_output_file_is_in_the_format_of_its_name_or_as_asked(dualrs, ledger, folder, name, option, start):
    code, out, _ = dualrs("compare", ledger, "-o", name, *option)
    assert code == 0
    assert out == f"wrote {name}\n"
    assert (folder / name).read_text().startswith(start)


def test_csv_on_the_terminal_is_only_csv(dualrs, ledger):
    code, out, _ = dualrs("compare", ledger, "--format", "csv", "--radii", "0")
    assert code == 0
    table = list(csv.DictReader(out.splitlines()))
    assert {line["inputs"] for line in table} == {"12"}


def test_a_table_of_another_project_beside_the_ledger(dualrs, ledger):
    assert dualrs("export", ledger, "theirs.tsv")[0] == 0
    code, out, _ = dualrs("compare", ledger, "theirs.tsv", "--methods", "fusion", "--baseline", "theirs")
    assert code == 0
    assert "as reported" in out
    assert "+0.0 [+0.0, +0.0]" in out


def refused(answer):
    code, _, err = answer
    assert code == 2
    assert "Traceback" not in err
    return err.splitlines()[-1].removeprefix("error: ")


def test_without_all_votes_the_error_says_what_to_run(dualrs, two_stages):
    assert dualrs("certify", *two_stages, "--rule", "paper", "-o", "part.ledger")[0] == 0
    code, out, _ = dualrs("compare", "part.ledger")
    assert code == 0
    assert "sigma-" not in out
    err = refused(dualrs("compare", "part.ledger", "--methods", "multiscale"))
    assert "part.ledger lacks votes for method multiscale" in err
    assert "Run `dualrs certify --all-votes`" in err


def test_a_run_does_not_go_on_with_other_votes(dualrs, two_stages, ledger):
    err = refused(dualrs("certify", *two_stages, "-o", ledger))
    assert "votes is all on record but needed was given" in err


def test_misuse_is_a_sentence(dualrs, ledger, two_stages, folder):
    assert "there is no file absent.ledger" in refused(dualrs("compare", "absent.ledger"))
    assert "no method 'best' to compare with" in refused(dualrs("compare", ledger, "--baseline", "best"))
    assert "there is no method 'best'" in refused(dualrs("compare", ledger, "--methods", "best"))
    assert "--format is one of table, markdown, csv, latex" in refused(dualrs("compare", ledger, "--format", "html"))
    assert "--radii takes numbers" in refused(dualrs("compare", ledger, "--radii", "a"))
    assert dualrs("certify", *two_stages, "--inputs", "0:5", "-o", "five.ledger")[0] == 0
    assert "five.ledger is about other inputs" in refused(dualrs("compare", ledger, "five.ledger"))
    (folder / "cut.ledger").write_bytes(ledger.read_bytes()[:300])
    assert "cut.ledger is cut short" in refused(dualrs("compare", "cut.ledger"))


def test_a_narrow_terminal_has_one_table_without_some_columns(dualrs, ledger, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = dualrs("compare", ledger)
    assert code == 0, err
    assert max(map(len, out.splitlines())) <= 80
    assert out.count("┏") == 1
    assert "left out, as the terminal is narrow:" in out
    code, out, _ = dualrs("compare", ledger, "-o", "table.txt")
    with open("table.txt") as file:
        assert "left out" not in file.read()


def test_the_best_at_a_radius_is_marked_among_certificates(dualrs, ledger, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    _, out, _ = dualrs("compare", ledger)
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in out.splitlines() if line.startswith("│")]
    first = {row[0]: row[1] for row in rows}
    sound = {name: cell for name, cell in first.items() if name not in ("oracle", "envelope", "multiscale-authors")}
    best = max(float(cell.removeprefix("*")) for cell in sound.values())
    assert {name for name, cell in first.items() if cell.startswith("*")} == {
        name for name, cell in sound.items() if float(cell.removeprefix("*")) == best > 0
    }
    assert "* the best at a radius, among methods with a guarantee" in out
