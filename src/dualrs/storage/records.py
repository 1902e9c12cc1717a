"""Records: what a ledger holds, read and checked against its seals.

Enters: an open database. Leaves: inputs, votes and certificates; a row that does not match its seal is a LedgerError.
"""

import contextlib
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np

from dualrs.errors import LedgerError
from dualrs.storage.blocks import Blocks
from dualrs.storage.database import Database, Row
from dualrs.storage.header import Header
from dualrs.storage.rows import DONE, Concluded, InputRow, Rows
from dualrs.votes import Counts, Stream, Tally, Unit

_Held = TypeVar("_Held")

_AT_ONCE = 500  # inputs asked for in one query; SQLite bounds the number of parameters

_ONE = "SELECT * FROM votes WHERE input = ? AND stage = ? AND part = ? AND sigma = ? AND start = ?"


class Records:
    """The record of one run, for reading."""

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

    def snapshot(self) -> AbstractContextManager[None]:
        """Read one state throughout, whatever another process writes meanwhile."""
        return self.database.snapshot()

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
        for unit, counts in self.units(input_id):
            tally.add(unit, counts)
        return tally

    def votes(self, ids: Sequence[str]) -> Any:
        """The votes on some inputs, in this order, in the form that the scheme of the run gives them."""
        return self.header.scheme.gather(self._sums(ids), self.header.plan)

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
                tallies[input_id].put(stream, look, self.rows.summed(stream, (raw for _, raw in units)))
        return [tallies[input_id] for input_id in ids]

    def first_unit(self, stream: Stream, input_id: str | None = None) -> tuple[Unit, Counts] | None:
        """One recorded unit of a stream, on this input or on some, to draw again and compare; None if there is none."""
        query = "SELECT * FROM votes WHERE stage = ? AND part = ? AND sigma = ? LIMIT 1"
        asked = (query, _address(stream)) if input_id is None else (_ONE, (input_id, *_address(stream), 0))
        return next(self._counted(*asked), None)

    def unfinished_units(self) -> Iterator[tuple[Unit, Counts]]:
        """The votes on inputs that lack something: those to which a resumed run adds more."""
        finished = self.finished()
        return ((unit, counts) for unit, counts in self.units() if unit.input_id not in finished)

    def random_units(self, count: int) -> list[tuple[Unit, Counts]]:
        """Units at random, all different, every one as likely as any other."""
        keys = list(self.database.rows("SELECT input, stage, part, sigma, start FROM votes"))
        chosen = secrets.SystemRandom().sample(keys, min(count, len(keys)))
        return [held for key in chosen for held in self._counted(_ONE, key)]

    def units(self, input_id: str | None = None) -> Iterator[tuple[Unit, Counts]]:
        """All recorded units with their counts, or those on one input, stream by stream and in order."""
        query = "SELECT * FROM votes" + ("" if input_id is None else " WHERE input = ?")
        return self._counted(query, () if input_id is None else (input_id,))

    def unit_count(self) -> int:
        """How many units of votes are recorded."""
        return int(next(self.database.rows("SELECT count(*) FROM votes"))[0])

    def has_stream(self, input_id: str, stream: Stream) -> bool:
        """Whether all votes that the run plans of a stream are here."""
        query = "SELECT sum(stop - start) FROM votes WHERE input = ? AND stage = ? AND part = ? AND sigma = ?"
        votes = next(self.database.rows(query, (input_id, *_address(stream))))[0]
        return bool(votes == self.header.plan.steps_of(stream)[-1])

    def counts(self, unit: Unit) -> Counts | None:
        """The counts of this very unit; None if it is not recorded."""
        held = self._counted(_ONE, (unit.input_id, *_address(unit.stream), unit.start))
        return next((counts for found, counts in held if found == unit), None)

    def has(self, unit: Unit, counts: Counts | Blocks) -> bool:
        """Whether this very unit is recorded, with these counts."""
        kept = self.counts(unit)
        return kept is not None and np.array_equal(kept, counts)

    def _counted(self, query: str, values: Sequence[object] = ()) -> Iterator[tuple[Unit, Counts]]:
        return ((unit, counts.astype(np.int64)) for unit, counts in self._units(query, values))

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

    def finished(self) -> set[str]:
        """The inputs that lack nothing: those that have a certificate or, in a run without any, all their votes."""
        return self.concluded() if self.header.certifies else set(self.complete())


def _address(stream: Stream) -> tuple[str, str, float]:
    return stream.stage.value, stream.part.value, stream.sigma
