"""A worker: a process, somewhere, that holds the networks and counts what it is sent.

Enters: parcels of requests. Leaves: their counts. Parcels that wait are packed into the same batches, so that these
stay full from one parcel to the next; an input whose logits are not finite is found by halving, and the others go on.
"""

import math
import platform
import time
import warnings
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
import torch
from numpy.typing import NDArray

from dualrs.data.images import Pixels
from dualrs.errors import NonFiniteLogits
from dualrs.models.hardware import keep_memory
from dualrs.sampling.counting import count
from dualrs.sampling.engine import Engine
from dualrs.sampling.noise import NoiseSource
from dualrs.sampling.work import Request, Slot, Work
from dualrs.scale.networks import unpack_networks
from dualrs.scale.parcels import Counted, Format, Panel, Parcel, Ready, Settings
from dualrs.votes import Counts


class Voter:
    """Holds the networks of a run. Called from several threads of Ray; one thread of its own does all the work."""

    def __init__(self, networks: bytes, formats: list[Format], device: str, threads: int | None) -> None:
        self._packed, self._formats, self._device, self._threads = networks, formats, device, threads
        self._hand = ThreadPoolExecutor(1, thread_name_prefix="dualrs-voter")
        self._desk = _Desk()
        self._engines: list[Engine] = []

    def prepare(self, wanted: list[Settings]) -> list[Ready]:
        """Load the networks, and try those of some models."""
        return self._hand.submit(self._prepare, wanted).result()

    def identify(self, number: int, first: Pixels) -> dict[Slot, str]:
        """What the networks of one model answer to trial copies."""
        return self._hand.submit(lambda: self._engines[number].identify(first)).result()

    def vote(self, parcel: Parcel) -> Counted:
        """Count the units of a parcel, together with those of others that wait."""
        errand = _Errand(parcel)
        self._desk.waiting.append(errand)
        self._hand.submit(self._serve)
        return errand.counted.result()

    def _prepare(self, wanted: list[Settings]) -> list[Ready]:
        if not self._engines:
            keep_memory()
            if self._threads is not None:
                torch.set_num_threads(self._threads)
            networks = unpack_networks(self._packed)
            self._packed = b""
            self._engines = [
                Engine(models, device=self._device, **wanted._asdict())
                for models, wanted in zip(networks, self._formats, strict=True)
            ]
        return [self._try(settings) for settings in wanted]

    def _try(self, wanted: Settings) -> Ready:
        engine = self._engines[wanted.number]
        if wanted.batch_size is not None:
            engine.keep_shape(wanted.batch_size)
        engine.keep_noise(wanted.noise)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            engine.prepare(wanted.image)
        said = [w.message for w in caught if isinstance(w.message, Warning)]
        return Ready(engine.batch_size, engine.answers, engine.identify(wanted.image), said, platform.node())

    def _serve(self) -> None:
        """Work until no parcel waits. What fails for another reason than an input leaves nothing to go on with."""
        desk = self._desk
        try:
            while desk.open_again():
                try:
                    self._run(desk)
                except NonFiniteLogits as error:
                    self._blame(list(desk.begun), error)
        except BaseException as error:
            desk.give_up(error)

    def _run(self, work: Work) -> None:
        assert self._desk.source is not None, "parcels have one"
        count([self._engines[number] for number in self._desk.panel], work, self._desk.source)

    def _blame(self, suspects: list[str], error: NonFiniteLogits) -> None:
        """Find by halving which inputs fail by themselves; count the others."""
        if len(suspects) == 1:
            self._desk.fail(suspects[0], str(error))
            return
        middle = len(suspects) // 2
        for half in (suspects[:middle], suspects[middle:]):
            try:
                self._run(_Some(self._desk, half))
            except NonFiniteLogits as again:
                self._blame([name for name in half if name in self._desk.begun], again)


@dataclass(eq=False)
class _Errand:
    """A parcel under way."""

    parcel: Parcel
    counted: "Future[Counted]" = field(default_factory=Future)

    def __post_init__(self) -> None:
        self.requests = self.parcel.unpack()
        self._counts: list[NDArray[np.uint8] | None] = [None] * len(self.requests)
        self._seconds = np.full(len(self.requests), math.nan)
        self._failures: dict[str, str] = {}
        self._open = len(self.requests)

    @property
    def key(self) -> tuple[NoiseSource, Panel]:
        """Parcels that may be packed into the same batches have the same."""
        return self.parcel.source, self.parcel.panel

    def take(self, place: int, counts: Counts, seconds: float) -> bool:
        """Take in the counts of a unit; whether the parcel is done."""
        self._counts[place] = counts.astype(np.uint8).ravel()  # a block has at most 100 votes
        self._seconds[place] = seconds
        return self._close()

    def fail(self, place: int, reason: str) -> bool:
        """Give a unit up; whether the parcel is done."""
        self._failures[self.requests[place].unit.input_id] = reason
        return self._close()

    def _close(self) -> bool:
        self._open -= 1
        return not self._open

    def send(self, votes_per_second: float) -> None:
        """Hand the counts back."""
        counts = [c for c in self._counts if c is not None]
        flat = np.concatenate(counts) if counts else np.zeros(0, dtype=np.uint8)
        self.counted.set_result(Counted(flat, self._seconds, self._failures, votes_per_second))


@dataclass
class _Begun:
    """An input under way: where the counts of its open requests go."""

    pixels: Pixels
    requests: dict[Request, tuple[_Errand, int]] = field(default_factory=dict)


class _Desk:
    """The engine's `Work` at a worker: requests of parcels as they come in, and where their counts go."""

    def __init__(self) -> None:
        self.waiting: deque[_Errand] = deque()
        self.begun: dict[str, _Begun] = {}
        self.source: NoiseSource | None = None
        self.panel: Panel = ()
        self._began = 0.0  # when the present run of the engine did
        self._votes = 0  # that it has counted since
        self._dry = False
        self._next: deque[tuple[str, Pixels, list[tuple[Request, tuple[_Errand, int]]]]] = deque()

    def open_again(self) -> bool:
        """Make ready for another run of the engine; whether there is work for one."""
        self._dry, self._began, self._votes = False, time.perf_counter(), 0
        if self._next:  # the last run ended early
            return True
        if not self.waiting:
            return False
        self.source, self.panel = self.waiting[0].key
        return True

    def more(self) -> Sequence[Request] | None:
        if not self._next:
            # Once dry, this run of the engine ends: it must be told the same however often it asks.
            self._dry = self._dry or not self.waiting or self.waiting[0].key != (self.source, self.panel)
            if self._dry:
                return None
            self._unwrap(self.waiting.popleft())
        name, pixels, requests = self._next.popleft()
        self.begun.setdefault(name, _Begun(pixels)).requests.update(requests)
        return [request for request, _ in requests]

    def _unwrap(self, errand: _Errand) -> None:
        images = dict(zip(errand.parcel.ids, errand.parcel.images, strict=True))
        places = [(request, (errand, place)) for place, request in enumerate(errand.requests)]
        for name, requests in groupby(places, key=lambda placed: placed[0].unit.input_id):
            self._next.append((name, images[name], list(requests)))

    def pixels(self, input_id: str) -> Pixels:
        return self.begun[input_id].pixels

    def deliver(self, request: Request, counts: Counts, seconds: float) -> Sequence[Request]:
        flight = self.begun[request.unit.input_id]
        errand, place = flight.requests.pop(request)
        if not flight.requests:
            del self.begun[request.unit.input_id]
        self._votes += request.unit.votes
        if errand.take(place, counts, seconds):
            errand.send(self._pace)
        return ()

    def batch_done(self) -> None:
        pass

    def fail(self, input_id: str, reason: str) -> None:
        """Give an input up."""
        for errand, place in self.begun.pop(input_id).requests.values():
            if errand.fail(place, reason):
                errand.send(self._pace)

    @property
    def _pace(self) -> float:
        return self._votes / (time.perf_counter() - self._began)

    def give_up(self, error: BaseException) -> None:
        """Hand everything back with an error."""
        flights = [place for flight in self.begun.values() for place in flight.requests.values()]
        queued = [place for _, _, requests in self._next for _, place in requests]
        for errand in {*self.waiting, *(errand for errand, _ in (*flights, *queued))}:
            errand.counted.set_exception(error)
        for held in (self.waiting, self.begun, self._next):
            held.clear()


@dataclass
class _Some:
    """The open requests about some inputs of a desk, once more."""

    desk: _Desk
    names: list[str]

    def __post_init__(self) -> None:
        self._supply = iter([list(self.desk.begun[name].requests) for name in self.names])

    def more(self) -> Sequence[Request] | None:
        return next(self._supply, None)

    def pixels(self, input_id: str) -> Pixels:
        return self.desk.pixels(input_id)

    def deliver(self, request: Request, counts: Counts, seconds: float) -> Sequence[Request]:
        return self.desk.deliver(request, counts, seconds)

    def batch_done(self) -> None:
        pass
