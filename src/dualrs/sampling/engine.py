"""The engine: packs requests for votes from many inputs, sigmas and stages into full batches.

Enters: a `Work` that names units of votes and takes in their counts. Leaves: the counts of each unit.

Requests for the same network wait in one lane (one per sigma if the network is told the sigma). A batch takes
what its lane holds, from as many inputs as needed; new inputs are begun only when no lane can fill a batch.
Every batch has one fixed shape, the last one padded, because kernels may round differently for another shape.
Noise is addressed (see `noise`), so votes do not depend on any of this. Threads draw it while the network runs on
an earlier batch. On the CPU no input is begun for the sake of that: those begun come to an end sooner.
"""

import hashlib
import time
import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from dualrs.data.images import LEVELS, Pixels
from dualrs.errors import BadModel, BadSetting, NonFiniteLogits, NotCompiled, OutOfMemory, first_line
from dualrs.models.compiled import compile_parts, is_compilers
from dualrs.models.denoise import answer_together
from dualrs.models.hardware import DTYPES, autocast, check_dtype, open_device
from dualrs.models.noisy import NoisyModel
from dualrs.sampling.batches import Ballot, Lane, NoiseRows, Order, Piece, Run, noisy_copies, pack
from dualrs.sampling.checks import check_behaviour, check_finite
from dualrs.sampling.identity import trial_batches
from dualrs.sampling.noise import NOISE, SHARED, Int16s, NoiseSource
from dualrs.votes import BLOCK, Counts, Part, Stage, Stream, Unit

BATCH_SIZE = 256
_AHEAD = 3  # batches that are packed, and their noise drawn, before the network wants them
_MOST_THREADS = 8  # that draw noise; fewer where torch has a smaller share of the cores

Slot = tuple[Stage, float]  # which network: of a stage, at a sigma
NetworkKey = tuple[int, float | None]
Lanes = dict[tuple[NetworkKey, ...], Lane]


class Work(Protocol):
    """What the engine works for: a supply of units, and a place for their counts."""

    def more(self) -> Sequence[Unit] | None:
        """The first units of another input; None when there is no further input, however often it is asked."""

    def pixels(self, input_id: str) -> Pixels:
        """The image of an input that was begun, shape (channels, height, width)."""

    def deliver(self, unit: Unit, counts: Counts, seconds: float) -> Sequence[Unit]:
        """Take the counts of a finished unit, shape (blocks, answers); return further units, if any."""

    def batch_done(self) -> None:
        """All units that a batch finished were delivered."""


class Engine:
    """Runs networks on noisy copies of images and counts their answers.

    ``models`` maps (stage, sigma) to the network that votes there. ``batch_size`` is halved at first use until the
    networks fit into memory, and is the shape of every batch from then on. With ``share``, an expert at the router's
    sigma votes on the router's own noisy copies, which are then drawn and denoised once for both. With ``compile``,
    torch compiles the networks in place.
    """

    def __init__(
        self,
        models: Mapping[Slot, NoisyModel],
        *,
        batch_size: int = BATCH_SIZE,
        device: str | torch.device | None = None,
        dtype: str = "float32",
        compile: bool = False,
        share: bool = True,
    ) -> None:
        if batch_size < 1:
            raise BadSetting(f"the batch size must be at least 1, got {batch_size}")
        self.models = dict(models)
        self.batch_size = batch_size
        self.dtype = check_dtype(dtype)
        routers = [sigma for stage, sigma in self.models if stage is Stage.ROUTER]
        self._shared = next((s for s in routers if share and (Stage.CLASS, s) in self.models), None)
        self._shape_is_fixed = False
        self.device = _choose_device(device, self.models.values())
        for model in self.models.values():
            model.module.to(self.device)
        self.compile = compile
        self._eager = False  # ignore what is compiled, as torch cannot do it here
        if compile:
            for module in {model.module for model in self.models.values()}:
                compile_parts(module)
        self.answers: dict[Slot, int] = {}

    @property
    def noise(self) -> str:
        """The name of the noise: its algorithm, and whether the stages share it."""
        return NOISE if self._shared is None else NOISE + SHARED

    def keep_shape(self, batch_size: int) -> None:
        """Take the batch size of a run that was begun earlier; it must fit."""
        self.batch_size = batch_size
        self._shape_is_fixed = True
        self.answers = {}

    def keep_noise(self, noise: str) -> None:
        """Share no copies if a run that was begun earlier does not."""
        if not noise.endswith(SHARED):
            self._shared = None

    def prepare(self, pixels: Pixels) -> None:
        """Preflight on one image, once: settle the batch size, learn the number of answers, refuse misuse."""
        if self.answers:
            return
        seen: dict[NetworkKey, int] = {}
        for (stage, sigma), model in self.models.items():
            key = _network_key(model, sigma)
            if key not in seen:
                seen[key] = self._fit(model, stage, sigma, pixels)
        answers = {slot: seen[_network_key(m, slot[1])] for slot, m in self.models.items()}
        classes = {a for (stage, _), a in answers.items() if stage is Stage.CLASS}
        if len(classes) > 1:
            raise BadModel(f"the experts have different numbers of classes: {sorted(classes)}")
        self.answers = answers

    def _fit(self, model: NoisyModel, stage: Stage, sigma: float, pixels: Pixels) -> int:
        while True:
            rows = noisy_copies(pixels, Stream(stage, Part.SELECTION, sigma), self.batch_size)
            try:
                with self._inference():
                    return check_behaviour(model, self._to_network(rows, pixels.shape), sigma, DTYPES[self.dtype])
            except (RuntimeError, MemoryError) as error:
                if self.compile and is_compilers(error):
                    self._do_without_compiler(model.name, error)
                    continue
                if not _is_out_of_memory(error):
                    raise
                if self._shape_is_fixed or self.batch_size == 1:
                    raise OutOfMemory(
                        f"the {model.name} does not fit into memory at the batch size {self.batch_size}; "
                        "free memory, or start a new run with a smaller batch size"
                    ) from error
            self.batch_size //= 2

    def identify(self, first: Pixels) -> dict[Slot, str]:
        """For each stage and sigma a hash of what its network answers to trial copies of fixed images and of one more.

        Equal for two networks that answer alike, whatever they are called. Logits that are not finite are an answer
        too: this is no vote.
        """
        found = {}
        for (stage, sigma), model in self.models.items():
            digest = hashlib.blake2b(digest_size=16)
            for rows, count in trial_batches(first, Stream(stage, Part.SELECTION, sigma), self.batch_size):
                with _within_memory(), self._inference():
                    logits = model(self._to_network(rows, first.shape), sigma)[:count]
                    answers = logits.argmax(dim=1).where(logits.isfinite().all(dim=1), -1)
                digest.update(answers.cpu().numpy().astype("<i8").tobytes())
            found[stage, sigma] = digest.hexdigest()
        return found

    def _do_without_compiler(self, name: str, error: Exception) -> None:
        self.compile, self._eager = False, True
        warnings.warn(
            NotCompiled(f"torch cannot compile the {name} here ({first_line(error)}); networks run as they are"),
            stacklevel=2,
        )

    def run(self, work: Work, source: NoiseSource, *others: "Engine") -> None:
        """Count every unit that the work names, until it names no more, on noise of one source.

        ``others`` are engines of further models, the members 1, 2, ... of units. Units that several of them want of the
        same noisy copies at the same time are voted on together: the copies are drawn, and denoised, once.
        """
        panel = (self, *others)
        for engine in panel:
            engine._demand_ready(self)
        lanes: Lanes = {}
        ahead: deque[tuple[Lane, list[Run], list[Piece]]] = deque()
        threads = min(_MOST_THREADS, torch.get_num_threads())

        with ThreadPoolExecutor(threads, thread_name_prefix="dualrs-noise") as pool:
            noise = NoiseRows(source, self.batch_size, pool)
            try:
                while True:
                    while len(ahead) < _AHEAD and (lane := self._next_lane(panel, lanes, work, bool(ahead))):
                        runs = pack(lane, self.batch_size)
                        images = [work.pixels(r.order.unit.input_id) for r in runs]
                        ahead.append((lane, runs, noise.order(runs, images)))
                    if not ahead:
                        return
                    lane, runs, pieces = ahead.popleft()
                    shape = work.pixels(runs[0].order.unit.input_id).shape
                    for order in self._vote(lane, runs, noise.fill(pieces), shape):
                        for ballot in order.ballots:
                            seconds = order.seconds / len(order.ballots)
                            _enqueue(panel, lanes, work.deliver(ballot.unit, ballot.counts, seconds))
                    work.batch_done()
            finally:
                pool.shutdown(cancel_futures=True)

    def _demand_ready(self, first: "Engine") -> None:
        """Refuse networks that cannot vote, or not beside those of the first engine."""
        for model in self.models.values():
            model.demand_eval()
        ours, theirs = (self.batch_size, self.dtype, self.device), (first.batch_size, first.dtype, first.device)
        if ours != theirs:
            raise BadSetting(
                "models that vote together need one batch size, precision and device; got "
                f"{' '.join(map(str, theirs))} and {' '.join(map(str, ours))}"
            )

    def _next_lane(self, panel: Sequence["Engine"], lanes: Lanes, work: Work, under_way: bool) -> Lane | None:
        """The lane to take the next batch from: one that fills it or, when no input is left, the fullest."""
        may_begin = not under_way or self.device.type != "cpu"
        while not (full := [lane for lane in lanes.values() if lane.waiting >= self.batch_size]):
            units = work.more() if may_begin else None
            if units is None:
                break
            _enqueue(panel, lanes, units)
        if not full and under_way:
            return None  # what is under way may bring more units
        waiting = full or [lane for lane in lanes.values() if lane.waiting]
        return max(waiting, key=lambda lane: lane.waiting, default=None)

    def noise_of(self, stream: Stream) -> Stream:
        """The stream whose noise a stream votes on: its own or, where they share, the router's."""
        return replace(stream, stage=Stage.ROUTER) if stream.sigma == self._shared else stream

    def _vote(self, lane: Lane, runs: list[Run], rows: Int16s, shape: tuple[int, ...]) -> list[Order]:
        """Run the lane's networks on a batch and count; return the orders that are complete."""
        began = time.perf_counter()
        try:
            with _within_memory(), self._inference():
                tables = answer_together(lane.models, self._to_network(rows, shape), lane.sigma)
                for model, logits in zip(lane.models, tables, strict=True):
                    check_finite(logits, model.name)
                answers = [logits.argmax(dim=1).cpu().numpy() for logits in tables]
        except NonFiniteLogits as error:
            asked = np.repeat([r.order.unit.input_id for r in runs], [r.last - r.first for r in runs])
            bad = ~torch.isfinite(torch.cat(tables, dim=1)).all(dim=1).cpu().numpy()[: len(asked)]
            raise NonFiniteLogits(f"{error}, of input {', '.join(sorted(set(asked[bad]))[:5])}") from error
        per_row = (time.perf_counter() - began) / sum(r.last - r.first for r in runs)
        row = 0
        for run in runs:
            order, votes = run.order, run.last - run.first
            blocks = (np.arange(run.first, run.last) - order.unit.start) // BLOCK
            for ballot, given in zip(order.ballots, answers, strict=True):
                counts = ballot.counts
                flat = blocks * counts.shape[1] + given[row : row + votes]
                counts += np.bincount(flat, minlength=counts.size).reshape(counts.shape)
            order.counted += votes
            order.seconds += votes * per_row
            row += votes
        return [r.order for r in runs if r.order.counted == r.order.unit.votes]

    def _to_network(self, rows: Int16s, shape: tuple[int, ...]) -> Tensor:
        """Integer pixels plus noise, (batch, pixels), as float images in [0, 1] units on the device."""
        return torch.from_numpy(rows).to(self.device).view(-1, *shape).float().div_(LEVELS)

    @contextmanager
    def _inference(self) -> Iterator[None]:
        """No gradients; reduced precision if asked for."""
        compiler = torch.compiler.set_stance("force_eager") if self._eager else nullcontext()
        with torch.inference_mode(), autocast(self.device, self.dtype), compiler:
            yield


def _enqueue(panel: Sequence[Engine], lanes: Lanes, units: Iterable[Unit]) -> None:
    """Put units into the lanes of their networks; those that are about the same noisy copies go together."""
    on_same_copies: dict[Unit, list[Unit]] = {}
    for unit in units:
        copies = replace(unit, stream=panel[unit.member].noise_of(unit.stream), member=0)
        on_same_copies.setdefault(copies, []).append(unit)
    for copies, together in on_same_copies.items():
        sigma = copies.stream.sigma
        together.sort(key=lambda unit: (unit.member, unit.stream))  # one lane, in whatever order they are asked for
        voting = [(panel[unit.member], (unit.stream.stage, sigma)) for unit in together]
        models = tuple(engine.models[slot] for engine, slot in voting)
        lane = lanes.setdefault(tuple(_network_key(model, sigma) for model in models), Lane(models, sigma))
        ballots = [
            Ballot(unit, np.zeros((unit.blocks, engine.answers[slot]), dtype=np.int64))
            for unit, (engine, slot) in zip(together, voting, strict=True)
        ]
        lane.orders.append(Order(copies, ballots))
        lane.waiting += copies.votes


def _network_key(model: NoisyModel, sigma: float) -> NetworkKey:
    return id(model.module), sigma if model.takes_sigma else None


def _choose_device(device: str | torch.device | None, models: Iterable[NoisyModel]) -> torch.device:
    if device is not None:
        return open_device(device)
    devices = {m.device for m in models}
    if len(devices) > 1:
        raise BadSetting(f"the networks are on different devices ({', '.join(map(str, devices))}); pass device=...")
    return devices.pop()


@contextmanager
def _within_memory() -> Iterator[None]:
    """Say in a sentence that memory ran out, after the networks had fitted."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not _is_out_of_memory(error):
            raise
        raise OutOfMemory(
            "memory ran out in the middle of a run; what was recorded is kept: free memory and run the same "
            "command again"
        ) from error


def _is_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or any(
        phrase in str(error) for phrase in ("out of memory", "can't allocate memory", "not enough memory")
    )
