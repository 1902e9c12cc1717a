"""Workers: the engine's place taken by processes on this machine or on many, which Ray starts and watches.

Enters: engines, whose networks are sent to every worker once, and a `Work`. Leaves: the counts of its units, those
of one process. The driver keeps the policy and the ledger; workers only vote. Noise is addressed and all batches have
one shape, so no vote depends on who counted it, in which order, or how often a worker was lost before.

Every worker has a few tasks at a time, each of about a second: the next is there when one is done, and a lost worker
costs little. Its tasks are given to others, and another worker is started in its place.
"""

import time
import warnings
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import numpy as np
import torch

from dualrs.data.images import Pixels
from dualrs.errors import BadSetting, DualrsError, InputsFailed, WorkersFailed, first_line
from dualrs.models.noisy import NoisyModel
from dualrs.sampling.engine import Engine, Slot, Work
from dualrs.scale.cluster import connected, divide, import_ray, resources
from dualrs.scale.networks import pack_networks
from dualrs.scale.parcels import Counted, Parcel, Ready, Settings
from dualrs.scale.tasks import MOST_FAILURES, Supply, Task
from dualrs.scale.voter import Voter

TASK_SECONDS = 0.5  # of a worker for a task, at least
TASKS_A_SECOND = 25  # of all workers, at most: each takes the driver a few milliseconds
TASKS_AT_ONCE = 3  # per worker: one under way, one packed into its last batch, one waiting
STARTS = 3  # how often a worker may fail to start, in a row, before it is given up
LOSSES = 12  # workers lost in a row, over all, without one finished task
PATIENCE = 60.0  # seconds that a run waits for the last workers once it has a first one
LONG_PATIENCE = 600.0  # and for the first one
_MOMENT = 1.0  # seconds between two looks at what has come


class Executor:
    """What a model has in the place of its `Engine` while workers count its votes."""

    def __init__(self, workers: "Workers", number: int, engine: Engine) -> None:
        self._workers, self._engine = workers, engine
        self.number = number
        self.batch_size = engine.batch_size
        self.answers: dict[Slot, int] = {}
        self.keep = False  # the batch size, whatever fits
        self.first: Ready | None = None  # report, by which all others are measured

    @property
    def models(self) -> dict[Slot, NoisyModel]:
        """The networks, as the driver has them."""
        return self._engine.models

    @property
    def dtype(self) -> str:
        """The number format of the networks."""
        return self._engine.dtype

    @property
    def device(self) -> torch.device:
        """Where the workers run the networks."""
        return self._workers.device

    @property
    def noise(self) -> str:
        """The name of the noise."""
        return self._engine.noise

    def keep_shape(self, batch_size: int) -> None:
        """Take the batch size of a run that was begun earlier; it must fit on every worker."""
        self.batch_size, self.keep, self.answers = batch_size, True, {}

    def keep_noise(self, noise: str) -> None:
        """Share no copies if a run that was begun earlier does not."""
        self._engine.keep_noise(noise)
        self.answers = {}

    def prepare(self, pixels: Pixels) -> None:
        """Have every worker try the networks on one image, once; the smallest batch size of all is taken."""
        if not self.answers:
            self._workers.prepare(self, pixels)

    def settle(self, reports: Sequence[Ready]) -> None:
        """Take over what the first workers found out."""
        self.first = reports[0]
        for warning in self.first.warnings:
            warnings.warn(warning, stacklevel=4)
        if not self.keep:
            self.batch_size, self.keep = min(report.batch_size for report in reports), True
        self.answers = dict(self.first.answers)

    def run(self, work: Work, seed: int, *others: "Executor") -> None:
        """Count every unit that the work names, until it names no more; ``seed`` addresses the noise.

        ``others`` belong to further models, the members 1, 2, ... of units, and have the same workers. Inputs that
        cannot be counted are set aside; at the end, when all others are recorded, one error names them.
        """
        if not isinstance(seed, int | np.integer):
            raise BadSetting(f"the seed must be a whole number, got {seed!r}")
        if len(settings := {(e.batch_size, e.dtype) for e in (self, *others)}) > 1:
            raise BadSetting(f"models that vote together need one batch size and precision; got {sorted(settings)}")
        self._workers.run(work, int(seed), (self, *others))


@dataclass
class _Seat:
    """The place of a worker: its process, and what that is doing."""

    actor: Any = None
    starting: Any = None  # the reference to its reports, until they have come
    trying: list[Executor] = field(default_factory=list)  # what these are about
    ready: bool = False
    failed_starts: int = 0
    tasks: dict[Any, Task] = field(default_factory=dict)  # by the reference to their counts
    size: float = 0.0  # votes of its next task

    @property
    def given_up(self) -> bool:
        return self.failed_starts >= STARTS

    @property
    def has_room(self) -> bool:
        return self.ready and len(self.tasks) < TASKS_AT_ONCE and not any(t.suspect for t in self.tasks.values())


class Workers:
    """Processes that hold the networks of some engines: ``model.engine = workers.executor`` while they are there.

    ``count`` workers are started on this machine or, with ``address``, on the Ray cluster there: one for each of its
    GPUs or cores by default. ``device`` is "cuda" or "cpu"; by default GPUs are taken where Ray has any. A context
    manager. Several engines, of models that vote together, have an executor each.
    """

    def __init__(
        self, *engines: Engine, count: int | None = None, address: str | None = None, device: str | None = None
    ) -> None:
        if count is not None and count < 1:
            raise BadSetting(f"there must be at least one worker, got {count}")
        self.executors = [Executor(self, number, engine) for number, engine in enumerate(engines)]
        self._count, self._address = count, address
        elsewhere = [engine.device.type for engine in engines if engine.device.type != "cpu"]
        self._wanted_device = device.partition(":")[0] if device else next(iter(elsewhere), None)
        self._open = ExitStack()
        self._seats: list[_Seat] = []
        self._losses = 0  # in a row, without a finished task
        self._reason = ""  # of the last loss

    @property
    def executor(self) -> Executor:
        """That of the first engine."""
        return self.executors[0]

    @property
    def device(self) -> torch.device:
        """Where the networks run."""
        return torch.device(self._share.device)

    @property
    def alive(self) -> int:
        """How many workers are ready or at work."""
        return sum(seat.ready for seat in self._seats)

    @property
    def wanted(self) -> int:
        """How many workers there would be if none were lost."""
        return len(self._seats)

    def __enter__(self) -> Self:
        self._ray = ray = import_ray()
        packed = pack_networks([executor.models for executor in self.executors], ray.cloudpickle)
        with ExitStack() as opening:
            opening.enter_context(connected(ray, self._count, self._address, len(packed)))
            self._share = share = divide(resources(ray), self._count, self._wanted_device)
            self._networks = ray.put(packed)
            self._voter = ray.remote(Voter).options(
                num_cpus=share.cpus, num_gpus=share.gpus, max_concurrency=TASKS_AT_ONCE + 1, max_restarts=0,
                scheduling_strategy="SPREAD",
            )  # fmt: skip
            self._seats = [_Seat() for _ in range(share.workers)]
            opening.callback(self._dismiss)
            self._open = opening.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    # Starting

    def prepare(self, executor: Executor, pixels: Pixels) -> None:
        """Start the workers if there are none, and have each try the networks of one executor."""
        self._pixels = pixels
        for seat in self._seats:
            self._start(seat, executor)
        found = self._first_reports()
        executor.settle([reports[seat.trying.index(executor)] for seat, reports in found])
        for seat, reports in found:
            self._welcome(seat, reports)
        while not self.alive:  # the first one may be trying another batch size
            self._hear([])

    def _first_reports(self) -> list[tuple[_Seat, list[Ready]]]:
        """The reports of all workers; of those that are there, if some take very long."""
        found: list[tuple[_Seat, list[Ready]]] = []
        since = time.monotonic()
        while waiting := self._starting():
            for ref in self._done(waiting):
                if reports := self._report(waiting[ref], fatal=True):
                    found.append((waiting[ref], reports))
                    since = time.monotonic()
            if time.monotonic() - since > (PATIENCE if found else LONG_PATIENCE):
                break
        if not found:
            each = "a GPU" if self._share.gpus else f"{self._share.cpus} of a machine's cores"
            why = self._why or f": each needs {each}, and something else may hold them"
            raise WorkersFailed(f"no worker could be started{why}")
        return found

    def _start(self, seat: _Seat, executor: Executor | None = None) -> None:
        """Have a worker, another one if there is none, try the networks of an executor and whatever it must know."""
        new = seat.actor is None
        if new:
            threads = None if self._share.gpus else self._share.cpus
            dtypes = [e.dtype for e in self.executors]
            seat.actor = self._voter.remote(self._networks, dtypes, self._share.device, threads)
        seat.ready = False
        seat.trying = [e for e in self.executors if e is executor or e in seat.trying or (new and e.answers)]
        settings = [Settings(e.number, e.batch_size, e.keep, e.noise) for e in seat.trying]
        seat.starting = seat.actor.prepare.remote(self._pixels, settings)

    def _report(self, seat: _Seat, *, fatal: bool = False) -> list[Ready] | None:
        """What a starting worker has to say; None if it failed, and is started again or given up."""
        ref, seat.starting = seat.starting, None
        try:
            reports: list[Ready] = self._ray.get(ref)
        except self._ray.exceptions.RayError as error:
            cause = _cause(error)
            if fatal and isinstance(cause, DualrsError):
                raise cause from error
            self._reason = _sentence(error)
            seat.failed_starts += 1
            self._replace(seat)
            return None
        seat.failed_starts = 0
        return reports

    def _welcome(self, seat: _Seat, reports: Iterable[Ready]) -> None:
        """Give a worker its place, if it counts as the others do and in batches of the same shape."""
        for executor, report in zip(seat.trying, reports, strict=True):
            if report.batch_size != executor.batch_size:
                self._start(seat, executor)
                return
            first = executor.first
            assert first is not None, "settled"
            if any(not np.array_equal(counts, report.trial[slot]) for slot, counts in first.trial.items()):
                raise WorkersFailed(
                    f"the workers on {first.host} and {report.host} count different votes on the same noise: their "
                    "hardware or libraries compute differently; use machines of one kind, with the same packages"
                )
        seat.ready, seat.trying = True, []

    # Running

    def run(self, work: Work, seed: int, panel: Sequence[Executor]) -> None:
        """Count every unit that a work names, its members being those of a panel."""
        supply = Supply(work)
        self._losses, last_alive = 0, time.monotonic()
        for seat in self._seats:
            # Begin small, as nobody knows yet what a vote takes: a batch for each network.
            seat.size = panel[0].batch_size * len(panel[0].models)
            if seat.actor is None and not seat.given_up:
                self._start(seat)
        try:
            while self._hand_out(supply, seed, panel):
                if self.alive:
                    last_alive = time.monotonic()
                elif time.monotonic() - last_alive > LONG_PATIENCE:
                    raise WorkersFailed(f"no worker has come back for {LONG_PATIENCE / 60:.0f} minutes{self._why}")
                for seat, ref in self._hear([seat for seat in self._seats if seat.tasks]):
                    if ref in seat.tasks:  # and not lost a moment ago
                        self._take(seat, ref, work, supply, panel)
                work.batch_done()
        except BaseException:
            self._abandon()
            raise
        if supply.failures:
            raise InputsFailed(supply.failures)

    def _hand_out(self, supply: Supply, seed: int, panel: Sequence[Executor]) -> bool:
        """Give every worker what it has room for; whether anything is under way, or waits for a worker."""

        def send(seat: _Seat, task: Task) -> None:
            parcel = Parcel.pack(task.units, supply.pixels, seed, tuple(executor.number for executor in panel))
            seat.tasks[seat.actor.vote.remote(parcel)] = task

        for seat in self._seats:
            if seat.ready and not seat.tasks and (task := supply.next_suspect()):
                send(seat, task)
        roomy = deque(sorted((s for s in self._seats if s.has_room), key=lambda seat: len(seat.tasks)))
        while roomy and (task := supply.next_task(roomy[0].size)):
            seat = roomy.popleft()
            send(seat, task)
            if seat.has_room:
                roomy.append(seat)
        return any(seat.tasks for seat in self._seats) or not supply.is_empty

    def _hear(self, voting: Iterable[_Seat]) -> list[tuple[_Seat, Any]]:
        """Wait a little for workers to say something: act on what starting ones say, return whose counts have come."""
        starting = self._starting()
        tasks = {ref: seat for seat in voting for ref in seat.tasks}
        if not starting and not tasks:
            raise WorkersFailed(f"no worker is left{self._why}")
        done = self._done([*starting, *tasks])
        for ref in done:
            if ref in starting and (reports := self._report(starting[ref])):
                self._welcome(starting[ref], reports)
        return [(tasks[ref], ref) for ref in done if ref in tasks]

    def _take(self, seat: _Seat, ref: Any, work: Work, supply: Supply, panel: Sequence[Executor]) -> None:
        """Deliver the counts of a task, or put it back into the supply if they are lost."""
        try:
            counted: Counted = self._ray.get(ref)
        except self._ray.exceptions.RayError as error:
            self._lose(seat, supply, _sentence(error))
            return
        task = seat.tasks.pop(ref)
        self._losses = 0
        seat.size = min(2 * seat.size, max(panel[0].batch_size, counted.votes_per_second * self._task_seconds))
        for unit, counts, seconds in counted.unpack(task.units, [executor.answers for executor in panel]):
            supply.add(work.deliver(unit, counts, seconds))
        for input_id, reason in counted.failures.items():
            supply.set_aside(input_id, reason)
        if len(supply.failures) > MOST_FAILURES:
            raise InputsFailed(supply.failures)

    def _lose(self, seat: _Seat, supply: Supply, reason: str) -> None:
        """Put another worker in the place of one that was lost, and its tasks back into the supply."""
        tasks, seat.tasks = list(seat.tasks.values()), {}
        for task in tasks:
            supply.lost(task, len(tasks) == 1, reason)
        self._reason = reason
        self._losses += 1
        self._replace(seat)
        if self._losses >= LOSSES:
            raise WorkersFailed(f"{LOSSES} workers in a row were lost before they had counted anything{self._why}")

    def _replace(self, seat: _Seat) -> None:
        trying = seat.trying
        self._end(seat)
        if not seat.given_up:
            seat.trying = trying
            self._start(seat)

    def _end(self, seat: _Seat) -> None:
        if seat.actor is not None:
            self._ray.kill(seat.actor)
        seat.actor, seat.starting, seat.trying, seat.ready, seat.tasks = None, None, [], False, {}

    def _abandon(self) -> None:
        """End workers that are counting what nobody waits for any more."""
        for seat in self._seats:
            if seat.tasks:
                self._end(seat)

    def _dismiss(self) -> None:
        for seat in self._seats:
            self._end(seat)

    def _starting(self) -> dict[Any, _Seat]:
        return {seat.starting: seat for seat in self._seats if seat.starting is not None}

    def _done(self, refs: Iterable[Any]) -> list[Any]:
        """The references whose values have come, after waiting a little for a first one."""
        done, rest = self._ray.wait(list(refs), num_returns=1, timeout=_MOMENT)
        if done and rest:
            done += self._ray.wait(rest, num_returns=len(rest), timeout=0)[0]
        return list(done)

    @property
    def _task_seconds(self) -> float:
        """Short tasks lose little with a worker, and end together; the driver has time for so many."""
        return max(TASK_SECONDS, self.wanted / TASKS_A_SECOND)

    @property
    def _why(self) -> str:
        return f": {self._reason}" if self._reason else ""


def _cause(error: BaseException) -> BaseException:
    """What went wrong at the worker, without what Ray wraps around it."""
    return getattr(error, "cause", None) or error


def _sentence(error: BaseException) -> str:
    """Why a worker was lost."""
    cause = _cause(error)
    if isinstance(cause, DualrsError):
        return str(cause)
    if type(cause).__name__ in ("ActorDiedError", "ActorUnavailableError", "RayActorError", "NodeDiedError"):
        return "its process ended (killed, out of memory, or its machine is gone)"
    return f"{type(cause).__name__}: {first_line(cause)}" if isinstance(cause, Exception) else type(cause).__name__
