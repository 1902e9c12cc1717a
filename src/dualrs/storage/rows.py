"""The rows of a ledger: how inputs, votes and certificates are sealed, packed, and read back with suspicion.

Enters: what is to be recorded, or a row as SQLite gives it. Leaves: a row, or what it holds; a row which does
not match its seal, or could not have been written by a run of this header, is a LedgerError naming the input.

A seal is a short digest over the fingerprint of the header, the name of the table and the content of the row.
It finds damage and edits; it is no signature, as anyone can compute it.
"""

import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualrs.certificates import Certificate, Outcome
from dualrs.errors import LedgerError, UnusableVotes
from dualrs.storage.blocks import Blocks, packing_of
from dualrs.storage.header import Header
from dualrs.votes import BLOCK, Counts, Stream, Unit

Place = tuple[str, Stream, int]  # input and stream of some votes, and the last look that they do not come before

CERTIFICATE_FIELDS = tuple(f.name for f in fields(Certificate) if f.compare)  # the claim, and why

OPEN, DONE = "open", "done"  # states of a run: whether an input of it lacks votes or a certificate

_UNPLANNED = "no such votes are planned in this run"

# What a list of inputs may unpack to, so that no file makes its reader run out of memory or time: far more than any
# list does.
_FREE, _RATIO = 1 << 26, 200  # bytes in any case, and bytes for each packed one
_PIECE = 1 << 14  # packed bytes between one look at this and the next: a flood is left where it begins

_KINDS = (str, int, float, float, float, float, str, str, float, int)  # in a row of certificates, before the seal

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
        self._header, self._fingerprint = header, fingerprint
        self._base = hashlib.blake2b(fingerprint.encode(), digest_size=8)
        self._plan = header.plan
        self.answers: Mapping[Stream, int] = header.scheme.streams
        self._packing = {stream: packing_of(count, header.format) for stream, count in self.answers.items()}
        self._streams = {(s.stage.value, s.part.value, s.sigma): s for s in self.answers}
        # What many rows have in common is worked out once. Typed, as a seal tells 1 from 1.0.
        self._known = lru_cache(maxsize=4096, typed=True)(self._look_up)
        self._begun = lru_cache(typed=True)(self._begin_seal)

    @property
    def page_size(self) -> int:
        """How many bytes a page of the ledger should have."""
        return max(packing.PAGE for packing in self._packing.values())

    def seal(self, table: str, *content: object, raw: bytes = b"") -> str:
        """Digest of a row: of its content as a JSON list, followed by the bytes that JSON cannot hold."""
        digest = self._base.copy()
        digest.update(_encode([table, *content]).encode())
        digest.update(raw)
        return digest.hexdigest()

    def _begin_seal(self, *address: object) -> hashlib.blake2b:
        """The digest of a row of table votes up to its stream, which all units of the stream on an input share."""
        digest = self._base.copy()
        digest.update(_encode(["votes", *address])[:-1].encode())
        return digest

    def _look_up(self, stage: str, part: str, sigma: float, start: int, stop: int) -> tuple[Stream, int, int, bytes]:
        """The stream of a unit, the look it comes after, the most bytes of its counts, the end of its seal's list."""
        stream = self._streams.get((stage, part, sigma))
        if stream is None:
            raise UnusableVotes("this run has no such stream")
        unit = Unit("", stream, start, stop)
        if not self._planned(unit):
            raise UnusableVotes(_UNPLANNED)
        most = self._packing[stream].most(unit)
        return stream, self._plan.step_before(unit), most, f",{_encode([start, stop])[1:]}".encode()

    def of_header(self, inputs: Sequence[InputRow], state: str) -> tuple[str, str, bytes, str, str]:
        """The row of table header."""
        text, raw = self._header.to_json(), _encode(inputs).encode()
        return self._fingerprint, text, _packed(raw), state, self.seal("header", text, state, raw=raw)

    def header_damage(self, row: tuple[Any, ...]) -> str | None:
        """What is wrong with a row of table header, if anything."""
        _, text, *listing, seal = row
        if self._header.fingerprint != self._fingerprint:
            return "header: a field that decides votes or certificates was changed after the run began"
        if not listing:  # format 1
            if seal != self.seal("header", text):
                return "header: a field (versions, command, created) was changed after the run began"
            return None
        try:
            raw = _unpacked(listing[0])
        except (zlib.error, TypeError):
            raw = b""
        if seal != self.seal("header", text, listing[1], raw=raw):
            return "header: a remark (versions, command, created), the list of inputs or the state was changed by hand"
        return None

    def listed(self, packed: bytes) -> list[InputRow]:
        """The inputs that an undamaged row of table header lists."""
        try:
            rows = json.loads(_unpacked(packed))
            if not isinstance(rows, list) or not all(isinstance(row, list) and _is_input(row) for row in rows):
                raise ValueError("not all of it are ids with a position and a label")
            "".join(row[0] for row in rows).encode()  # JSON can spell what is no text
        except (zlib.error, TypeError, ValueError, RecursionError) as bad:
            raise LedgerError(f"header: the list of inputs is not one: {bad}") from bad
        return [InputRow(*row) for row in rows]

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
        if not _is_input(content):
            raise LedgerError(f"input {row[0]}: its position ({row[1]}) or its label ({row[2]}) is not a whole number")
        return InputRow(*content)

    def of_unit(self, unit: Unit, counts: Counts | Blocks) -> tuple[object, ...]:
        """The row of table votes; refuses counts which are not the votes that the unit says."""
        if not self._planned(unit):
            raise UnusableVotes(f"{named(unit)}: {_UNPLANNED}")
        answers = self.answers[unit.stream]
        table: NDArray[Any] = np.asarray(counts)
        if table.shape != (unit.blocks, answers) or table.dtype.kind not in "iu":
            raise UnusableVotes(
                f"{named(unit)}: counts must be integers of shape {(unit.blocks, answers)}, "
                f"got {table.dtype} {table.shape}"
            )
        if table.min() < 0 or not fills_blocks(unit, table):
            raise UnusableVotes(f"{named(unit)}: the counts of a block do not sum to its votes")
        raw = self._packing[unit.stream].packed(table)
        address = (unit.input_id, unit.stream.stage.value, unit.stream.part.value, unit.stream.sigma)
        content = (*address, unit.start, unit.stop)
        return (*content, zlib.compress(raw, 1), self.seal("votes", *content, raw=raw))

    def unit(self, row: tuple[Any, ...]) -> tuple[Unit, Blocks]:
        """Read a row of table votes; counts of shape (blocks, answers)."""
        (input_id, stream, _), raw = self.counts(row)
        unit = Unit(input_id, stream, row[4], row[5])
        try:
            return unit, self._packing[stream].table(raw, unit)
        except UnusableVotes as bad:
            raise LedgerError(f"{_placed(row)}: the counts cannot be read ({bad})") from bad

    def counts(self, row: tuple[Any, ...]) -> tuple[Place, bytes]:
        """Read a row of table votes as one of many: where it belongs, and its counts as bytes; see `summed`."""
        input_id, stage, part, sigma, start, stop, packed, seal = row
        try:
            stream, look, most, rest = self._known(stage, part, sigma, start, stop)
            raw = zlib.decompressobj().decompress(packed, most + 1)
        except (zlib.error, TypeError, OverflowError, UnusableVotes) as bad:
            raise LedgerError(f"{_placed(row)}: the counts cannot be read ({bad})") from bad
        digest = self._begun(input_id, stage, part, sigma).copy()
        digest.update(rest)
        digest.update(raw)
        if not self._packing[stream].whole(raw, most) or seal != digest.hexdigest():
            raise LedgerError(f"{_placed(row)}: the counts or their address were changed: the seal does not match")
        return (input_id, stream, look), raw

    def summed(self, stream: Stream, raws: Iterable[bytes]) -> Counts:
        """The counts of units of a stream, from their bytes, added up; shape (answers,)."""
        return self._packing[stream].summed(b"".join(raws))

    def of_certificate(self, input_id: str, concluded: Concluded) -> tuple[object, ...]:
        """The row of table certificates."""
        certificate, seconds, units = concluded
        held = (getattr(certificate, name) for name in CERTIFICATE_FIELDS)
        values = [v.value if isinstance(v, Outcome) else v for v in held]
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
        if tuple(map(type, content)) != _KINDS or held["outcome"] not in list(Outcome):
            raise LedgerError(f"input {row[0]}: its certificate holds what no certificate does: {held}")
        held["outcome"] = Outcome(held["outcome"])
        return input_id, Concluded(Certificate(**held, seed=self._header.seed), seconds, units)

    def _planned(self, unit: Unit) -> bool:
        most = self._plan.steps_of(unit.stream)[-1]
        return unit.stream in self.answers and not unit.start % BLOCK and 0 <= unit.start < unit.stop <= most


def _packed(raw: bytes) -> bytes:
    """A list of inputs in few bytes, or as it is where the reader would refuse those."""
    packed = zlib.compress(raw)
    try:
        if len(raw) > _FREE:
            _unpacked(packed)
    except zlib.error:
        return zlib.compress(raw, 0)
    return packed


def _unpacked(packed: bytes) -> bytes:
    """A packed list of inputs, if it is whole and, up to any place in it, of a size that a list may have."""
    unpacking, pieces, most = zlib.decompressobj(), [], _FREE
    for start in range(0, len(packed), _PIECE):
        piece = packed[start : start + _PIECE]
        most += _RATIO * len(piece)
        pieces.append(unpacking.decompress(piece, most))
        most -= len(pieces[-1])
        if unpacking.unconsumed_tail:
            raise zlib.error("too long")
        if unpacking.eof:
            return b"".join(pieces)
    raise zlib.error("cut short")


def _is_input(row: Sequence[Any]) -> bool:
    """Whether values are an id, a position and a label, of the kinds and sizes that `Ledger.add_inputs` writes."""
    if len(row) != 3 or type(row[0]) is not str:
        return False
    _, position, label = row
    is_class = type(label) is int and 0 <= label < 2**63
    return type(position) is int and abs(position) < 2**63 and (label is None or is_class)


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
