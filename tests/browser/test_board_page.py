"""A board in a real browser: sorting by pointer and by keys, narrow too."""

import pytest
from report_cases import a_header, made

from dualrs.report.board import of_ledger, write_board

NAMES = "[...document.querySelectorAll('.board tbody summary')].map((s) => s.textContent)"
SORTED = "document.querySelector('.board [aria-sort]')"


@pytest.fixture
def board(chromium, tmp_path):
    entries = [
        of_ledger(made(tmp_path / f"{name}.ledger", a_header(seed=seed), count=count), name)
        for name, seed, count in (("b", 1, 30), ("a", 2, 12), ("c", 3, 20))
    ]
    page = tmp_path / "board.html"
    page.write_text(write_board(entries, title="Board", command="dualrs board", version="0"), encoding="utf-8")
    chromium.errors.clear()
    chromium.resize(1280)
    chromium.open(page)
    yield chromium, {entry.name: entry for entry in entries}
    assert chromium.errors == []


def test_it_opens_sorted_by_one_radius(board):
    browser, entries = board
    names = browser.evaluate(NAMES)
    assert names == sorted(names, key=lambda name: -entries[name].accuracy[2])
    assert browser.evaluate(f"{SORTED}.textContent") == "0.5"


def test_a_column_sorts_and_sorts_back(board):
    browser, _ = board
    head = ".board thead th:nth-last-child(3) button"
    assert browser.evaluate(f"document.querySelector('{head}').textContent") == "inputs"
    browser.click(head)
    assert browser.evaluate(NAMES) == ["b", "c", "a"]
    assert browser.evaluate(f"{SORTED}.getAttribute('aria-sort')") == "descending"
    browser.click(head)
    assert browser.evaluate(NAMES) == ["a", "c", "b"]
    assert browser.evaluate("document.querySelector('#sorted').textContent") == "Sorted by inputs, ascending."


def test_keys_sort_by_name(board):
    browser, _ = board
    browser.evaluate("document.querySelector('.board thead button').focus()")
    browser.press("Enter")
    assert browser.evaluate(NAMES) == ["a", "b", "c"]


@pytest.mark.parametrize("width", [400, 1600])
def test_nothing_is_wider_than_the_window(board, width):
    browser, _ = board
    browser.resize(width)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
