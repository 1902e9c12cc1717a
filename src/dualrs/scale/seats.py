"""Seats: the places of workers, and how these come and go.

Enters: what a worker is made from, and executors whose networks it has to try. Leaves: workers that count alike. One
that is lost has another put in its place; one that keeps failing to start is given up.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dualrs.data.images import Pixels
from dualrs.errors import DualrsError, WorkersFailed, first_line
from dualrs.sampling.work import Slot
from dualrs.scale.cluster import Share
from dualrs.scale.executor import Executor
from dualrs.scale.parcels import Format, Ready
from dualrs.scale.tasks import Task
from dualrs.scale.voter import Voter

TASKS_AT_ONCE = 3  # per worker: one under way, one packed into its last batch, one waiting
STARTS = 3  # how often a worker may fail to start, in a row, before it is given up
PATIENCE = 60.0  # seconds that a run waits for the last workers once it has a first one
LONG_PATIENCE = 600.0  # and for the first one
_MOMENT = 1.0  # seconds between two looks at what has come


@dataclass
class Seat:
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
        """Whether no further worker is started here."""
        return self.failed_starts >= STARTS

    @property
    def has_room(self) -> bool:
        """Whether its worker takes another task."""
        return self.ready and len(self.tasks) < TASKS_AT_ONCE and not any(t.suspect for t in self.tasks.values())


class Seats:
    """The seats of a run, on machines that Ray is connected to; ``networks`` are those of the executors, as stored."""

    def __init__(self, ray: Any, share: Share, executors: Sequence[Executor], networks: Any) -> None:
        self._ray, self._share, self._executors, self._networks = ray, share, executors, networks
        self._voter = ray.remote(Voter).options(
            num_cpus=share.cpus, num_gpus=share.gpus, max_concurrency=TASKS_AT_ONCE + 1, max_restarts=0,
            scheduling_strategy="SPREAD",
        )  # fmt: skip
        self._seats = [Seat() for _ in range(share.workers)]
        self._reason = ""  # of the last loss

    def __iter__(self) -> Iterator[Seat]:
        return iter(self._seats)

    def __len__(self) -> int:
        return len(self._seats)

    @property
    def alive(self) -> int:
        """How many workers are ready or at work."""
        return sum(seat.ready for seat in self._seats)

    @property
    def why(self) -> str:
        """Why the last worker was lost, for the end of a sentence."""
        return f": {self._reason}" if self._reason else ""

    def prepare(self, executor: Executor) -> None:
        """Start the workers if there are none, and have each try the networks of one executor."""
        for seat in self._seats:
            self._start(seat, executor)
        found = self._first_reports()
        executor.settle([reports[seat.trying.index(executor)] for seat, reports in found])
        for seat, reports in found:
            self._welcome(seat, reports)
        while not self.alive:  # the first one may be trying another batch size
            self.hear()

    def identify(self, executor: Executor, first: Pixels) -> Mapping[Slot, str]:
        """What the networks of one executor answer to trial copies, from the first worker that says so."""
        while True:
            for seat in [seat for seat in self._seats if seat.ready]:
                try:
                    found: Mapping[Slot, str] = self._ray.get(seat.actor.identify.remote(executor.number, first))
                except self._ray.exceptions.RayError as error:
                    self.replace(seat, sentence(error))
                else:
                    return found
            self.hear()  # whether others are starting

    def fill(self) -> None:
        """Start a worker on every seat that has none."""
        for seat in self._seats:
            if seat.actor is None and not seat.given_up:
                self._start(seat)

    def hear(self) -> list[tuple[Seat, Any]]:
        """Wait a little for workers to say something: act on what starting ones say, return whose counts have come."""
        starting = self._starting()
        tasks = {ref: seat for seat in self._seats for ref in seat.tasks}
        if not starting and not tasks:
            raise WorkersFailed(f"no worker is left{self.why}")
        done = self._done([*starting, *tasks])
        for ref in done:
            if ref in starting and (reports := self._report(starting[ref])):
                self._welcome(starting[ref], reports)
        return [(tasks[ref], ref) for ref in done if ref in tasks]

    def replace(self, seat: Seat, reason: str) -> None:
        """Put another worker in the place of one that was lost, unless the seat is given up."""
        self._reason = reason
        trying = seat.trying
        self.end(seat)
        if not seat.given_up:
            seat.trying = trying
            self._start(seat)

    def end(self, seat: Seat) -> None:
        """End the worker of a seat, if there is one."""
        if seat.actor is not None:
            self._ray.kill(seat.actor)
        seat.actor, seat.starting, seat.trying, seat.ready, seat.tasks = None, None, [], False, {}

    def _first_reports(self) -> list[tuple[Seat, list[Ready]]]:
        """The reports of all workers; of those that are there, if some take very long."""
        found: list[tuple[Seat, list[Ready]]] = []
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
            why = self.why or f": each needs {each}, and something else may hold them"
            raise WorkersFailed(f"no worker could be started{why}")
        return found

    def _start(self, seat: Seat, executor: Executor | None = None) -> None:
        """Have a worker, another one if there is none, try the networks of an executor and whatever it must know."""
        new = seat.actor is None
        if new:
            threads = None if self._share.gpus else self._share.cpus
            formats = [Format(e.asked_size, e.dtype, e.compile) for e in self._executors]
            seat.actor = self._voter.remote(self._networks, formats, self._share.device, threads)
        seat.ready = False
        seat.trying = [e for e in self._executors if e is executor or e in seat.trying or (new and e.answers)]
        seat.starting = seat.actor.prepare.remote([e.settings for e in seat.trying])

    def _report(self, seat: Seat, *, fatal: bool = False) -> list[Ready] | None:
        """What a starting worker has to say; None if it failed, and is started again or given up."""
        ref, seat.starting = seat.starting, None
        try:
            reports: list[Ready] = self._ray.get(ref)
        except self._ray.exceptions.RayError as error:
            reason = cause(error)
            if fatal and isinstance(reason, DualrsError):
                raise reason from error
            seat.failed_starts += 1
            self.replace(seat, sentence(error))
            return None
        seat.failed_starts = 0
        return reports

    def _welcome(self, seat: Seat, reports: Iterable[Ready]) -> None:
        """Give a worker its place, if it counts as the others do and in batches of the same shape."""
        for executor, report in zip(seat.trying, reports, strict=True):
            if report.batch_size != executor.batch_size:
                self._start(seat, executor)
                return
            first = executor.first
            assert first is not None, "settled"
            if report.identity != first.identity:
                raise WorkersFailed(
                    f"the workers on {first.host} and {report.host} answer differently to the same noisy copies: their "
                    "hardware or libraries compute differently; use machines of one kind, with the same packages"
                )
        seat.ready, seat.trying = True, []

    def _starting(self) -> dict[Any, Seat]:
        return {seat.starting: seat for seat in self._seats if seat.starting is not None}

    def _done(self, refs: Iterable[Any]) -> list[Any]:
        """The references whose values have come, after waiting a little for a first one."""
        done, rest = self._ray.wait(list(refs), num_returns=1, timeout=_MOMENT)
        if done and rest:
            done += self._ray.wait(rest, num_returns=len(rest), timeout=0)[0]
        return list(done)


def cause(error: BaseException) -> BaseException:
    """What went wrong at the worker, without what Ray wraps around it."""
    return getattr(error, "cause", None) or error


def sentence(error: BaseException) -> str:
    """Why a worker was lost."""
    reason = cause(error)
    if isinstance(reason, DualrsError):
        return str(reason)
    if type(reason).__name__ in ("ActorDiedError", "ActorUnavailableError", "RayActorError", "NodeDiedError"):
        return "its process ended (killed, out of memory, or its machine is gone)"
    return f"{type(reason).__name__}: {first_line(reason)}" if isinstance(reason, Exception) else type(reason).__name__
