"""Exports: results, or other columns, as TSV, CSV or Parquet. docs/file-formats.md lists the columns.

Enters: results and a path, whose suffix chooses the format. Leaves: a whole file or none: it is written beside its
place and then moved there. Radii are written in full, never rounded.
"""

import csv
import math
from collections.abc import Callable
from functools import partial
from io import TextIOWrapper
from os import PathLike
from pathlib import Path
from typing import IO

from dualrs.errors import BadTable, DualrsError
from dualrs.files import whole_file
from dualrs.storage.results import UNLABELLED, Results

Cell = str | int | float | None
Table = dict[str, list[Cell]]

_WHOLE = ("index", "label", "prediction", "correct", "decided")  # columns of whole numbers


def write(results: Results, path: str | PathLike[str]) -> None:
    """Write results to ``path``: .tsv as the field reads it, .csv and .parquet with all columns."""
    write_columns((_field_columns if _suffix(path) == ".tsv" else _columns)(results), path)


def write_columns(columns: Table, path: str | PathLike[str]) -> None:
    """Write columns of one length to ``path``, in the format of its suffix."""
    if (writer := _FORMATS.get(_suffix(path))) is None:
        raise BadTable(f"cannot tell the format of {path}: give a name that ends in {', '.join(_FORMATS)}")
    with whole_file(Path(path)) as file:
        writer(columns, file)


def _suffix(path: str | PathLike[str]) -> str:
    return Path(path).suffix.lower()


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


def _field_columns(results: Results) -> Table:
    """The columns that the field reads, under its names."""
    table = _columns(results)
    names = {"idx": "index", "label": "label", "predict": "prediction", "radius": "radius", "correct": "correct"}
    clocks: list[Cell] = [None if math.isnan(s) else _clock(s) for s in results.seconds.tolist()]
    return {theirs: table[ours] for theirs, ours in names.items()} | {"time": clocks}


def _write_parquet(columns: Table, file: IO[bytes]) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as absent:
        raise DualrsError("writing Parquet needs pyarrow: pip install dualrs[parquet]") from absent
    types = {"id": pa.string()} | dict.fromkeys(_WHOLE, pa.int64())
    pq.write_table(
        pa.table({name: pa.array(cells, types.get(name, pa.float64())) for name, cells in columns.items()}), file
    )


def _write_lines(columns: Table, file: IO[bytes], delimiter: str) -> None:
    # newline="" and \n by hand: the same bytes on every system. csv writes floats by repr, so nothing is rounded.
    text = TextIOWrapper(file, encoding="utf-8", newline="")
    lines = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    lines.writerow(columns)
    lines.writerows(zip(*columns.values(), strict=True))
    text.detach()  # which leaves the file open


def _clock(seconds: float) -> str:
    """Seconds as h:mm:ss.ffffff, the way in which the field writes time."""
    micro = round(seconds * 1e6)
    minutes, micro = divmod(micro, 60_000_000)
    return f"{minutes // 60}:{minutes % 60:02}:{micro // 1_000_000:02}.{micro % 1_000_000:06}"


_FORMATS: dict[str, Callable[[Table, IO[bytes]], None]] = {
    ".tsv": partial(_write_lines, delimiter="\t"),
    ".csv": partial(_write_lines, delimiter=","),
    ".parquet": _write_parquet,
}
