"""verify --table: every row of a written comparison is made again from the votes."""

import csv

import pytest


def test_a_table_follows_from_its_ledger(dualrs, ledger):
    for more in ((), ("--baseline", "paper"), ("--methods", "fusion,sigma-0.1", "--radii", "0,0.1")):
        assert dualrs("compare", ledger, *more, "-o", "table.csv")[0] == 0
        code, out, _ = dualrs("verify", ledger, "--table", "table.csv")
        assert code == 0
        assert "12 certificates follow from their votes; nothing was altered" in out
        assert "rows follow from the votes" in out
    assert "table.csv: 2 rows follow from the votes" in out


def test_several_ledgers_and_a_table_of_another_project(dualrs, ledger, two_stages):
    assert dualrs("certify", *two_stages, "--seed", "1", "--all-votes", "-o", "again.ledger")[0] == 0
    assert dualrs("export", ledger, "theirs.tsv", "--rule", "paper")[0] == 0
    files = (ledger, "again.ledger", "theirs.tsv")
    assert dualrs("compare", *files, "--baseline", "theirs", "-o", "table.csv")[0] == 0
    code, out, _ = dualrs("verify", *files, "--table", "table.csv")
    assert code == 0
    assert out.count("nothing was altered") == 2
    assert "table.csv: 21 rows follow from the votes" in out  # nine methods and the envelope of each, and theirs


def test_an_altered_cell_is_named_with_both_values(dualrs, ledger, folder):
    assert dualrs("compare", ledger, "--radii", "0,0.05", "-o", "table.csv")[0] == 0
    with (folder / "table.csv").open() as file:
        table = list(csv.DictReader(file))
    row = next(row for row in table if row["method"] == "fusion")
    right, row["accuracy at 0.05"] = row["accuracy at 0.05"], "0.99"
    with (folder / "table.csv").open("w") as file:
        writer = csv.DictWriter(file, table[0])
        writer.writeheader()
        writer.writerows(table)
    code, out, _ = dualrs("verify", ledger, "--table", "table.csv")
    assert code == 1
    assert f"row fusion: accuracy at 0.05 is written as 0.99, but is {right}" in out
    assert "table.csv: 1 problems" in out


def test_a_row_that_no_ledger_has(dualrs, ledger, folder):
    assert dualrs("compare", ledger, "-o", "table.csv")[0] == 0
    text = (folder / "table.csv").read_text()
    (folder / "table.csv").write_text(text.replace("\nenvelope,", "\nmine/envelope,"))
    code, out, _ = dualrs("verify", ledger, "--table", "table.csv")
    assert code == 1
    assert "row mine/envelope: it does not come from these files" in out
    (folder / "table.csv").write_text(text.replace("\nfusion,", "\nbest,"))
    code, _, err = dualrs("verify", ledger, "--table", "table.csv")
    assert code == 2
    assert "there is no method 'best'" in err


@pytest.mark.parametrize("content", ["", "idx\tlabel\n", "method,title\nfusion,x\n"])
def test_another_file_is_no_table(dualrs, ledger, folder, content):
    (folder / "table.csv").write_text(content)
    code, _, err = dualrs("verify", ledger, "--table", "table.csv")
    assert code == 2
    assert "table.csv is no comparison in CSV; write one with `dualrs compare LEDGER... -o TABLE.csv`" in err


def test_several_ledgers_without_a_table(dualrs, ledger, two_stages, folder):
    assert dualrs("certify", *two_stages, "--seed", "1", "-o", "again.ledger")[0] == 0
    assert dualrs("verify", ledger, "again.ledger")[1].count("nothing was altered") == 2
    (folder / "foreign.tsv").write_text("x")
    code, _, err = dualrs("verify", ledger, "foreign.tsv")
    assert code == 2
    assert "foreign.tsv" in err
