"""Peers: reads the result tables that other projects write, and our own, and says what is odd about them.

Enters: a TSV or CSV with columns idx, label, predict, radius and, mostly, correct and time, or as `exports` writes it;
or the logs of a selector and of a core network, as ACES writes them. Leaves: results, and notes for the reader. Whether
a prediction is correct is always decided here anew: in many files that column is something else.
"""

import csv
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dualrs.certificates import ABSTAIN
from dualrs.errors import BadTable
from dualrs.storage.peer_notes import note_correct, note_predictions, note_radii, note_rounding
from dualrs.storage.results import UNLABELLED, Results

REQUIRED = ("idx", "label", "predict", "radius")
SELECTOR = ("idx", "predict", "radius")  # what it chooses needs no label
CORE = ("idx", "label", "predict")  # what it answers has no radius
OPTIONAL = ("correct", "time")
_UNDECIDED = -2  # how Multiscale writes that no stage decided: an abstention
_OURS = {"index": "idx", "prediction": "predict", "seconds": "time"}  # what our own .csv calls them
_FURTHER = ("id", "sigma_c", "sigma")
_MEANT = {
    "label": "; the log of a selector is compared with that of its certifier, as SELECTOR,CERTIFIER",
    "radius": "; a log of predictions holds no certificates",
}


@dataclass(frozen=True)
class Imported:
    """Results of another project's file, and what a reader should know about it.

    ``sigma`` is that of all of them, where a column says so.
    """

    results: Results
    notes: tuple[str, ...]
    sigma: float | None = None


class _Line(NamedTuple):
    """A row of the table: where it stood, and its cells by column."""

    number: int
    cells: dict[str, str]
    torn: bool  # the last one, without a line end: the writer may have been killed in the middle of it


class _Row(NamedTuple):
    """What a row says."""

    line: int
    idx: int
    label: int
    predict: int
    radius: float
    radius_text: str
    correct: float
    seconds: float
    id: str
    sigma_c: float
    sigma: float | None

    @property
    def claim(self) -> tuple[int, int, float]:
        return self.label, self.predict, self.radius


def read_table(path: str | PathLike[str], required: tuple[str, ...] = REQUIRED) -> Imported:
    """Read a table of certification results; a BadTable error names the line at fault.

    ``required`` are the columns that it must have: `SELECTOR` or `CORE` for logs that are no results by themselves. An
    input whose label is not asked for is unlabelled, and a class whose radius is not, claimed of the input alone.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as missing:
        raise BadTable(f"there is no file {path}") from missing
    except (OSError, UnicodeDecodeError) as bad:
        raise BadTable(f"{path} cannot be read as text: {bad}") from bad
    notes: list[str] = []
    rows = _unrepeated(path, list(_parsed(path, text, required, notes)), notes)
    if not rows:
        raise BadTable(f"{path} holds no rows")
    predict = np.array([row.predict for row in rows], dtype=np.int64)
    radius = np.array([row.radius for row in rows], dtype=np.float64)
    notes += note_predictions(predict == _UNDECIDED)
    predict = np.maximum(predict, ABSTAIN)
    notes += note_radii(radius, predict != ABSTAIN)
    radius[radius == math.inf] = 0
    plain = (predict != ABSTAIN) & (radius == 0)
    sigma_c = np.array([row.sigma_c for row in rows], dtype=np.float64)
    sigmas = _sigmas(rows, notes)
    if len(sigmas) > 1 and np.isnan(sigma_c).any():
        sigma_c = np.array([row.sigma for row in rows], dtype=np.float64)
    results = Results(
        ids=np.array([row.id for row in rows], dtype=np.str_),
        index=np.array([row.idx for row in rows], dtype=np.int64),
        label=np.array([row.label for row in rows], dtype=np.int64),
        prediction=predict,
        radius=radius,
        seconds=np.array([row.seconds for row in rows], dtype=np.float64),
        sigma_c=None if np.isnan(sigma_c).any() else sigma_c,
        plain=plain if plain.any() else None,
    )
    if plain.any() and "radius" in required:
        notes.append(
            f"{plain.sum()} rows name a class with radius 0: they are claims about the input alone, and count at "
            "radius 0 only"
        )
    if (unlabelled := int((~results.labelled).sum())) and "label" in required:
        notes.append(f"{unlabelled} rows have no label")
    if odd := int((results.abstained & (results.radius > 0)).sum()):
        notes.append(f"{odd} rows abstain but carry a positive radius, which claims nothing")
    notes += note_correct(np.array([row.correct for row in rows]), results.correct)
    notes += note_rounding([row.radius_text for row in rows if math.isfinite(row.radius)])
    return Imported(results, tuple(notes), sigmas[0] if len(sigmas) == 1 else None)


def _lines(path: Path, text: str, required: tuple[str, ...], notes: list[str]) -> Iterator[_Line]:
    """The rows as cells by column name: header lines, blank lines and a torn last line taken out."""
    lines = [(n, line) for n, line in enumerate(text.split("\n"), start=1) if line.strip()]
    if not lines:
        raise BadTable(f"{path} is empty")
    delimiter = "\t" if "\t" in lines[0][1] else ","
    columns = [_OURS.get(name, name) for name in _split(lines[0][1], delimiter)]
    if absent := [name for name in required if name not in columns]:
        raise BadTable(
            f"{path}, line {lines[0][0]}: no column {', '.join(absent)} among {', '.join(columns)}; "
            "the first line must name the columns, separated by tabs or commas" + _MEANT.get(" ".join(absent), "")
        )
    if len(set(columns)) != len(columns):
        raise BadTable(f"{path}, line {lines[0][0]}: a column stands twice among {', '.join(columns)}")
    if extra := [name for name in columns if name not in REQUIRED + OPTIONAL + _FURTHER]:
        notes.append(f"columns that are not used: {', '.join(extra)}")
    if required == REQUIRED:
        notes += [f"there is no column {name}" for name in OPTIONAL if name not in columns]
    headers, last = 1, lines[-1][0]
    for number, line in lines[1:]:
        cells = _split(line, delimiter)
        if [_OURS.get(cell, cell) for cell in cells] == columns:
            headers += 1
        elif len(cells) == len(columns):
            torn = number == last and not text.endswith("\n")
            if torn and columns[-1] in REQUIRED:
                notes.append(f"line {number}, the last, has no line end: its {columns[-1]} may have been cut short")
            yield _Line(number, dict(zip(columns, cells, strict=True)), torn)
        elif number == last and len(cells) < len(columns):
            notes.append(_cut_short(number))
        else:
            raise BadTable(f"{path}, line {number}: {len(cells)} cells where the header names {len(columns)} columns")
    if headers > 1:
        notes.append(f"the header stands {headers} times: several files were put together")


def _parsed(path: Path, text: str, required: tuple[str, ...], notes: list[str]) -> Iterator[_Row]:
    unreadable = dict.fromkeys(OPTIONAL, 0)
    for line in _lines(path, text, required, notes):
        try:
            row = _row(line)
        except ValueError as bad:
            if not line.torn:
                raise BadTable(f"{path}, line {line.number}: {bad}") from bad
            notes.append(_cut_short(line.number))
            continue
        for name, value in (("correct", row.correct), ("time", row.seconds)):
            unreadable[name] += math.isnan(value) and bool(line.cells.get(name))
        yield row
    notes += [f"column {name}: {count} cells cannot be read" for name, count in unreadable.items() if count]


def _row(line: _Line) -> _Row:
    cells = line.cells
    idx, predict = _whole("idx", cells["idx"]), _whole("predict", cells["predict"])
    if predict < _UNDECIDED:
        raise ValueError(f"predict is {predict}, but is a class number, or -1 or -2 for an abstention")
    label = _whole("label", cells["label"]) if cells.get("label") else -1
    radius_text = cells.get("radius", "0")
    radius = _number(radius_text)
    if math.isnan(radius):
        raise ValueError(f"radius is {radius_text!r}, but must be a number")
    return _Row(
        line=line.number,
        idx=idx,
        label=label if label >= 0 else UNLABELLED,
        predict=predict,
        radius=radius,
        radius_text=radius_text,
        correct=_truth(cells.get("correct", "")),
        seconds=_seconds(cells.get("time", "")),
        id=cells.get("id") or str(idx),
        sigma_c=_number(cells.get("sigma_c", "")),
        sigma=sigma if 0 < (sigma := _number(cells.get("sigma", ""))) < math.inf else None,
    )


def _unrepeated(path: Path, rows: list[_Row], notes: list[str]) -> list[_Row]:
    """One row for each idx: a resumed run may write an input again, but it must say the same."""
    first: dict[int, _Row] = {}
    for row in rows:
        known = first.setdefault(row.idx, row)
        if known.sigma != row.sigma:
            raise BadTable(
                f"{path}, line {row.line}: idx {row.idx} stood in line {known.line} with sigma {known.sigma}, and "
                f"here with {row.sigma}; a table has one sigma, or one for each input: divide it"
            )
        if known.claim != row.claim:
            raise BadTable(f"{path}, line {row.line}: idx {row.idx} stood in line {known.line} with other values")
    if repeated := len(rows) - len(first):
        notes.append(f"{repeated} rows repeat an idx with the same values; the first of each is kept")
    return list(first.values())


def _sigmas(rows: list[_Row], notes: list[str]) -> list[float]:
    """The different values of column sigma; none if some row has no sigma there."""
    found = {row.sigma for row in rows}
    if None in found and len(found) > 1:
        notes.append("column sigma is not used: in some rows it has no positive number")
    return [] if None in found else sorted(sigma for sigma in found if sigma is not None)


def _cut_short(number: int) -> str:
    return f"line {number}, the last, was cut short and is left out: the run may have been killed"


def _split(line: str, delimiter: str) -> list[str]:
    line = line.rstrip("\r")
    try:
        cells = line.split("\t") if delimiter == "\t" else next(csv.reader([line]))
    except csv.Error:  # a cell without end, or with a line end in it
        cells = [line]  # too few, which is refused
    return [cell.strip() for cell in cells]


def _number(cell: str) -> float:
    """A number, NaN if it is none."""
    try:
        return float(cell)
    except ValueError:
        return math.nan


def _whole(name: str, cell: str) -> int:
    """A whole number; tables that went through a float column say 3.0."""
    value = _number(cell)
    if not value.is_integer() or abs(value) > 2**53:
        raise ValueError(f"{name} is {cell!r}, but must be a whole number")
    return int(value)


def _truth(cell: str) -> float:
    """A cell of column correct, NaN if it says nothing."""
    return _number({"true": "1", "false": "0"}.get(cell.lower(), cell))


def _seconds(cell: str) -> float:
    """Seconds from h:mm:ss.ffffff, with days before it where a run was long, or from a number of seconds."""
    match = re.fullmatch(r"(?:(\d+) days?, )?(\d+):(\d+):(\d+(?:\.\d*)?)", cell)
    try:
        if match is None:
            return float(cell)
        days, hours, minutes, seconds = match.groups(default="0")
        return ((int(days) * 24 + int(hours)) * 60 + int(minutes)) * 60 + float(seconds)
    except (ValueError, OverflowError):
        return math.nan
