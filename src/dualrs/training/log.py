"""The log of a training: a CSV file beside its checkpoint, for a spreadsheet.

Enters: the state after each step. Leaves: a row every ten steps and one for the last. A training that was stopped and
went on has the rows of one that was not, but for the times.
"""

import csv
from collections.abc import Iterable
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Self, TextIO

from dualrs.errors import DualrsError
from dualrs.files import write_whole

if TYPE_CHECKING:
    from dualrs.training.loop import State

COLUMNS = ("step", "epoch", "loss", "rate", "images_per_second", "seconds")
_STEPS_BETWEEN_ROWS = 10


def log_beside(checkpoint: Path) -> Path:
    """Where the log of a training is: NAME.log.csv beside NAME.checkpoint."""
    return checkpoint.with_suffix(".log.csv")


class Log:
    """A log that goes on after ``step``: what an earlier run wrote beyond its last checkpoint is cut off first.

    The file is touched after the first step only: a training that fails before leaves none.
    """

    def __init__(self, path: Path, step: int) -> None:
        self._path, self._step = path, step
        self._file: TextIO | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def _open(self) -> TextIO:
        rows = [COLUMNS, *_rows_until(self._path, self._step)]
        write_whole(self._path, "".join(_line(row) for row in rows).encode())
        return self._path.open("a", encoding="utf-8", newline="")

    def add(self, state: "State") -> None:
        """Write a row if the step is one that gets one."""
        self._file = self._file or self._open()
        if state.step % _STEPS_BETWEEN_ROWS and state.step != state.steps:
            return
        numbers = (state.loss, state.rate, state.images_per_second, state.seconds)
        row = [str(state.step), str(state.epoch + 1), *(f"{number:.6g}" for number in numbers)]
        try:
            self._file.write(_line(row))
            self._file.flush()
        except OSError as error:
            raise DualrsError(f"cannot write {self._path}: {error.strerror or error}") from error


def _line(row: Iterable[str]) -> str:
    line = StringIO()
    csv.writer(line, lineterminator="\n").writerow(row)
    return line.getvalue()


def _rows_until(path: Path, step: int) -> list[list[str]]:
    if not path.exists():
        return []
    # a line without an end was cut off in the middle of a write, and its last number with it
    whole = [line for line in path.read_text(encoding="utf-8", errors="replace").splitlines(True) if line[-1] == "\n"]
    rows = [row for row in csv.reader(whole) if len(row) == len(COLUMNS) and row[0].isdigit()]
    return [row for row in rows if int(row[0]) <= step]
