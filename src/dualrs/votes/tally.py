"""Tally: the votes on one input so far, and how whoever wants more of them asks for it.

Enters: the counts of units. Leaves: sums over a stream, or from look to look.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dualrs.votes.address import Stream, Unit

Counts = NDArray[np.int64]


@dataclass
class Tally:
    """Per stream, by the vote number at which they begin, the summed counts of units, each of shape (answers,)."""

    counts: dict[Stream, dict[int, Counts]] = field(default_factory=dict)

    def add(self, unit: Unit, counts: Counts) -> None:
        """Take in the block counts of a unit, shape (blocks, answers)."""
        self.counts.setdefault(unit.stream, {})[unit.start] = counts.sum(axis=0, dtype=np.int64)

    def put(self, stream: Stream, start: int, counts: Counts) -> None:
        """Add counts, shape (answers,), to those of the votes from ``start`` on."""
        parts = self.counts.setdefault(stream, {})
        parts[start] = parts[start] + counts if start in parts else counts

    def holds(self, unit: Unit) -> bool:
        """Whether the votes of a unit are here."""
        return unit.start in self.counts.get(unit.stream, {})

    def total(self, stream: Stream, answers: int) -> Counts:
        """Sum of the counts of a stream, shape (answers,); zeros where nothing was sampled."""
        return sum(self.counts.get(stream, {}).values(), start=np.zeros(answers, dtype=np.int64))

    def between(self, stream: Stream, answers: int, looks: Sequence[int]) -> Counts:
        """Counts from each look to the next, shape (looks, answers); zeros where nothing was sampled."""
        found = np.zeros((len(looks), answers), dtype=np.int64)
        for start, counts in self.counts.get(stream, {}).items():
            found[bisect_right(looks, start)] += counts
        return found

    def up_to(self, asked: Mapping[Stream, int]) -> "Tally":
        """The votes asked for so far: a run that was killed may have left more, some of what it had asked for next."""
        held = self.counts
        return Tally(
            {s: {start: c for start, c in held.get(s, {}).items() if start < upto} for s, upto in asked.items()}
        )


Wanted = Iterator[Mapping[Stream, int]]  # streams, and how many votes of each are wanted in all
Policy = Callable[[Tally], Wanted]  # yields what it wants next, and is resumed when that is in the tally it was given
