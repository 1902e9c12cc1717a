"""Exports: results as TSV, CSV or Parquet. docs/file-formats.md lists the columns.

Enters: results and a path, whose suffix chooses the format. Leaves: a whole file or none: it is written beside its
place and then moved there. Radii are written in full, never rounded.
"""

import csv
import math
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import IO

from dualrs.errors import BadTable, DualrsError
from dualrs.files import whole_file
from dualrs.storage.results import UNLABELLED, Results

Cell = str | int | float | None
Table = dict[str, list[Cell]]


def write(results: Results, path: str | PathLike[str]) -> None:
    """Write results to ``path``: .tsv as the field reads it, .csv and .parquet with all columns."""
    path = Path(path)
    formats: dict[str, Callable[[Results, IO[bytes]], None]] = {
        ".tsv": _write_tsv,
        ".csv": _write_csv,
        ".parquet": _write_parquet,
    }
    writer = formats.get(path.suffix.lower())
    if writer is None:
        raise BadTable(f"cannot tell the format of {path}: give a name that ends in {', '.join(formats)}")
    with whole_file(path) as file:
        writer(results, file)


def _columns(results: Results) -> Table:
    """All columns; None where a value is not known."""
    correct = [int(c) if known else None for c, known in zip(results.correct, results.labelled, strict=True)]
    sigma_c = [None] * len(results) if results.sigma_c is None else results.sigma_c.tolist()
    return {
        "id": results.ids.tolist(),
        "index": results.index.tolist(),
        "label": [None if label == UNLABELLED else label for label in results.label.tolist()],
        "prediction": results.prediction.tolist(),
        "radius": results.radius.tolist(),
        "correct": correct,
        "seconds": [None if math.isnan(s) else s for s in results.seconds.tolist()],
        "sigma_c": sigma_c,
    }


def _write_tsv(results: Results, file: IO[bytes]) -> None:
    table = _columns(results)
    names = {"idx": "index", "label": "label", "predict": "prediction", "radius": "radius", "correct": "correct"}
    columns = {theirs: table[ours] for theirs, ours in names.items()}
    columns["time"] = [None if math.isnan(s) else _clock(s) for s in results.seconds.tolist()]
    _write_lines(columns, file, "\t")


def _write_csv(results: Results, file: IO[bytes]) -> None:
    _write_lines(_columns(results), file, ",")


def _write_parquet(results: Results, file: IO[bytes]) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as absent:
        raise DualrsError("writing Parquet needs pyarrow: pip install dualrs[parquet]") from absent
    whole, real = pa.int64(), pa.float64()
    types = (pa.string(), whole, whole, whole, real, whole, real, real)
    table = _columns(results)
    pq.write_table(pa.table(table, schema=pa.schema(zip(table, types, strict=True))), file)


def _write_lines(columns: Table, file: IO[bytes], delimiter: str) -> None:
    # newline="" and \n by hand: the same bytes on every system. csv writes floats by repr, so nothing is rounded.
    lines = csv.writer(_Utf8(file), delimiter=delimiter, lineterminator="\n")
    lines.writerow(columns)
    lines.writerows(zip(*columns.values(), strict=True))


class _Utf8:
    """What csv needs to write text into a binary file."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, text: str) -> int:
        return self._file.write(text.encode())


def _clock(seconds: float) -> str:
    """Seconds as h:mm:ss.ffffff, the way in which the field writes time."""
    micro = round(seconds * 1e6)
    minutes, micro = divmod(micro, 60_000_000)
    return f"{minutes // 60}:{minutes % 60:02}:{micro // 1_000_000:02}.{micro % 1_000_000:06}"
