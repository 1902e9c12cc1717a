"""Ledger: the votes and certificates of one run in one SQLite file. docs/file-formats.md describes the tables.

Enters: inputs, the votes on them unit by unit, and certificates. Leaves: the same, checked against their seals,
for a resumed run, a verification or a report. Rows go into an open transaction which `Ledger.commit` ends; killing
the process at any moment loses at most what was not committed.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import groupby
from os import PathLike
from pathlib import Path

from dualrs.certificates import Certificate
from dualrs.errors import ForeignLedger, LedgerError
from dualrs.storage.blocks import Blocks
from dualrs.storage.database import Database
from dualrs.storage.header import FORMAT, Header
from dualrs.storage.lease import Lease
from dualrs.storage.records import Records
from dualrs.storage.rows import DONE, OPEN, Concluded, InputRow, Rows, named
from dualrs.votes import Counts, Stream, Unit

_RECORD = """
INSERT INTO votes SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8 WHERE NOT EXISTS (
    SELECT 1 FROM votes WHERE input = ?1 AND stage = ?2 AND part = ?3 AND sigma = ?4 AND start < ?6 AND stop > ?5
)"""


def demand_current(header: Header, path: Path) -> None:
    """Refuse to go on with, or to take votes from, a run that an earlier version of dualrs wrote."""
    if header.format != FORMAT:
        raise ForeignLedger(
            f"{path} was written by an earlier version of dualrs, whose noise depended on the names of inputs and not "
            "on their pixels: it can be shown, compared and verified, and its votes are not mixed with new ones. Give "
            "another file name"
        )


class Ledger(Records):
    """The record of one run; made by `create_or_resume` or, for reading, by `open`. A context manager."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._inputs: dict[str, InputRow] = {}
        self._concluded: set[str] = set()
        self._lease: Lease | None = None
        self._undivided = False  # within `all_or_none`

    @classmethod
    def create_or_resume(cls, path: str | PathLike[str], header: Header, lease: Lease | None = None) -> "Ledger":
        """Open the ledger of this very run for writing, made new if there is none; refuses one of another run.

        One of another run that has no votes yet, as a command with a wrong setting leaves behind, makes room. The
        ledger takes the lease on its path, unless the caller has it, and gives it back when it is closed.
        """
        with ExitStack() as stack:
            own = stack.enter_context(Lease(path)) if lease is None else None
            ledger = cls._founded(Path(path), header)
            ledger._lease = own
            stack.pop_all()
        return ledger

    @classmethod
    def _founded(cls, path: Path, header: Header) -> "Ledger":
        rows = Rows(header, header.fingerprint)
        with Database.founding(path, rows.of_header([], OPEN), rows.page_size).or_abandon() as database:
            ledger = cls(database)
            ledger.trust_header()
            if differences := ledger.header.differences(header):
                if ledger._is_without_votes():
                    database.discard()
                    return cls._founded(path, header)
                demand_current(ledger.header, path)
                more = f"; more votes go on from these in a new ledger, with --reuse {path}"
                raise ForeignLedger(
                    f"{path} belongs to another run: {'; '.join(differences)}. "
                    f"Give another file name, or the same settings"
                    f"{more if header.n > ledger.header.n else ''}{ledger._shown_by(header)}"
                )
            ledger._remember()
            database.write_ahead()  # only now: a refused file keeps its mode
        return ledger

    def _shown_by(self, asked: Header) -> str:
        """How to see what another rule or alpha makes of these votes, if that is all that was asked for."""
        own = self.header
        if not own.certifies or own.differences(asked, apart_from=("alpha", "rule")):
            return ""
        words = f" --alpha {asked.alpha:g}" * (asked.alpha != own.alpha)
        words += f" --rule {asked.rule}" * (asked.rule != own.rule)
        return f"; to see what these votes give, without new ones: dualrs show {self.path}{words}"

    @classmethod
    def header_of(cls, path: str | PathLike[str]) -> Header | None:
        """The header of the run that was begun at a path; None if there is none, or none with votes."""
        database = Database.resuming(Path(path))
        if database is None:
            return None
        try:
            ledger = cls(database)
            return None if ledger._is_without_votes() else ledger.header
        finally:
            database.abandon()

    @classmethod
    def open(cls, path: str | PathLike[str]) -> "Ledger":
        """Open a ledger for reading, also while another process writes it; the file is not changed."""
        with Database.reading(Path(path)).or_abandon() as database:
            return cls(database)

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is not None and self.database.founded and self._is_without_votes():
                self.database.discard()  # a run that failed before its first vote leaves nothing behind
            self.close()
        except LedgerError:
            if error is None:  # never hide what really happened
                raise

    def close(self) -> None:
        """Commit what is recorded, since every row stands by itself, and leave one single file."""
        try:
            if self.database.intact:
                done = bool(self.listed) and self.finished() >= {row.id for row in self.listed}
                if done != self.done:
                    self._note(done)
            self.database.close()
        finally:
            if self._lease is not None:
                self._lease.release()

    def commit(self) -> None:
        """Make everything recorded so far lasting."""
        if not self._undivided:
            self.database.commit()

    def add_inputs(self, rows: Iterable[tuple[str, int, int | None]]) -> None:
        """Name the inputs of the run: id, position in the dataset, label or None. Adding the same again is nothing."""
        self.database.begin()
        before = len(self._inputs)
        for input_id, position, label in rows:
            row = InputRow(str(input_id), int(position), None if label is None else int(label))
            if label is not None and label < 0:
                raise LedgerError(f"input {row.id}: a label is a class number, or None if unknown; got {label}")
            known = self._inputs.get(row.id)
            if known is None:
                self.database.execute("INSERT INTO inputs VALUES (?, ?, ?, ?)", self.rows.of_input(row))
                self._inputs[row.id] = row
            elif known != row:
                raise ForeignLedger(
                    f"{self.path} knows input {row.id} at position {known.position} with label {known.label}, "
                    f"not at position {row.position} with label {row.label}: this is another dataset. "
                    "Give another file name, or the same data"
                )
        if len(self._inputs) > before:
            self._note(done=False)

    def _note(self, done: bool) -> None:
        """Write the list of inputs into the header, and whether one of them lacks something."""
        self.database.begin()
        known = {row.id: row for row in self.listed} | self._inputs  # one that was removed stays on the list
        inputs = sorted(known.values(), key=lambda row: (row.position, row.id))
        _, _, listed, state, seal = self.rows.of_header(inputs, DONE if done else OPEN)
        self.database.execute("UPDATE header SET inputs = ?, state = ?, seal = ?", (listed, state, seal))
        self.done, self.listed = done, inputs

    def record(self, unit: Unit, counts: Counts | Blocks) -> None:
        """Keep the counts of a unit, shape (blocks, answers). The same again is nothing; votes never count twice."""
        self.database.begin()
        self._demand_input(unit.input_id)
        row = self.rows.of_unit(unit, counts)
        if unit.input_id not in self._concluded and self.database.execute(_RECORD, row) == 1:
            return
        if self.has(unit, counts):
            return
        raise LedgerError(
            f"{named(unit)}: {self.path} holds other votes there, or the input is concluded without them. "
            "Votes are drawn once, so the model, the data or the device is not what it was; nothing was changed"
        )

    def conclude(self, input_id: str, certificate: Certificate, seconds: float) -> None:
        """Keep the certificate of an input; from here on its votes are final. The same again is nothing."""
        self.database.begin()
        self._demand_input(input_id)
        if kept := self._certificate(input_id):
            if kept != certificate:
                raise LedgerError(f"input {input_id}: {self.path} holds another certificate: {kept}, not {certificate}")
            return
        units = next(self.database.rows("SELECT count(*) FROM votes WHERE input = ?", (input_id,)))[0]
        row = self.rows.of_certificate(input_id, Concluded(certificate, seconds, units))
        self.database.execute(f"INSERT INTO certificates VALUES ({', '.join('?' * len(row))})", row)
        self._concluded.add(input_id)

    def absorb(self, shard: "Ledger") -> None:
        """Take in all rows of a ledger of the same run over other inputs, or none of them; commits."""
        shard.trust_header()
        demand_current(shard.header, shard.path)
        if differences := self.header.differences(shard.header):
            raise ForeignLedger(f"{shard.path} is no shard of {self.path}: {'; '.join(differences)}")
        with self.all_or_none(), shard.snapshot():
            self.add_inputs(shard.inputs())
            for unit, counts in shard._units("SELECT * FROM votes"):
                self.record(unit, counts)
            for input_id, concluded in shard.certificates().items():
                self.conclude(input_id, concluded.certificate, concluded.seconds)

    def take_over(self, other: "Ledger", streams: Collection[Stream]) -> int:
        """Copy the votes of some streams on the inputs of this run from a ledger of another run, or none; commits.

        That this run would draw the same votes is for the caller to know. All votes of the other ledger are looked at,
        so that a damaged one is refused. Of those, streams that hold all that this run plans are taken, and no part of
        one: who drew the rest would be another. Returns how many votes are new here.
        """
        before = self._votes_held()
        with self.all_or_none(), other.snapshot():
            shared = {row.id for row in other.inputs()} & self._inputs.keys()
            planned = {s: {(u.start, u.stop) for u in self.header.plan.units("", s)} for s in streams}
            for input_id, units in groupby(other._units("SELECT * FROM votes"), key=lambda held: held[0].input_id):
                found: dict[Stream, list[tuple[Unit, Blocks]]] = defaultdict(list)
                for unit, counts in units:
                    if (unit.start, unit.stop) in planned.get(unit.stream, ()):
                        found[unit.stream].append((unit, counts))
                for stream, held in found.items():
                    if input_id in shared and len(held) == len(planned[stream]):
                        for unit, counts in held:
                            self.record(unit, counts)
        return self._votes_held() - before

    @contextmanager
    def all_or_none(self) -> Iterator[None]:
        """Commit what is written within; undo it if anything goes wrong. Within another, that one decides."""
        if self._undivided:
            yield
            return
        self.commit()
        self._undivided = True
        try:
            yield
            self._undivided = False
            self.commit()
        except BaseException:
            self._undivided = False
            self.database.rollback()
            self._remember()
            raise

    def _certificate(self, input_id: str) -> Certificate | None:
        for row in self.database.rows("SELECT * FROM certificates WHERE input = ?", (input_id,)):
            return self.rows.certificate(row)[1].certificate
        return None

    def _remember(self) -> None:
        self._inputs = {row.id: row for row in self.inputs()}
        self._concluded = self.concluded()
        self._take_listing(next(self.database.rows("SELECT * FROM header")))

    def _demand_input(self, input_id: str) -> None:
        if input_id not in self._inputs:
            raise LedgerError(f"{self.path} has no input {input_id}; add_inputs names the inputs of a run first")
