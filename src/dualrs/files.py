"""Files that appear as a whole or not at all."""

import contextlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path
from typing import IO

from dualrs.errors import DualrsError


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write, and to read back, which takes its place at ``path`` only when all of it is written.

    What processes that were killed in the middle of this left beside it goes, too.
    """
    path = Path(path)
    _sweep(path)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        try:
            with beside.open("w+b") as file:
                yield file
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise DualrsError(f"cannot write {path}: {error.strerror or error}. Nothing was changed there") from error


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file, all of it or nothing."""
    with whole_file(path) as file:
        file.write(content)


def _sweep(path: Path) -> None:
    for left in path.parent.glob(f".{escape(path.name)}.[0-9]*"):
        number = left.name.removeprefix(f".{path.name}.")
        if number.isdecimal() and not _is_running(int(number)):
            with contextlib.suppress(OSError):  # it is in nobody's way
                left.unlink()


def _is_running(process: int) -> bool:
    if sys.platform == "win32":
        return True  # there, a file of another process cannot be told from one that is in use
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        pass  # it is somebody else's
    return True
