"""Leases: one process writes a ledger at a time, and another is told so at once.

A lease is a lock of the operating system on a file beside the ledger: it ends with the process, however that ends.
"""

import contextlib
import os
import sys
from os import PathLike
from pathlib import Path
from typing import Self

from dualrs.errors import LedgerBusy, LedgerError

if sys.platform == "win32":
    import msvcrt

    def _lock(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class Lease:
    """The right to write one ledger, which may not be there yet; a context manager."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        whole = self.path.resolve()  # two names of one file are one file
        if not self.path.parent.is_dir():
            raise LedgerError(f"cannot write {path}: there is no folder {self.path.parent}")
        self._beside = whole.with_name(f"{whole.name}-lock")
        file = self._open()
        while not self._is_at_its_place(file):  # whoever had it removed the file before we could lock it
            os.close(file)
            file = self._open()
        self._file: int | None = file
        os.truncate(file, 0)
        os.write(file, str(os.getpid()).encode())

    def _open(self) -> int:
        try:
            file = os.open(self._beside, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise LedgerError(
                f"cannot write beside {self.path}: {error.strerror}; check the rights on its folder"
            ) from error
        try:
            _lock(file)
        except OSError as error:
            holder = "?"
            with contextlib.suppress(OSError):  # where a locked file cannot be read
                holder = os.read(file, 20).decode(errors="replace") or holder
            os.close(file)
            raise LedgerBusy(
                f"another process (number {holder}) is writing {self.path}: wait until it is done, or give another "
                "file name"
            ) from error
        return file

    def _is_at_its_place(self, file: int) -> bool:
        try:
            return os.path.samestat(os.fstat(file), self._beside.stat())
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Let another process write; a second time is nothing."""
        if self._file is None:
            return
        file, self._file = self._file, None
        with contextlib.suppress(OSError):  # where an open file cannot be removed, it stays, and locks nobody out
            self._beside.unlink()
        os.close(file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
