"""The rows of a ledger: how inputs, votes and certificates are sealed, packed, and read back with suspicion.

Enters: what is to be recorded, or a row as SQLite gives it. Leaves: a row, or what it holds; a row which does
not match its seal, or could not have been written by a run of this header, is a LedgerError naming the input.

A seal is a short digest over the fingerprint of the header, the name of the table and the content of the row.
It finds damage and edits; it is no signature, as anyone can compute it.
"""

import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import astuple, fields
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualrs.certificates import Certificate, Outcome
from dualrs.errors import LedgerError, UnusableVotes
from dualrs.storage.header import Header
from dualrs.votes import BLOCK, Counts, Stream, Unit

Blocks = NDArray[np.uint8]  # counts as kept: no block has more than BLOCK = 100 votes

CERTIFICATE_FIELDS = tuple(f.name for f in fields(Certificate))

# Damage can put bytes where text belongs; such a row must fail its seal, not the encoder.
_encode = json.JSONEncoder(separators=(",", ":"), default=repr).encode


class InputRow(NamedTuple):
    """An input of a run: where it stands in the dataset and, if known, its label."""

    id: str
    position: int
    label: int | None


class Concluded(NamedTuple):
    """A certificate as recorded, the seconds it took, and how many units of votes it rests on."""

    certificate: Certificate
    seconds: float
    units: int


class Rows:
    """Packs and unpacks the rows of one run."""

    def __init__(self, header: Header, fingerprint: str) -> None:
        self._base = hashlib.blake2b(fingerprint.encode(), digest_size=8)
        self._plan = header.plan
        self.answers: Mapping[Stream, int] = header.streams.answers
        self._streams = {(s.stage.value, s.part.value, s.sigma): s for s in self.answers}

    def seal(self, table: str, *content: object, raw: bytes = b"") -> str:
        """Digest of a row: of its content as a JSON list, followed by the bytes that JSON cannot hold."""
        digest = self._base.copy()
        digest.update(_encode([table, *content]).encode())
        digest.update(raw)
        return digest.hexdigest()

    def of_input(self, row: InputRow) -> tuple[object, ...]:
        """The row of table inputs."""
        return (*row, self.seal("inputs", *row))

    def input(self, row: tuple[Any, ...]) -> InputRow:
        """Read a row of table inputs."""
        *content, seal = row
        if seal != self.seal("inputs", *content):
            raise LedgerError(
                f"input {row[0]}: its position ({row[1]}) or its label ({row[2]}) was changed: the seal does not match"
            )
        return InputRow(*content)

    def of_unit(self, unit: Unit, counts: Counts | Blocks) -> tuple[object, ...]:
        """The row of table votes; refuses counts which are not the votes that the unit says."""
        answers = self._answers(unit)
        table: NDArray[Any] = np.asarray(counts)
        if table.shape != (unit.blocks, answers) or table.dtype.kind not in "iu":
            raise UnusableVotes(
                f"{named(unit)}: counts must be integers of shape {(unit.blocks, answers)}, "
                f"got {table.dtype} {table.shape}"
            )
        if table.min() < 0 or not fills_blocks(unit, table):
            raise UnusableVotes(f"{named(unit)}: the counts of a block do not sum to its votes")
        raw = table.astype(np.uint8).tobytes()
        address = (unit.input_id, unit.stream.stage.value, unit.stream.part.value, unit.stream.sigma)
        content = (*address, unit.start, unit.stop)
        return (*content, zlib.compress(raw, 1), self.seal("votes", *content, raw=raw))

    def unit(self, row: tuple[Any, ...]) -> tuple[Unit, Blocks]:
        """Read a row of table votes; counts of shape (blocks, answers)."""
        input_id, stage, part, sigma, start, stop, packed, seal = row
        stream = self._streams.get((stage, part, sigma))
        if stream is None:
            raise LedgerError(f"{_placed(row)}: this run has no such stream")
        try:
            unit = Unit(input_id, stream, start, stop)
            answers = self._answers(unit)
            size = unit.blocks * answers
            raw = zlib.decompressobj().decompress(packed, size + 1)
        except (zlib.error, TypeError, UnusableVotes) as bad:
            raise LedgerError(f"{_placed(row)}: the counts cannot be read ({bad})") from bad
        if len(raw) != size or seal != self.seal("votes", *row[:6], raw=raw):
            raise LedgerError(f"{_placed(row)}: the counts or their address were changed: the seal does not match")
        counts = np.frombuffer(raw, dtype=np.uint8).reshape(unit.blocks, answers)
        return unit, counts

    def of_certificate(self, input_id: str, concluded: Concluded) -> tuple[object, ...]:
        """The row of table certificates."""
        certificate, seconds, units = concluded
        values = [v.value if isinstance(v, Outcome) else v for v in astuple(certificate)]
        content = (input_id, *values, float(seconds), units)
        if any(v != v for v in content):  # SQLite would make NULL of it
            raise LedgerError(f"input {input_id}: a certificate must not hold NaN: {certificate!r}, {seconds} seconds")
        return (*content, self.seal("certificates", *content))

    def certificate(self, row: tuple[Any, ...]) -> tuple[str, Concluded]:
        """Read a row of table certificates."""
        *content, seal = row
        if seal != self.seal("certificates", *content):
            raise LedgerError(f"input {row[0]}: its certificate was changed: the seal does not match")
        input_id, *values, seconds, units = content
        held = dict(zip(CERTIFICATE_FIELDS, values, strict=True))
        held["outcome"] = Outcome(held["outcome"])
        return input_id, Concluded(Certificate(**held), seconds, units)

    def _answers(self, unit: Unit) -> int:
        planned = self._plan.votes(unit.stream.part)
        if unit.stream not in self.answers or unit.start % BLOCK or not 0 <= unit.start < unit.stop <= planned:
            raise UnusableVotes(f"{named(unit)}: no such votes are planned in this run")
        return self.answers[unit.stream]


def named(unit: Unit) -> str:
    """How messages call a unit."""
    stream = unit.stream
    return _placed((unit.input_id, stream.stage, stream.part, stream.sigma, unit.start, unit.stop))


def _placed(row: tuple[Any, ...]) -> str:
    input_id, stage, part, sigma, start, stop = row[:6]
    return f"input {input_id}, {part} votes {start} to {stop} of {stage} at sigma {sigma}"


def fills_blocks(unit: Unit, counts: NDArray[Any]) -> bool:
    """Whether the counts of every block sum to its votes."""
    return bool(counts.sum(axis=1).tolist() == _block_sizes(unit.votes))


@lru_cache
def _block_sizes(votes: int) -> list[int]:
    return [min(BLOCK, votes - start) for start in range(0, votes, BLOCK)]
