"""Workers: the engine's place taken by processes on this machine or on many, which Ray starts and watches.

Enters: engines, whose networks are sent to every worker once, and a `Work`. Leaves: the counts of its units, those
of one process. The driver keeps the policy and the ledger; workers only vote. Noise is addressed and all batches have
one shape, so no vote depends on who counted it, in which order, or how often a worker was lost before.

Every worker has a few tasks at a time, each of about a second: the next is there when one is done, and a lost worker
costs little. Its tasks are given to others, and another worker is started in its place.
"""

import time
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import Any, Self

import torch

from dualrs.errors import BadSetting, InputsFailed, WorkersFailed
from dualrs.sampling.noise import NoiseSource
from dualrs.sampling.work import Counting, Work
from dualrs.scale.cluster import connected, divide, import_ray, resources
from dualrs.scale.executor import Executor
from dualrs.scale.networks import pack_networks
from dualrs.scale.parcels import Counted, Parcel
from dualrs.scale.seats import LONG_PATIENCE, Seat, Seats, sentence
from dualrs.scale.tasks import MOST_FAILURES, Supply, Task

TASK_SECONDS = 0.5  # of a worker for a task, at least
TASKS_A_SECOND = 25  # of all workers, at most: each takes the driver a few milliseconds
LOSSES = 12  # workers lost in a row, over all, without one finished task


class Workers:
    """Processes that hold the networks of some engines: ``model.engine = workers.executor`` while they are there.

    ``count`` workers are started on this machine or, with ``address``, on the Ray cluster there: one for each of its
    GPUs or cores by default. ``device`` is "cuda" or "cpu"; by default GPUs are taken where Ray has any. A context
    manager. Several engines, of models that vote together, have an executor each.
    """

    def __init__(
        self, *engines: Counting, count: int | None = None, address: str | None = None, device: str | None = None
    ) -> None:
        if count is not None and count < 1:
            raise BadSetting(f"there must be at least one worker, got {count}")
        self.executors = [Executor(self, number, engine) for number, engine in enumerate(engines)]
        self._count, self._address = count, address
        elsewhere = [engine.device.type for engine in engines if engine.device.type != "cpu"]
        self._wanted_device = device.partition(":")[0] if device else next(iter(elsewhere), None)
        self._open = ExitStack()
        self._losses = 0  # in a row, without a finished task

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
        return self.seats.alive

    @property
    def wanted(self) -> int:
        """How many workers there would be if none were lost."""
        return len(self.seats)

    def __enter__(self) -> Self:
        self._ray = ray = import_ray()
        packed = pack_networks([executor.models for executor in self.executors], ray.cloudpickle)
        with ExitStack() as opening:
            opening.enter_context(connected(ray, self._count, self._address, len(packed)))
            self._share = divide(resources(ray), self._count, self._wanted_device)
            self.seats = Seats(ray, self._share, self.executors, ray.put(packed))
            opening.callback(self._end, self.seats)
            self._open = opening.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def count(self, panel: Sequence[Executor], work: Work, source: NoiseSource) -> None:
        """Count every unit that a work asks of the members of a panel, until it asks no more, on noise of one source.

        Inputs that cannot be counted are set aside; at the end, when all others are recorded, one error names them.
        """
        if len(settings := {(executor.batch_size, executor.dtype) for executor in panel}) > 1:
            raise BadSetting(f"models that vote together need one batch size and precision; got {sorted(settings)}")
        supply = Supply(work)
        self._losses, last_alive = 0, time.monotonic()
        for seat in self.seats:
            # Begin small, as nobody knows yet what a vote takes: a batch for each network.
            seat.size = panel[0].batch_size * len(panel[0].models)
        self.seats.fill()
        try:
            while self._hand_out(supply, source, panel):
                if self.alive:
                    last_alive = time.monotonic()
                elif time.monotonic() - last_alive > LONG_PATIENCE:
                    raise WorkersFailed(f"no worker has come back for {LONG_PATIENCE / 60:.0f} minutes{self.seats.why}")
                for seat, ref in self.seats.hear():
                    if ref in seat.tasks:  # and not lost a moment ago
                        self._take(seat, ref, work, supply, panel)
                work.batch_done()
        except BaseException:  # nobody waits any more for what they count
            self._end(seat for seat in self.seats if seat.tasks)
            raise
        if supply.failures:
            raise InputsFailed(supply.failures)

    def _hand_out(self, supply: Supply, source: NoiseSource, panel: Sequence[Executor]) -> bool:
        """Give every worker what it has room for; whether anything is under way, or waits for a worker."""

        def send(seat: Seat, task: Task) -> None:
            parcel = Parcel.pack(task.requests, supply.pixels, source, tuple(executor.number for executor in panel))
            seat.tasks[seat.actor.vote.remote(parcel)] = task

        for seat in self.seats:
            if seat.ready and not seat.tasks and (task := supply.next_suspect()):
                send(seat, task)
        roomy = deque(sorted((s for s in self.seats if s.has_room), key=lambda seat: len(seat.tasks)))
        while roomy and (task := supply.next_task(roomy[0].size)):
            seat = roomy.popleft()
            send(seat, task)
            if seat.has_room:
                roomy.append(seat)
        return any(seat.tasks for seat in self.seats) or not supply.is_empty

    def _take(self, seat: Seat, ref: Any, work: Work, supply: Supply, panel: Sequence[Executor]) -> None:
        """Deliver the counts of a task, or put it back into the supply if they are lost."""
        try:
            counted: Counted = self._ray.get(ref)
        except self._ray.exceptions.RayError as error:
            self._lose(seat, supply, sentence(error))
            return
        task = seat.tasks.pop(ref)
        self._losses = 0
        seat.size = min(2 * seat.size, max(panel[0].batch_size, counted.votes_per_second * self._task_seconds))
        for request, counts, seconds in counted.unpack(task.requests, [executor.answers for executor in panel]):
            supply.add(work.deliver(request, counts, seconds))
        for input_id, reason in counted.failures.items():
            supply.set_aside(input_id, reason)
        if len(supply.failures) > MOST_FAILURES:
            raise InputsFailed(supply.failures)

    def _lose(self, seat: Seat, supply: Supply, reason: str) -> None:
        """Put another worker in the place of one that was lost, and its tasks back into the supply."""
        tasks, seat.tasks = list(seat.tasks.values()), {}
        for task in tasks:
            supply.lost(task, len(tasks) == 1, reason)
        self._losses += 1
        self.seats.replace(seat, reason)
        if self._losses >= LOSSES:
            raise WorkersFailed(f"{LOSSES} workers in a row were lost before they had counted anything{self.seats.why}")

    def _end(self, seats: Iterable[Seat]) -> None:
        for seat in seats:
            self.seats.end(seat)

    @property
    def _task_seconds(self) -> float:
        """Short tasks lose little with a worker, and end together; the driver has time for so many."""
        return max(TASK_SECONDS, self.wanted / TASKS_A_SECOND)
