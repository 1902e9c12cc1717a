"""What travels between the driver and its workers: requests out, counts back, as a few flat arrays each.

Enters: requests and the images of their inputs; at the worker, counts. Leaves: the same on the other side.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualrs.data.images import Pixels
from dualrs.sampling.noise import NoiseSource
from dualrs.sampling.work import Request, Slot, slot_of
from dualrs.votes import Counts, Stream, Unit

Answers = Mapping[Slot, int]  # how many different answers the network of each stage and sigma has
Panel = tuple[int, ...]  # whose networks the members are, by the numbers of executors


class Parcel(NamedTuple):
    """Requests about some inputs, on their way to a worker."""

    source: NoiseSource
    panel: Panel
    ids: list[str]
    images: NDArray[np.uint8]  # (inputs, channels, height, width)
    streams: list[Stream]
    requests: NDArray[np.int64]  # (requests, 5): which input, which stream, start, stop, member

    @classmethod
    def pack(
        cls, requests: Sequence[Request], pixels: Callable[[str], Pixels], source: NoiseSource, panel: Panel = (0,)
    ) -> "Parcel":
        """Requests in their order, each image once."""
        ids = {name: k for k, name in enumerate(dict.fromkeys(u.input_id for u, *_ in requests))}
        streams = {stream: k for k, stream in enumerate(dict.fromkeys(u.stream for u, *_ in requests))}
        table = np.array([(ids[u.input_id], streams[u.stream], u.start, u.stop, member) for u, member, _ in requests])
        return cls(source, panel, [*ids], np.stack([pixels(name) for name in ids]), [*streams], table)

    def unpack(self) -> list[Request]:
        """The requests, in the order in which they were packed."""
        return [
            Request(Unit(self.ids[i], self.streams[s], start, stop), member)
            for i, s, start, stop, member in self.requests.tolist()
        ]


class Counted(NamedTuple):
    """The counts of a parcel's units, on their way back."""

    counts: NDArray[np.uint8]  # flat: (blocks, answers) of every unit that was counted, one after the other
    seconds: NDArray[np.float64]  # what the votes of each unit took; NaN where a unit was not counted
    failures: dict[str, str]  # inputs that cannot be counted, and why
    votes_per_second: float  # of this worker lately

    def unpack(self, requests: Sequence[Request], answers: Sequence[Answers]) -> list[tuple[Request, Counts, float]]:
        """Requests whose units were counted, with the counts, shape (blocks, answers of the member), and seconds."""
        found, place = [], 0
        for request, seconds in zip(requests, self.seconds.tolist(), strict=True):
            if seconds != seconds:
                continue
            stream, of_member = request.unit.stream, answers[request.member]
            shape = (request.unit.blocks, of_member[slot_of(stream.stage, stream.sigma, of_member)])
            end = place + shape[0] * shape[1]
            found.append((request, self.counts[place:end].astype(np.int64).reshape(shape), seconds))
            place = end
        return found


class Format(NamedTuple):
    """How a worker runs the networks of one model."""

    batch_size: int | None
    dtype: str
    compile: bool


class Settings(NamedTuple):
    """How the networks of one model are to be tried; with a ``batch_size``, at this very one, which must fit."""

    number: int
    batch_size: int | None
    noise: str
    image: Pixels


class Ready(NamedTuple):
    """What a worker says of the networks of one model when it has tried them."""

    batch_size: int
    answers: Answers
    identity: dict[Slot, str]  # what the networks answer to trial copies of that image: every worker's must be equal
    warnings: list[Warning]
    host: str
