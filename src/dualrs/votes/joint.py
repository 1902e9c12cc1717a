"""Joint: counts of classes together with how sure the network was, from which votes that may pass are derived.

A vote is a pair of a class and a bin of confidence: how many of the run's ``confidences`` its softmax probability
reached. Under a confidence, the votes below it are *passes*. A thousand classes and a few bins are thousands of pairs,
nearly all without a vote; so only those with votes are kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dualrs.errors import BadSetting, UnusableVotes
from dualrs.votes.address import Stream
from dualrs.votes.tally import Counts, Tally


def check_confidences(confidences: Sequence[float]) -> tuple[float, ...]:
    """The ends of bins, rising, without the 0 at which the first begins; refuses what is no probability."""
    found = tuple(float(c) for c in confidences)
    found = found[1:] if found[:1] == (0.0,) else found
    if any(not 0 < c < 1 for c in found) or any(a >= b for a, b in pairwise(found)):
        raise BadSetting(f"confidences are rising probabilities such as 0.3,0.4,0.5, got {list(confidences)}")
    return found


@dataclass(frozen=True, eq=False)
class Joint:
    """The pairs of class and bin that have votes: in which row, which pair, how many."""

    confidences: tuple[float, ...]
    classes: int
    rows: int
    row: NDArray[np.int64]
    pair: NDArray[np.int64]  # class * bins + bin
    count: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        tallies: Sequence[Tally],
        stream: Stream,
        classes: int,
        confidences: tuple[float, ...],
        steps: Sequence[int],
    ) -> "Joint":
        """The votes of a stream on some inputs, in a row for each input and step of the plan."""
        pairs = classes * (len(confidences) + 1)
        rows, found, counts = [], [], []
        for number, tally in enumerate(tallies):
            between = tally.between(stream, pairs, steps)
            step, pair = np.nonzero(between)
            rows.append(number * len(steps) + step)
            found.append(pair)
            counts.append(between[step, pair])
        none = [np.zeros(0, dtype=np.int64)]
        row, pair, count = (np.concatenate(parts or none) for parts in (rows, found, counts))
        return cls(confidences, classes, len(tallies) * len(steps), row, pair, count)

    def by_class(self) -> Counts:
        """Counts of classes, however sure; shape (rows, classes)."""
        return self._counted(self.pair // self._bins, self.classes)

    def passing(self, confidence: float) -> Counts:
        """Counts of classes where the network was at least so sure, and last of passes; shape (rows, classes + 1)."""
        if confidence and confidence not in self.confidences:
            known = ", ".join(f"{c:g}" for c in (0.0, *self.confidences))
            raise UnusableVotes(
                f"these votes tell whether a network was sure at the confidences {known}, and not at {confidence:g}"
            )
        reached = self.confidences.index(confidence) + 1 if confidence else 0
        answer, bin_ = np.divmod(self.pair, self._bins)
        return self._counted(np.where(bin_ >= reached, answer, self.classes), self.classes + 1)

    @property
    def _bins(self) -> int:
        return len(self.confidences) + 1

    def _counted(self, answer: NDArray[np.int64], answers: int) -> Counts:
        flat = np.bincount(self.row * answers + answer, weights=self.count, minlength=self.rows * answers)
        return flat.astype(np.int64).reshape(self.rows, answers)
