"""Ledger: the votes and certificates of one run in one SQLite file. docs/file-formats.md describes the tables.

Enters: inputs, the votes on them unit by unit, and certificates. Leaves: the same, checked against their seals,
for a resumed run, a verification or a report. Rows go into an open transaction which `Ledger.commit` ends; killing
the process at any moment loses at most what was not committed.
"""

import contextlib
import secrets
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import groupby
from operator import itemgetter
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import numpy as np

from dualrs.certificates import Certificate
from dualrs.errors import ForeignLedger, LedgerError
from dualrs.storage.database import Database, Row
from dualrs.storage.header import FORMAT, Header
from dualrs.storage.lease import Lease
from dualrs.storage.rows import DONE, OPEN, Blocks, Concluded, InputRow, Rows, named
from dualrs.votes import AnyVotes, Counts, Stream, Tally, Unit, Votes

_Held = TypeVar("_Held")

_AT_ONCE = 500  # inputs asked for in one query; SQLite bounds the number of parameters

_RECORD = """
INSERT INTO votes SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8 WHERE NOT EXISTS (
    SELECT 1 FROM votes WHERE input = ?1 AND stage = ?2 AND part = ?3 AND sigma = ?4 AND start < ?6 AND stop > ?5
)"""

_ONE = "SELECT * FROM votes WHERE input = ? AND stage = ? AND part = ? AND sigma = ? AND start = ?"


def demand_current(header: Header, path: Path) -> None:
    """Refuse to go on with, or to take votes from, a run that an earlier version of dualrs wrote."""
    if header.format != FORMAT:
        raise ForeignLedger(
            f"{path} was written by an earlier version of dualrs, whose noise depended on the names of inputs and not "
            "on their pixels: it can be shown, compared and verified, and its votes are not mixed with new ones. Give "
            "another file name"
        )


class Ledger:
    """The record of one run; made by `create_or_resume` or, for reading, by `open`. A context manager."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.path = database.path
        found = list(database.rows("SELECT * FROM header LIMIT 2"))
        if len(found) != 1:
            raise LedgerError(f"{self.path} has {len(found) or 'no'} headers where a ledger has one; it is damaged")
        fingerprint, text, *listing, _ = found[0]
        try:
            self.header = Header.from_json(text)
            if len(listing) != (0 if self.header.format == 1 else 2):
                raise LedgerError(f"its header is not that of format {self.header.format}")
        except (LedgerError, TypeError) as bad:
            raise LedgerError(f"{self.path} is damaged or was edited: {bad}") from bad
        self.rows = Rows(self.header, str(fingerprint))  # damage may have put anything there
        self.header_damage = self.rows.header_damage(found[0])
        self._take_listing(found[0])
        self._inputs: dict[str, InputRow] = {}
        self._concluded: set[str] = set()
        self._lease: Lease | None = None
        self._undivided = False  # within `all_or_none`

    def _take_listing(self, row: Row) -> None:
        """What the header says of inputs: the list of them, and whether none lacks anything. Format 1 says nothing."""
        _, _, *listing, _ = row
        self.done = listing[1:] == [DONE]
        self.listed: list[InputRow] = []
        if listing and not self.header_damage:
            try:
                self.listed = self.rows.listed(listing[0])
            except LedgerError as bad:
                self.header_damage = str(bad)

    @classmethod
    def create_or_resume(cls, path: str | PathLike[str], header: Header, lease: Lease | None = None) -> "Ledger":
        """Open the ledger of this very run for writing, made new if there is none; refuses one of another run.

        One of another run that has no votes yet, as a command with a wrong setting leaves behind, makes room. The
        ledger takes the lease on its path, unless the caller has it, and gives it back when it is closed.
        """
        own = Lease(path) if lease is None else None
        try:
            ledger = cls._founded(Path(path), header)
            ledger._lease = own
        except BaseException:
            if own is not None:
                own.release()
            raise
        return ledger

    @classmethod
    def _founded(cls, path: Path, header: Header) -> "Ledger":
        database = Database.founding(path, Rows(header, header.fingerprint).of_header([], OPEN))
        try:
            ledger = cls(database)
            ledger.trust_header()
            if differences := ledger.header.differences(header):
                if ledger._is_without_votes():
                    database.discard()
                    return cls._founded(path, header)
                demand_current(ledger.header, path)
                raise ForeignLedger(
                    f"{path} belongs to another run: {'; '.join(differences)}. "
                    "Give another file name, or the same settings"
                )
            ledger._remember()
            database.write_ahead()  # only now: a refused file keeps its mode
        except BaseException:
            database.abandon()
            raise
        return ledger

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
        database = Database.reading(Path(path))
        try:
            return cls(database)
        except BaseException:
            database.abandon()
            raise

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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

    def snapshot(self) -> AbstractContextManager[None]:
        """Read one state throughout, whatever another process writes meanwhile."""
        return self.database.snapshot()

    # Writing

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

    def finished(self) -> set[str]:
        """The inputs that lack nothing: those that have a certificate or, in a run without any, all their votes."""
        return self.concluded() if self.header.certifies else set(self.complete())

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

    # Reading

    def trust_header(self) -> None:
        """Refuse a ledger whose header was altered."""
        if self.header_damage is not None:
            raise LedgerError(f"{self.path}: {self.header_damage}. No row of it is used; `dualrs verify` says more")

    def inputs(self) -> list[InputRow]:
        """The inputs of the run in the order of their positions."""
        return list(self._read(self.rows.input, "SELECT * FROM inputs ORDER BY position, id"))

    def concluded(self) -> set[str]:
        """The inputs that have a certificate."""
        return {row[0] for row in self.database.rows("SELECT input FROM certificates")}

    def certificates(self) -> dict[str, Concluded]:
        """The certificates as recorded, by input, in the order of positions."""
        query = "SELECT c.* FROM certificates c LEFT JOIN inputs i ON i.id = c.input ORDER BY i.position, c.input"
        return dict(self._read(self.rows.certificate, query))

    def tally(self, input_id: str) -> Tally:
        """The votes on one input so far, block by block: where a resumed run goes on."""
        tally = Tally()
        for unit, counts in self._units("SELECT * FROM votes WHERE input = ?", (input_id,)):
            tally.add(unit, counts.astype(np.int64))
        return tally

    def votes(self, ids: Sequence[str]) -> AnyVotes:
        """The votes on some inputs, in this order, in the form that rules read."""
        return self.header.streams.gather(self._sums(ids), self.header.plan)

    def expert_votes(self, ids: Sequence[str]) -> tuple[Votes, ...]:
        """The class votes on some inputs, in this order, sigma by sigma."""
        return self.header.streams.gather_experts(self._sums(ids), self.header.plan)

    def router_votes(self, ids: Sequence[str]) -> Votes:
        """The router's votes on some inputs, in this order."""
        return self.header.streams.gather_router(self._sums(ids), self.header.plan)

    def complete(self) -> list[str]:
        """The inputs that have every vote which is planned in any stream, in the order of positions."""
        votes = sum(self.header.plan.votes(stream.part) for stream in self.rows.answers)
        query = """
            SELECT i.id FROM inputs i JOIN votes v ON v.input = i.id
            GROUP BY i.id HAVING sum(v.stop - v.start) = ? ORDER BY i.position, i.id"""
        return [row[0] for row in self.database.rows(query, (votes,))]

    def sampled(self, stream: Stream) -> set[str]:
        """The inputs that have votes of a stream."""
        query = "SELECT DISTINCT input FROM votes WHERE stage = ? AND part = ? AND sigma = ?"
        return {row[0] for row in self.database.rows(query, _address(stream))}

    def _sums(self, ids: Sequence[str]) -> list[Tally]:
        """One tally per input, with one entry per stream and look: the sum over the units before it."""
        tallies = {input_id: Tally() for input_id in ids}
        for first in range(0, len(ids), _AT_ONCE):
            some = ids[first : first + _AT_ONCE]
            query = f"SELECT * FROM votes WHERE input IN ({', '.join('?' * len(some))})"
            # Rows come in the order of the key. Summing here keeps the blocks of a thousand classes out of memory.
            read = self._read(self.rows.counts, query, some)
            for (input_id, stream, look), units in groupby(read, key=itemgetter(0)):
                blocks = self.rows.blocks(stream, b"".join(raw for _, raw in units))
                sums = blocks.sum(axis=0, dtype=np.int64, keepdims=True)
                tallies[input_id].counts.setdefault(stream, {})[look] = sums
        return [tallies[input_id] for input_id in ids]

    def first_unit(self, stream: Stream) -> tuple[Unit, Counts] | None:
        """One recorded unit of a stream, for a resumed run to draw again and compare; None if there is none."""
        query = "SELECT * FROM votes WHERE stage = ? AND part = ? AND sigma = ? LIMIT 1"
        for unit, counts in self._units(query, _address(stream)):
            return unit, counts.astype(np.int64)
        return None

    def unfinished_units(self) -> Iterator[tuple[Unit, Counts]]:
        """The votes on inputs that lack something: those to which a resumed run adds more."""
        finished = self.finished()
        for unit, counts in self._units("SELECT * FROM votes"):
            if unit.input_id not in finished:
                yield unit, counts.astype(np.int64)

    def random_units(self, count: int) -> list[tuple[Unit, Counts]]:
        """Units at random, all different, every one as likely as any other."""
        keys = list(self.database.rows("SELECT input, stage, part, sigma, start FROM votes"))
        chosen = secrets.SystemRandom().sample(keys, min(count, len(keys)))
        return [(u, c.astype(np.int64)) for key in chosen for u, c in self._units(_ONE, key)]

    def unit_count(self) -> int:
        """How many units of votes are recorded."""
        return int(next(self.database.rows("SELECT count(*) FROM votes"))[0])

    def has_stream(self, input_id: str, stream: Stream) -> bool:
        """Whether all votes that the run plans of a stream are here."""
        query = "SELECT sum(stop - start) FROM votes WHERE input = ? AND stage = ? AND part = ? AND sigma = ?"
        votes = next(self.database.rows(query, (input_id, *_address(stream))))[0]
        return bool(votes == self.header.plan.steps_of(stream)[-1])

    def has(self, unit: Unit, counts: Counts | Blocks) -> bool:
        """Whether this very unit is recorded, with these counts."""
        key = (unit.input_id, *_address(unit.stream), unit.start)
        return any(held == unit and np.array_equal(kept, counts) for held, kept in self._units(_ONE, key))

    def _units(self, query: str, values: Sequence[object] = ()) -> Iterator[tuple[Unit, Blocks]]:
        return self._read(self.rows.unit, query, values)

    def _read(self, unpack: Callable[[Row], _Held], query: str, values: Sequence[object] = ()) -> Iterator[_Held]:
        """What the rows hold that a query gives; where one is damaged, the file is named too, as two may be open."""
        self.trust_header()
        for row in self.database.rows(query, values):
            try:
                held = unpack(row)
            except LedgerError as damage:
                raise LedgerError(f"{self.path}: {damage}") from damage
            yield held

    def _votes_held(self) -> int:
        return int(next(self.database.rows("SELECT coalesce(sum(stop - start), 0) FROM votes"))[0])

    def _is_without_votes(self) -> bool:
        with contextlib.suppress(LedgerError):  # what cannot be read is not empty
            return not any(True for _ in self.database.rows("SELECT 1 FROM votes UNION SELECT 1 FROM certificates"))
        return False

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


def _address(stream: Stream) -> tuple[str, str, float]:
    return stream.stage.value, stream.part.value, stream.sigma
