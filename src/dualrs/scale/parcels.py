"""What travels between the driver and its workers: units out, counts back, as a few flat arrays each.

Enters: units and the images of their inputs; at the worker, counts. Leaves: the same on the other side.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualrs.data.images import Pixels
from dualrs.sampling.engine import Slot
from dualrs.sampling.noise import NoiseSource
from dualrs.votes import Counts, Stream, Unit

Answers = Mapping[Slot, int]  # how many different answers the network of each stage and sigma has


class Parcel(NamedTuple):
    """Units on some inputs, on their way to a worker."""

    source: NoiseSource
    panel: tuple[int, ...]  # whose networks the members of units are
    ids: list[str]
    images: NDArray[np.uint8]  # (inputs, channels, height, width)
    streams: list[Stream]
    units: NDArray[np.int64]  # (units, 5): which input, which stream, start, stop, member

    @classmethod
    def pack(
        cls,
        units: Sequence[Unit],
        pixels: Callable[[str], Pixels],
        source: NoiseSource,
        panel: tuple[int, ...] = (0,),
    ) -> "Parcel":
        """Units in their order, each image once."""
        ids = {name: k for k, name in enumerate(dict.fromkeys(u.input_id for u in units))}
        streams = {stream: k for k, stream in enumerate(dict.fromkeys(u.stream for u in units))}
        table = np.array([(ids[u.input_id], streams[u.stream], u.start, u.stop, u.member) for u in units])
        return cls(source, panel, [*ids], np.stack([pixels(name) for name in ids]), [*streams], table)

    def unpack(self) -> list[Unit]:
        """The units, in the order in which they were packed."""
        return [Unit(self.ids[i], self.streams[s], *numbers) for i, s, *numbers in self.units.tolist()]


class Counted(NamedTuple):
    """The counts of a parcel's units, on their way back."""

    counts: NDArray[np.uint8]  # flat: (blocks, answers) of every unit that was counted, one after the other
    seconds: NDArray[np.float64]  # what the votes of each unit took; NaN where a unit was not counted
    failures: dict[str, str]  # inputs that cannot be counted, and why
    votes_per_second: float  # of this worker lately

    def unpack(self, units: Sequence[Unit], answers: Sequence[Answers]) -> list[tuple[Unit, Counts, float]]:
        """Units that were counted, with their counts, shape (blocks, answers of their member), and seconds."""
        found, place = [], 0
        for unit, seconds in zip(units, self.seconds.tolist(), strict=True):
            if seconds != seconds:
                continue
            shape = (unit.blocks, answers[unit.member][unit.stream.stage, unit.stream.sigma])
            end = place + shape[0] * shape[1]
            found.append((unit, self.counts[place:end].astype(np.int64).reshape(shape), seconds))
            place = end
        return found


class Format(NamedTuple):
    """How a worker runs the networks of one model."""

    dtype: str
    compile: bool


class Settings(NamedTuple):
    """How the networks of one model are to be tried; with ``keep``, at this very batch size, which must fit."""

    number: int
    batch_size: int
    keep: bool
    noise: str
    image: Pixels


class Ready(NamedTuple):
    """What a worker says of the networks of one model when it has tried them."""

    batch_size: int
    answers: Answers
    identity: dict[Slot, str]  # what the networks answer to trial copies of that image: every worker's must be equal
    warnings: list[Warning]
    host: str
