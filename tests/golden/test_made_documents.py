"""What documents show follows from the votes that are committed; other tests draw a part of these again."""

import re
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from made import DOCUMENTS, ROOT, blocks

from dualrs.config import BUNDLED
from dualrs.report.compare import compare, gather
from dualrs.report.diagnostics import fixed_radii
from dualrs.storage import Ledger, verify

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


# Ledgers that have most votes in common, and so are kept in one archive


def test_every_ledger_of_the_ablations_follows_from_its_votes(tmp_path):
    with tarfile.open(ROOT / "results" / "ablations" / "ledgers.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    ledgers = sorted((tmp_path / "ledgers").glob("*.ledger"))
    recipes = {path.stem for path in (ROOT / "results" / "ablations").glob("*.toml")}
    assert {path.stem for path in ledgers} == recipes
    fixed = set()
    for path in ledgers:
        with Ledger.open(path) as ledger:
            assert verify(ledger) == []
            assert len(ledger.concluded()) == 500
            if ledger.header.scheme.sigmas == (0.25, 0.5, 1.0):
                fixed.add(fixed_radii(ledger).radii.tobytes())
    assert len(fixed) == 1  # the classifier's votes are the same


def test_ledgers_name_no_place_of_a_machine():
    for ledger in (ROOT / "docs").glob("*.ledger"):
        assert not re.search(rb"/(?:tmp|home|root|work|Users)/", Path(ledger).read_bytes())
