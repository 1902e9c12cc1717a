"""What documents show follows from the votes that are committed; other tests draw a part of these again."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from made import DOCUMENTS, ROOT, blocks

from dualrs.config import BUNDLED
from dualrs.report.accuracy import certified
from dualrs.report.compare import RADII, compare, gather
from dualrs.report.diagnostics import Ecdf, fixed_radii, slack
from dualrs.report.methods import methods
from dualrs.storage import Ledger, derive

# Benchmarks take minutes: `python made.py docs/performance.md` makes theirs again.
COMMANDS = [
    block for document in DOCUMENTS for block in blocks(document) if not block.python and "benchmarks" not in block.code
]


@pytest.mark.parametrize("block", COMMANDS, ids=str)
def test_command_makes_what_is_shown(block, tmp_path):
    assert block.same(block.make(tmp_path)), "run: python made.py"


def test_a_number_that_is_not_made_is_noticed(tmp_path):
    table = next(block for block in COMMANDS if block.picture is None)
    picture = next(block for block in COMMANDS if block.picture is not None)
    for block in (table, picture):
        wrong = re.sub(r"(\d)\.(\d)", r"\2.\1", block.shown, count=1)
        assert wrong != block.shown
        assert not replace(block, shown=wrong).same(block.make(tmp_path))


def test_the_recipe_expects_what_the_quickstart_certifies():
    """Its networks are the bundled ones, so the quickstart's votes are its own: rule fusion on the same 100 inputs."""
    text = (BUNDLED / "cifar10-cpu.toml").read_text(encoding="utf-8")
    radii, expected = re.search(r"^#   radius +(.*)\n# +(.*)$", text, re.MULTILINE).groups()
    at = [float(radius) for radius in radii.split()]
    (row,) = compare(gather([ROOT / "docs" / "quickstart.ledger"], ["fusion"]).methods, at).rows
    assert [round(100 * share) for share in row.accuracy] == [int(percent) for percent in expected.split()]


# Tables of results that no one command prints

RESULTS = ROOT / "results"
ROUTERS = (
    *("hard-labels", "no-consistency", "lambda-10", "weak-gate", "off-the-shelf", "data-10-percent", "votes-8"),
    *("small-router", "sigmas-0.25-0.5", "sigmas-0.25-1", "sigmas-0.5-1"),
)


def shown(folder, heading):
    """The numbers in the table below a heading of a folder's page, row by row."""
    section = (RESULTS / folder / "README.md").read_text(encoding="utf-8").partition(f"{heading}\n")[2]
    rows = re.search(r"\n\n((?:\|.*\n)+)", section)[1].splitlines()[2:]
    cells = ([cell.strip() for cell in row.split("|")[2:-1]] for row in rows)
    return [[float(cell) for cell in row if cell] for row in cells]


def accuracy(derived, radii):
    """Certified accuracy in % as tables show it."""
    return [round(100 * share, 1) for share in certified(derived.results, radii).mean(axis=1)]


def test_routers_have_what_the_table_of_ablations_shows():
    rows = shown("ablations", "# What a router learns")
    assert len(rows) == len(ROUTERS)
    for row, name in zip(rows, ROUTERS, strict=True):
        with Ledger.open(RESULTS / "ablations" / f"{name}.ledger") as ledger:
            made = accuracy(methods(ledger, ["paper"])["paper"], RADII[:9])
            best = Ecdf.of(fixed_radii(ledger).regret).up_to(0.0)
            held = Ecdf.of(slack(derive(ledger, "paper")[1])).below(0.0)
        assert row == [*made, *(round(100 * share, 1) for share in (best, held))][: len(row)], name


def test_ledgers_name_no_place_of_a_machine():
    for ledger in (ROOT / "docs").glob("*.ledger"):
        assert not re.search(rb"/(?:tmp|home|root|work|Users)/", Path(ledger).read_bytes())
