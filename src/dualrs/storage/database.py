"""The SQLite file under a ledger: how it is made, opened and closed, and how SQLite's complaints become sentences.

Enters: a path and SQL. Leaves: rows, or a LedgerError that says what to do; no sqlite3 exception gets out.
A file is founded in one transaction, so that there is either a whole ledger or none. While it is written it is
in WAL mode, so that others can read at the same time; a clean close leaves one single file.
"""

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Self

from dualrs.errors import LedgerError
from dualrs.storage.header import FORMAT, FORMATS

Row = tuple[Any, ...]

MAGIC = b"SQLite format 3\0"
APPLICATION = 0x4452534C  # "DRSL": tells a ledger from any other SQLite file
PATIENCE = 5.0  # seconds to wait for another process' lock
KEPT = "What was committed before is kept, and the same command goes on from there"
DAMAGED = "restore a copy of it, or give another file name to start afresh"

SCHEMA = (
    "CREATE TABLE header (fingerprint TEXT NOT NULL, fields TEXT NOT NULL, inputs BLOB NOT NULL, state TEXT NOT NULL,"
    " seal TEXT NOT NULL)",
    "CREATE TABLE inputs (id TEXT PRIMARY KEY, position INTEGER NOT NULL, label INTEGER, seal TEXT NOT NULL)"
    " WITHOUT ROWID",
    "CREATE TABLE votes (input TEXT, stage TEXT, part TEXT, sigma REAL, start INTEGER, stop INTEGER NOT NULL,"
    " counts BLOB NOT NULL, seal TEXT NOT NULL, PRIMARY KEY (input, stage, part, sigma, start)) WITHOUT ROWID",
    "CREATE TABLE certificates (input TEXT PRIMARY KEY, prediction INTEGER NOT NULL, radius REAL NOT NULL,"
    " sigma_c REAL NOT NULL, r_sigma REAL NOT NULL, r_c REAL NOT NULL, limited_by TEXT NOT NULL,"
    " outcome TEXT NOT NULL, seconds REAL NOT NULL, units INTEGER NOT NULL, seal TEXT NOT NULL) WITHOUT ROWID",
)

# The module sqlite3 decodes SQLite's own messages too, and a damaged file can put anything into them. It can also speak
# of rows of many gigabytes, for which there is no memory.
_COMPLAINTS = (sqlite3.Error, UnicodeError, MemoryError)


class Database:
    """One open SQLite file. After a failed write nothing more is written: the open transaction is undone."""

    def __init__(self, path: Path, mode: str) -> None:
        self.path = path
        self.writable = mode != "ro"
        self.founded = False  # by this very object
        self._failed = self._closed = False
        try:
            uri = f"{path.absolute().as_uri()}?mode={mode}"
            self._connection = sqlite3.connect(uri, uri=True, timeout=PATIENCE, isolation_level=None)
            # Damaged text must reach the seals, which name the row, instead of stopping the whole reading.
            self._connection.text_factory = partial(str, encoding="utf-8", errors="replace")
            self._connection.execute("PRAGMA cell_size_check = ON")
        except sqlite3.Error as error:
            raise LedgerError(_sentence(path, error)) from error

    @classmethod
    def reading(cls, path: Path) -> "Database":
        """Open an existing ledger without the right to change it."""
        if not path.exists():
            raise LedgerError(f"there is no ledger {path}")
        if _is_empty(path):
            raise LedgerError(f"{path} is empty: its run was stopped before it began; start that run again")
        with cls(path, "ro").or_abandon() as database:
            database._demand_ledger()
        return database

    @classmethod
    def founding(cls, path: Path, header_row: Sequence[object], page_size: int) -> "Database":
        """Open a ledger for writing; where there is none, found it with this header row and pages of so many bytes."""
        exists = path.exists() and not _is_empty(path)
        with cls(path, "rw" if exists else "rwc").or_abandon() as database:
            database._found(header_row, page_size)
        return database

    @classmethod
    def resuming(cls, path: Path) -> "Database | None":
        """Open an existing ledger for writing; None where there is none, or only what a killed founder left.

        With the right to write, SQLite undoes a transaction that was cut off; a reader would have to refuse the file.
        """
        if not path.exists() or _is_empty(path):
            return None
        with cls(path, "rw").or_abandon() as database:
            if not database._is_blank():
                database._demand_ledger()
                return database
        database.abandon()
        return None

    @contextlib.contextmanager
    def or_abandon(self) -> Iterator[Self]:
        """Close without committing if anything goes wrong within."""
        try:
            yield self
        except BaseException:
            self.abandon()
            raise

    def _found(self, header_row: Sequence[object], page_size: int) -> None:
        if self._is_blank():
            self.execute(f"PRAGMA page_size = {page_size}")
            self.execute("BEGIN EXCLUSIVE")
            if self._is_blank():  # still so, now that nobody else can found it
                self.execute(f"PRAGMA application_id = {APPLICATION}")
                self.execute(f"PRAGMA user_version = {FORMAT}")
                for table in SCHEMA:
                    self.execute(table)
                self.execute("INSERT INTO header VALUES (?, ?, ?, ?, ?)", header_row)
                self.founded = True
            self.execute("COMMIT")
        self._demand_ledger()

    def write_ahead(self) -> None:
        """Write so that others can read meanwhile, and so that a kill at any moment costs no commit.

        A power cut may take the last commits, never the file.
        """
        self.execute("PRAGMA journal_mode = WAL")
        self.execute("PRAGMA synchronous = NORMAL")

    def _is_blank(self) -> bool:
        return self._number("PRAGMA application_id") == 0 and not self._number("SELECT count(*) FROM sqlite_master")

    def _demand_ledger(self) -> None:
        if self._number("PRAGMA application_id") != APPLICATION:
            raise LedgerError(f"{self.path} is an SQLite file, but not a ledger of dualrs; give another file name")
        if (version := self._number("PRAGMA user_version")) not in FORMATS:
            raise LedgerError(
                f"{self.path} is a ledger of format {version}, this dualrs reads formats 1 to {FORMAT}; "
                "use the version of dualrs that wrote it"
            )
        for table, columns in _columns(version).items():
            found = [row[1] for row in self.rows(f"PRAGMA table_xinfo({table})")]
            if found != columns:
                raise LedgerError(
                    f"{self.path} lacks a part of a ledger: the columns of its table {table} are "
                    f"{', '.join(found) or 'gone'}, not {', '.join(columns)}; {DAMAGED}"
                )

    def _number(self, sql: str) -> int:
        return int(next(self.rows(sql), (0,))[0])

    def execute(self, sql: str, values: Sequence[object] = ()) -> int:
        """Run one statement; the number of rows it changed."""
        try:
            return self._connection.execute(sql, values).rowcount
        except _COMPLAINTS as error:
            raise self._fail(error) from error

    def rows(self, sql: str, values: Sequence[object] = ()) -> Iterator[Row]:
        """The rows that a query gives, one by one."""
        try:
            # A bare cursor would be closed along with this generator, which may be after the file was.
            yield from map(tuple, self._connection.execute(sql, values))
        except _COMPLAINTS as error:
            raise self._fail(error) from error

    @property
    def intact(self) -> bool:
        """Whether it can be written, and no write has failed."""
        return self.writable and not self._failed and not self._closed

    def begin(self) -> None:
        """Open a transaction for writing, unless one is open."""
        if not self.writable:
            raise LedgerError(f"{self.path} was opened for reading; open it with Ledger.create_or_resume to write")
        if self._failed:
            raise LedgerError(f"an earlier write to {self.path} failed; open it again. {KEPT}")
        if not self._connection.in_transaction:
            self.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Make what was written since `begin` lasting."""
        if self.writable and self._connection.in_transaction:
            self.execute("COMMIT")

    def rollback(self) -> None:
        """Undo what was written since `begin`."""
        if self._connection.in_transaction:
            self.execute("ROLLBACK")

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """See one state of the file throughout, whatever another process writes meanwhile."""
        if self._connection.in_transaction:
            yield
            return
        self.execute("BEGIN")
        try:
            yield
        finally:
            self.rollback()

    def close(self) -> None:
        """Commit and leave one single file, unless somebody is reading: then the next writer tidies up."""
        try:
            if self.writable and not self._failed:
                self.commit()
                with contextlib.suppress(sqlite3.Error):
                    self._connection.execute("PRAGMA busy_timeout = 200")
                    self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                    self._connection.execute("PRAGMA journal_mode = DELETE").fetchall()
        except sqlite3.ProgrammingError:
            pass  # closed before
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close without committing or tidying up."""
        self._closed = True
        self._connection.close()

    def discard(self) -> None:
        """Close, and remove the file with all that is in it."""
        self.abandon()
        for path in (self.path, *(Path(f"{self.path}{suffix}") for suffix in ("-wal", "-shm", "-journal"))):
            path.unlink(missing_ok=True)

    def _fail(self, error: Exception) -> LedgerError:
        self._failed = True
        with contextlib.suppress(sqlite3.Error):
            if self.writable and self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        return LedgerError(_sentence(self.path, error))


@cache
def _columns(version: int) -> Mapping[str, list[str]]:
    """The columns of every table of a ledger of some format, in their order, as rows are read and written by it."""
    with contextlib.closing(sqlite3.connect(":memory:")) as blank:
        for table in SCHEMA:
            blank.execute(table)
        tables = [name for (name,) in blank.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        columns = {name: [row[1] for row in blank.execute(f"PRAGMA table_xinfo({name})")] for name in tables}
    if version == 1:
        columns["header"] = [name for name in columns["header"] if name not in ("inputs", "state")]
    return columns


def _is_empty(path: Path) -> bool:
    """Whether a file has no content yet; refuses what is no file, no SQLite file, or less than one page of it."""
    if path.is_dir():
        raise LedgerError(f"{path} is a folder; give the name of a ledger file")
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            start = file.read(18)
    except OSError as error:
        raise LedgerError(f"{path} cannot be read: {error.strerror}") from error
    if not start or Path(f"{path}-journal").exists():  # SQLite undoes what a killed founder left
        return not start
    if not start.startswith(MAGIC):
        raise LedgerError(f"{path} is not a ledger: it does not begin as an SQLite file does; give another file name")
    if size < max(512, int.from_bytes(start[16:], "big")):  # SQLite would take it for an empty one
        raise LedgerError(f"{path} is cut short: {DAMAGED}")
    return False


def _sentence(path: Path, error: Exception) -> str:
    """What happened, and what to do."""
    code = "SQLITE_NOMEM" if isinstance(error, MemoryError) else getattr(error, "sqlite_errorname", "")
    known = {
        "SQLITE_NOMEM": f"{path} asks for more memory than there is: free some; if there is enough, the file is "
        f"damaged: {DAMAGED}",
        "SQLITE_FULL": f"no room left to write {path}: free some disk space. {KEPT}",
        "SQLITE_READONLY_ROLLBACK": f"{path} was left in the middle of a write by a process that was killed: run the "
        f"command that wrote it again. {KEPT}",
        "SQLITE_READONLY": f"{path} or its folder may not be written: check the rights on both. {KEPT}",
        "SQLITE_BUSY": f"another process is writing {path}: wait for it, or give another file name. {KEPT}",
        "SQLITE_LOCKED": f"another process is writing {path}: wait for it, or give another file name. {KEPT}",
        "SQLITE_CANTOPEN": f"{path} cannot be opened: check that its folder exists and may be written. {KEPT}",
        "SQLITE_PROTOCOL": f"{path} cannot be locked: put it on a local disk. {KEPT}",
        "SQLITE_IOERR": f"the disk failed under {path} ({error}): check its space, quota and health. {KEPT}",
        "SQLITE_CORRUPT": f"{path} is damaged or cut short ({error}): {DAMAGED}",
        "SQLITE_NOTADB": f"{path} is damaged or not a ledger ({error}): {DAMAGED}",
        "SQLITE_ERROR": f"{path} lacks a part of a ledger ({error}): {DAMAGED}",
    }
    for name, sentence in known.items():
        if code.startswith(name):
            return sentence
    return f"{path} cannot be used ({error}). {KEPT}"
