"""Blocks: how the counts of a unit of votes become bytes, and again counts.

A unit is a table of (blocks, answers), and no block has more than 100 votes. Where answers are few every count is a
byte. A thousand classes in five bins of confidence are five thousand answers, nearly all without a vote: then only the
counts that are not zero are kept, each with its place.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualrs.errors import UnusableVotes
from dualrs.votes import Counts, Unit

Blocks = NDArray[np.uint8]

FEW = 256  # answers up to which every count is kept


class Dense:
    """Every count is a byte.

    `PAGE` is how many bytes a page of a ledger should have for such counts: SQLite gives a row that is larger than a
    quarter of a page another page of its own, however little is on it.

    Of each way to keep the counts of units, with so many different ``answers``: `packed` makes the bytes of a table of
    counts, and `table` the table of bytes; `most` is how many bytes a unit may have, `whole` whether these may be those
    of a unit that has so many at most, and `summed` adds up the units in them, shape (answers,).
    """

    PAGE = 4096

    def __init__(self, answers: int) -> None:
        self.answers = answers

    def packed(self, table: NDArray[Any]) -> bytes:
        """Block after block."""
        return table.astype(np.uint8).tobytes()

    def most(self, unit: Unit) -> int:
        """One for each block and answer."""
        return unit.blocks * self.answers

    def whole(self, raw: bytes, most: int) -> bool:
        """Exactly so many."""
        return len(raw) == most

    def table(self, raw: bytes, unit: Unit) -> Blocks:
        """As they are."""
        return np.frombuffer(raw, dtype=np.uint8).reshape(unit.blocks, self.answers)

    def summed(self, raw: bytes) -> Counts:
        """Over blocks."""
        counts = np.frombuffer(raw, dtype=np.uint8).reshape(-1, self.answers)
        return np.asarray(counts.sum(axis=0, dtype=np.int64))


class Sparse:
    """The counts that are not zero, each with its place in the table."""

    PAGE = 8192  # a thousand votes, nearly each for another answer, are packed into 1,900 bytes
    _ENTRY = np.dtype([("place", "<u4"), ("count", "u1")])

    def __init__(self, answers: int) -> None:
        self.answers = answers

    def packed(self, table: NDArray[Any]) -> bytes:
        """In the order of places."""
        places = np.flatnonzero(table)
        entries = np.empty(len(places), dtype=self._ENTRY)
        entries["place"], entries["count"] = places, table.reshape(-1)[places]
        return entries.tobytes()

    def most(self, unit: Unit) -> int:
        """As many entries as there are votes."""
        return unit.votes * self._ENTRY.itemsize

    def whole(self, raw: bytes, most: int) -> bool:
        """Some entries, and no part of one."""
        return len(raw) <= most and not len(raw) % self._ENTRY.itemsize

    def table(self, raw: bytes, unit: Unit) -> Blocks:
        """Zeros elsewhere."""
        entries = np.frombuffer(raw, dtype=self._ENTRY)
        made = np.zeros(unit.blocks * self.answers, dtype=np.uint8)
        if len(entries) and entries["place"].max() >= len(made):
            raise UnusableVotes("a count has a place beyond the last answer")
        made[entries["place"]] = entries["count"]
        return made.reshape(unit.blocks, self.answers)

    def summed(self, raw: bytes) -> Counts:
        """By answer, whatever the block."""
        entries = np.frombuffer(raw, dtype=self._ENTRY)
        found = np.bincount(entries["place"] % self.answers, weights=entries["count"], minlength=self.answers)
        return found.astype(np.int64)


Packing = Dense | Sparse


def packing_of(answers: int, format_: int) -> Packing:
    """How a ledger of some format keeps counts of so many answers; format 1 kept every count."""
    return Dense(answers) if answers <= FEW or format_ == 1 else Sparse(answers)
