"""The tables under results/ follow from the votes that lie beside them."""

from pathlib import Path

import pytest

from dualrs.report.recompute import recompute

RESULTS = Path(__file__).parents[2] / "results"
TABLES = sorted(RESULTS.rglob("table.csv"))


@pytest.mark.parametrize("table", TABLES, ids=lambda table: str(table.parent.relative_to(RESULTS)))
def test_every_row_follows_from_the_committed_votes(table: Path) -> None:
    files = sorted(file for kind in ("ledger", "tsv") for file in table.parent.glob(f"*.{kind}"))
    rows, problems = recompute(table, files)
    assert problems == []
    assert rows > 0
