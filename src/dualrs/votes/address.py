"""Address: where votes belong. Those on one input form streams, cut into units: what is asked for, and kept, together.

A vote is the answer of a network to one noisy copy of an input. Its *stream* is a stage (router, class), a part
(selection, estimation) and a sigma; blocks of `BLOCK` votes share one address in the noise. A *unit* is a run of blocks
of one stream on one input. How many votes a stream gets is fixed by a *plan* before any is drawn.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dualrs.errors import BadSetting

BLOCK = 100  # votes that share one address in the noise stream
UNIT = 10 * BLOCK  # votes that are asked for, and kept, together; no result depends on it


class Stage(StrEnum):
    """Which of the two smoothed models votes."""

    ROUTER = "router"
    CLASS = "class"


class Purpose(StrEnum):
    """What a run draws noise for.

    Each purpose has noise of its own: what was learnt from votes on one kind has seen none of another, whatever the
    seed.
    """

    LABEL = "label"
    ASSIGN = "assign"
    CERTIFY = "certify"
    PREDICT = "predict"
    TRIAL = "trial"  # of networks, before a run: no vote on it counts


class Part(StrEnum):
    """What the votes are for. No selection vote of either stage enters any bound of either stage."""

    SELECTION = "selection"
    ESTIMATION = "estimation"


@dataclass(frozen=True, order=True)
class Stream:
    """The address of a sequence of votes on one input."""

    stage: Stage
    part: Part
    sigma: float


def plain(stage: Stage) -> Stream:
    """The answer of a network to the input itself, without noise."""
    return Stream(stage, Part.SELECTION, 0.0)


PLAIN = plain(Stage.CLASS)


@dataclass(frozen=True, order=True)
class Unit:
    """Votes number ``start`` to ``stop`` (exclusive) of a stream on one input; starts at a block."""

    input_id: str
    stream: Stream
    start: int
    stop: int

    @property
    def votes(self) -> int:
        """How many votes the unit holds."""
        return self.stop - self.start

    @property
    def blocks(self) -> int:
        """How many blocks the unit touches; the last may be cut short."""
        return -(-self.votes // BLOCK)


@dataclass(frozen=True)
class SamplingPlan:
    """How many votes a stream gets, fixed before any is drawn: a bound is valid for the plan it was made for.

    ``looks`` are the numbers of estimation votes at which sampling may stop, the last of them ``n``; without them it
    goes on to n.
    """

    n0: int
    n: int
    looks: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in ("n", "n0"):
            if not isinstance(getattr(self, name), int | np.integer):
                raise BadSetting(f"{name} must be a whole number, got {getattr(self, name)!r}")
        if self.n < 1:
            raise BadSetting(f"n must be at least 1, got {self.n}")
        if self.n0 < 0:
            raise BadSetting(f"n0 must not be negative, got {self.n0}")
        looks = tuple(self.looks) or (self.n,)
        if looks[0] < 1 or looks[-1] != self.n or any(a >= b or a % BLOCK for a, b in pairwise(looks)):
            raise BadSetting(f"looks must rise in whole blocks of {BLOCK} votes and end at n = {self.n}, got {looks}")
        object.__setattr__(self, "looks", looks)

    @property
    def adaptive(self) -> bool:
        """Whether sampling may stop before n."""
        return len(self.looks) > 1

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Estimation votes from each look to the next."""
        return np.diff(self.looks, prepend=0)

    def votes(self, part: Part) -> int:
        """Votes planned at most for one part of a stream."""
        return self.n0 if part is Part.SELECTION else self.n

    def steps(self, part: Part) -> tuple[int, ...]:
        """The numbers of votes at which one part of a stream may stop."""
        return (self.n0,) if part is Part.SELECTION else self.looks

    def steps_of(self, stream: Stream) -> tuple[int, ...]:
        """The numbers of votes at which a stream may stop: one without noise, as all would be the same."""
        return self.steps(stream.part) if stream.sigma else (1,)

    def step_before(self, unit: Unit) -> int:
        """The last step that a unit does not come before, or 0: where the counts between two looks begin."""
        steps = self.steps_of(unit.stream)
        place = bisect_right(steps, unit.start)
        return steps[place - 1] if place else 0

    def units(self, input_id: str, stream: Stream, upto: int | None = None) -> Iterator[Unit]:
        """Cut the planned votes of a stream into units, those up to a look if one is given; no unit crosses a look."""
        start = 0
        for stop in self.steps_of(stream):
            if upto is not None and stop > upto:
                return
            for begin in range(start, stop, UNIT):
                yield Unit(input_id, stream, begin, min(begin + UNIT, stop))
            start = stop
