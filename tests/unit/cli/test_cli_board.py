"""The command board, used as a user would."""

import sqlite3

from dualrs.report.board import TEMPLATE

CARD = 'title = "Ours"\nrecipe = "run.toml"\n'
RECIPE = """
data = "net.py:data"
[model]
router = "net.py:router"
classifier = "net.py:classifier"
sigmas = [0.1, 0.2]
sigma_e = 0.2
"""


def test_a_board_of_a_ledger_and_a_table(dualrs, ledger, folder):
    assert dualrs("export", ledger, "theirs.tsv")[0] == 0
    code, out, err = dualrs("board", ledger, "other=theirs.tsv", "-o", "new/board.html")
    assert (code, out) == (0, "wrote new/board.html, 2 rows\n"), err
    page = (folder / "new" / "board.html").read_text()
    assert ">verified<" in page
    assert "<summary>other</summary>" in page


def test_votes_are_drawn_again_with_the_recipe_of_the_card(dualrs, ledger, folder):
    (folder / ledger).with_suffix(".card.toml").write_text(CARD)
    (folder / "run.toml").write_text(RECIPE)
    code, _, err = dualrs("board", ledger, "--redraw", "4")
    assert code == 0, err
    assert "verified; 4 of " in (folder / "board.html").read_text()


def test_votes_of_other_networks_are_refused(dualrs, ledger, folder):
    (folder / ledger).with_suffix(".card.toml").write_text(CARD)
    (folder / "other.py").write_text("from net import Half\n\nclassifier = Half([0.1, 0.4, 0.9]).eval()\n")
    (folder / "run.toml").write_text(RECIPE.replace("net.py:classifier", "other.py:classifier"))
    code, _, err = dualrs("board", ledger, "--redraw", "4")
    assert code == 2
    assert "its votes are not those of the networks that its card names" in err
    assert not (folder / "board.html").exists()


def test_a_ledger_that_was_altered_fails(dualrs, ledger, folder):
    with sqlite3.connect(folder / ledger) as database:
        database.execute("UPDATE certificates SET radius = radius + 1")
    code, out, _ = dualrs("board", ledger)
    assert code == 1
    assert "does not verify" in out


def test_template_prints_a_card(dualrs):
    assert dualrs("board", "--template") == (0, TEMPLATE, "")


def test_a_board_of_nothing_says_what_to_give(dualrs):
    code, _, err = dualrs("board")
    assert code == 2
    assert "say which runs the board is of" in err
