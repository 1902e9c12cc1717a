"""A board: rows derived from ledgers, tables as reported, cards beside them."""

import sqlite3

import numpy as np
import pytest
from report_cases import ASCENT, a_header, made

from dualrs.errors import BadTable
from dualrs.report.accuracy import certified_accuracy
from dualrs.report.board import TEMPLATE, EntryCard, of_ledger, of_table, read_card, write_board
from dualrs.storage import Ledger, derive, write


def board(*entries):
    return write_board(entries, title="Board", command="dualrs board", version="0")


def test_a_row_is_the_rule_of_its_run(tmp_path):
    path = made(tmp_path / "a.ledger", a_header(rule="paper"))
    entry = of_ledger(path, "a")
    with Ledger.open(path) as ledger:
        expected = certified_accuracy(derive(ledger)[0])
    np.testing.assert_array_equal(entry.accuracy, expected)
    assert (entry.evidence, entry.inputs, entry.votes, entry.seconds) == ("verified", 12, 2 * 550, 1.5)
    assert entry.about["n"] == "500"
    assert entry.about["sigmas"] == "0.25, 0.5, 1"


def test_a_ledger_that_was_altered_has_a_row_without_numbers(tmp_path):
    path = made(tmp_path / "a.ledger")
    with sqlite3.connect(path) as database:
        database.execute("UPDATE certificates SET radius = radius + 1")
    entry = of_ledger(path, "a")
    assert entry.problems
    assert entry.accuracy is None
    page = board(entry, of_ledger(made(tmp_path / "b.ledger"), "b"))
    assert ">does not verify<" in page
    assert page.index(">b<") < page.index(">a<")  # what has no numbers comes last


def test_a_table_stands_as_reported_and_is_never_marked_best(tmp_path):
    ledger = made(tmp_path / "a.ledger")
    with Ledger.open(ledger) as opened:
        write(derive(opened)[0], tmp_path / "theirs.tsv")
    (tmp_path / "theirs.card.toml").write_text('data = "toy </script> set"\n')
    ours, theirs = of_ledger(ledger, "a"), of_table(tmp_path / "theirs.tsv", "theirs")
    np.testing.assert_array_equal(ours.accuracy, theirs.accuracy)
    assert theirs.evidence == "as reported"
    page = board(ours, theirs)
    assert page.count("<table") == 1  # the same data
    rows = page.split("<tr")
    assert 'class="best"' in next(row for row in rows if ">a<" in row)
    assert 'class="best"' not in next(row for row in rows if ">theirs<" in row)


def test_what_has_no_guarantee_says_so_and_is_never_marked_best(tmp_path):
    path = made(tmp_path / "a.ledger", a_header(**ASCENT))
    page = board(of_ledger(path, "a"))
    assert ">verified; no guarantee<" in page
    assert '<td class="best"' not in page


def test_other_data_stand_in_a_table_of_their_own(tmp_path):
    entries = [of_ledger(made(tmp_path / f"{d}.ledger", a_header(dataset=d)), d) for d in ("one", "two")]
    assert board(*entries).count("<table") == 2


def test_what_cards_say_is_shown_as_text(tmp_path):
    path = made(tmp_path / "a.ledger")
    (tmp_path / "a.card.toml").write_text('title = "<b>Bold</b>"\npaper = "https://example.org/a?b&c"\n')
    page = board(of_ledger(path, "a", "3 of 9 units redrawn"))
    assert "&lt;b&gt;Bold&lt;/b&gt;" in page
    assert 'href="https://example.org/a?b&amp;c"' in page
    assert "verified; 3 of 9 units redrawn" in page
    assert "</script> set" not in page


def test_the_template_is_a_card_that_says_nothing(tmp_path):
    (tmp_path / "a.card.toml").write_text(TEMPLATE)
    assert read_card(tmp_path / "a.ledger") == EntryCard() == read_card(tmp_path / "none.ledger")
    assert all(f"{name} = " in TEMPLATE for name in EntryCard.model_fields)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("title = ", "cannot be read"),
        ('titel = "a"', "titel: Extra inputs"),
        ("title = 3", "title: Input should be a valid string"),
        ('paper = "javascript:alert(1)"', "paper: String should match"),
    ],
)
def test_a_card_that_is_none_is_refused(tmp_path, text, said):
    (tmp_path / "a.card.toml").write_text(text)
    with pytest.raises(BadTable, match=said):
        read_card(tmp_path / "a.ledger")
