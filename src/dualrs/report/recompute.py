"""Recompute: whether the rows of a written comparison follow from the votes in ledgers.

Enters: the CSV that `dualrs compare` wrote, and the files it was made from. Leaves: what differs, row by row.
"""

import csv
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from dualrs.errors import BadTable
from dualrs.report.compare import compare, gather
from dualrs.report.given import Given
from dualrs.report.tables import ACCURACY, as_csv
from dualrs.report.whatif import ROUTER
from dualrs.storage.verify import Report, silent

TOLERANCE = 1e-9  # relative: another release of numpy or scipy may round the last bits differently
_WORDS = ("title", "guarantee")  # may be put otherwise by another release

Line = Mapping[str, str]


def recompute(table: Path, files: Sequence[Path | Given], report: Report = silent) -> tuple[int, list[str]]:
    """Make the rows of a table again from ledgers; their number, and a sentence for each cell that differs.

    Tables of other projects that stand in it have to be among the files.
    """
    written = _read(table)
    head = next(iter(written.values()))
    radii = [float(column.removeprefix(ACCURACY)) for column in head if column.startswith(ACCURACY)]
    baseline = next((line["baseline"] for line in written.values() if line["baseline"]), None)
    # Envelopes and routers come with the sigmas that they are made of, and tables of other projects with their files.
    derived = [name for name, line in written.items() if line["mean votes"]]
    found = gather(files, derived or None, report).methods
    named = (name.rpartition("/")[2] for name in written)
    routers = [float(name.removeprefix(ROUTER)) for name in named if re.fullmatch(f"{ROUTER}[0-9.e-]+", name)]
    again = _lines(as_csv(compare(found, radii, baseline, routers)))
    problems = []
    for name, line in written.items():
        if name not in again:
            problems.append(f"row {name}: it does not come from these files")
            continue
        for column, value in line.items():
            if column not in _WORDS and not _same(value, again[name][column]):
                problems.append(
                    f"row {name}: {column} is written as {value or 'nothing'}, but is {again[name][column]}"
                )
    return len(written), problems


def _read(table: Path) -> dict[str, Line]:
    try:
        lines = _lines(table.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as bad:
        raise BadTable(f"{table} cannot be read as text: {bad}") from bad
    needed = {"method", "inputs", "baseline", "mean votes"}
    if not lines or not needed <= next(iter(lines.values())).keys():
        raise BadTable(f"{table} is no comparison in CSV; write one with `dualrs compare LEDGER... -o TABLE.csv`")
    return lines


def _lines(text: str) -> dict[str, Line]:
    """The rows of a comparison by method; a cell that is missing is empty."""
    rows = csv.DictReader(text.splitlines(), restval="")
    return {row.get("method", ""): row for row in rows}


def _same(ours: str, theirs: str) -> bool:
    try:
        return math.isclose(float(ours), float(theirs), rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    except ValueError:
        return ours == theirs
