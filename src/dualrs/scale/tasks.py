"""Tasks: which requests go to a worker together, and what becomes of those whose worker was lost.

Enters: a `Work`, task by task. Leaves: tasks of about the size asked for; in the end, the inputs that were set aside.

Requests that came together about one input stay together, as they may be voted on the same noisy copies; only where
they are more than a task, they are cut, between vote numbers. A task that was lost with its worker is cut in two and
tried again; after a second time its parts are suspects, each tried alone on a worker of its own; a single input
that has then cost several workers is set aside.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from dualrs.data.images import Pixels
from dualrs.sampling.work import Request, Work

MOST_REQUESTS = 4_096  # of a task, whatever its size in votes
MOST_BYTES = 4 << 20  # of its images
TRUSTED_LOSSES = 1  # workers that a task may lose before it becomes a suspect
CHANCES = 2  # workers that a single input may lose, alone, before it is set aside
MOST_FAILURES = 1_000  # inputs set aside in one run; with more, something else is wrong


@dataclass
class Task:
    """Requests for one worker."""

    requests: list[Request]
    losses: int = 0  # workers that were lost with it
    chances: int = CHANCES

    @property
    def suspect(self) -> bool:
        """Whether it must be tried alone."""
        return self.losses > TRUSTED_LOSSES


class Supply:
    """The tasks of a run."""

    def __init__(self, work: Work) -> None:
        self.failures: dict[str, str] = {}  # inputs that were set aside, and why
        self._work = work
        self._groups: deque[list[Request]] = deque()  # of inputs that were begun
        self._again: deque[Task] = deque()
        self._suspects: deque[Task] = deque()
        self._ended = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits, and no further input will come."""
        return self._ended and not (self._groups or self._again or self._suspects)

    def next_task(self, votes: float) -> Task | None:
        """A task of about so many votes; None if there is nothing to ask at the moment."""
        if self._again:
            return self._again.popleft()
        requests: list[Request] = []
        room, space = votes, MOST_BYTES
        while room > 0 and space > 0 and len(requests) < MOST_REQUESTS and (group := self._next_group(votes)):
            requests += group
            room -= votes_of(group)
            space -= self._work.pixels(group[0].unit.input_id).nbytes
        return Task(requests) if requests else None

    def next_suspect(self) -> Task | None:
        """A task for a worker that has nothing else to do."""
        return self._suspects.popleft() if self._suspects else None

    def pixels(self, input_id: str) -> Pixels:
        """The image of an input that has open requests."""
        return self._work.pixels(input_id)

    def add(self, requests: Sequence[Request]) -> None:
        """Take in further requests about an input that was begun; they go before those of new inputs."""
        if requests:
            self._groups.append(list(requests))

    def lost(self, task: Task, alone: bool, reason: str) -> None:
        """Take back a task whose worker was lost; ``alone`` if that had nothing else to do."""
        names = list(dict.fromkeys(request.unit.input_id for request in task.requests))
        losses = task.losses + 1
        if len(names) > 1:
            first = set(names[: len(names) // 2])
            for half in (True, False):
                self._put(Task([a for a in task.requests if (a.unit.input_id in first) is half], losses))
            return
        chances = task.chances - (alone and task.suspect)
        if chances:
            self._put(Task(task.requests, losses, chances))
        else:
            self.set_aside(names[0], f"{CHANCES} workers were lost with it, the last because: {reason}")

    def _put(self, task: Task) -> None:
        (self._suspects if task.suspect else self._again).append(task)

    def set_aside(self, input_id: str, reason: str) -> None:
        """Leave an input out from here on."""
        self.failures[input_id] = reason

    def _next_group(self, votes: float) -> list[Request] | None:
        """Requests about one input, not many more than so many votes."""
        while True:
            while self._groups:
                group = self._groups.popleft()
                if group[0].unit.input_id not in self.failures:
                    first, *rest = cut(group, votes)
                    self._groups.extendleft(reversed(rest))
                    return first
            requests = None if self._ended else self._work.more()
            if requests is None:
                self._ended = True
                return None
            self.add(requests)


def cut(requests: list[Request], votes: float) -> list[list[Request]]:
    """Cut requests about one input into parts of about so many votes; equal vote numbers stay together."""
    if votes_of(requests) <= votes:
        return [requests]
    together: dict[tuple[int, int], list[Request]] = {}
    for request in requests:
        together.setdefault((request.unit.start, request.unit.stop), []).append(request)
    parts: list[list[Request]] = [[]]
    for part in together.values():
        if parts[-1] and votes_of(parts[-1]) + votes_of(part) > votes:
            parts.append([])
        parts[-1] += part
    return parts


def votes_of(requests: Sequence[Request]) -> int:
    """How many votes are asked for."""
    return sum(request.unit.votes for request in requests)
