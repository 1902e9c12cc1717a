"""Spare votes: cast before they are asked for, in the room that a batch has left.

Enters: the runs of a batch that is not full. Leaves: runs to fill it with, and later the answers to them. An adaptive
run on few inputs asks for a hundred votes at a time, which is less than a batch, and then for those that follow. Votes
are addressed, so they are the same whenever they are cast; nobody sees one that is never asked for.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dualrs.sampling.lanes import Ballot, Order, Run
from dualrs.sampling.work import Request
from dualrs.votes import Stream, Unit

Answers = NDArray[np.int64]


class Spare:
    """The votes that were cast ahead, by who cast them."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, str, Stream], tuple[int, Answers]] = {}  # from which vote on

    def fill(self, runs: Sequence[Run], room: int) -> list[Run]:
        """Runs of votes that may follow those of a batch, for so many rows at most."""
        found: list[Run] = []
        if not room:  # nearly always
            return found
        for order in (run.order for run in runs if run.last == run.order.unit.stop):
            coming = [Request(b.request.following, b.request.member) for b in order.ballots if b.request.following]
            ranges = {(request.unit.start + len(self._here(request)), request.unit.stop) for request in coming}
            if len(coming) < len(order.ballots) or len(ranges) > 1:
                continue
            ((first, stop),) = ranges
            if (last := min(stop, first + room)) > first:
                copies = replace(order.unit.stream, part=coming[0].unit.stream.part)
                ballots = [Ballot(request, np.empty((0, 0), dtype=np.int64)) for request in coming]
                found.append(Run(Order(Unit(order.unit.input_id, copies, first, stop), ballots), first, last))
                room -= last - first
        return found

    def keep(self, run: Run, answers: Sequence[Answers]) -> None:
        """Take the answers of each network to a run that `fill` made, as far as none is missing (negative)."""
        missing = np.flatnonzero(np.min(answers, axis=0) < 0)
        for ballot, given in zip(run.order.ballots, answers, strict=True):
            here = [self._here(ballot.request), given[: missing[0]] if len(missing) else given]
            self._put(ballot.request, ballot.request.unit.start, np.concatenate(here))

    def take(self, order: Order) -> None:
        """Count the first votes of an order, as many as are here for each of its ballots."""
        here = [self._here(ballot.request) for ballot in order.ballots]
        votes = min(order.unit.votes, *map(len, here))
        if votes:
            for ballot, given in zip(order.ballots, here, strict=True):
                ballot.add(0, given[:votes])
                self._put(ballot.request, order.unit.start + votes, given[votes:])
            order.asked = order.counted = votes

    def _here(self, request: Request) -> Answers:
        """The first votes of a request."""
        start, given = self._kept.get(_key(request), (0, np.empty(0, dtype=np.int64)))
        return given[max(request.unit.start - start, 0) :] if start <= request.unit.start else given[:0]

    def _put(self, request: Request, start: int, given: Answers) -> None:
        self._kept[_key(request)] = start, given


def _key(request: Request) -> tuple[int, str, Stream]:
    return request.member, request.unit.input_id, request.unit.stream
