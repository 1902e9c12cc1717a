"""The campaign of mutations: files damaged and edited in every way, read by the library in processes of their own.

Enters: how many. Leaves, for each kind of file: how many were read as if nothing had happened, refused, or read as
something else that they may well say; and every violation: an exception that is not dualrs's own, another answer of a
ledger or of weights without a word, code that was run, a reader that hangs or ends its process. A mutation has a
number: the same seed and number make the same file, and --case shows it.
"""

import multiprocessing
import os
import resource
import shutil
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random

from rich.console import Console

from dualrs.errors import DualrsError
from soak.kinds import KINDS, Kind
from soak.pristine import make_all
from soak.report import Clock, Report, Settings, bar

MUTATIONS = 120_000
PROCESSES = 2
AT_ONCE = 50  # files a task
PATIENCE = 10.0  # seconds for one file
MEMORY = 4 << 30  # bytes that a reader may take beyond what the process has at the start
UNCHANGED, REFUSED, OTHERWISE, VIOLATION = "unchanged", "refused", "read otherwise", "violation"
NAMED = 3  # numbers of files that show a violation

Result = tuple[int, str, str, str]  # number, outcome, what kind of violation, what was done and said


@dataclass(frozen=True)
class Task:
    """Some mutations of one kind, by their numbers."""

    kind: str
    first: int
    last: int  # exclusive


def mutate(settings: Settings, console: Console) -> Report:
    """Run the campaign."""
    clock, found = Clock(settings.seconds), _Found()
    wanted = {kind.name: settings.scaled(MUTATIONS * kind.share // 120) for kind in KINDS}
    with tempfile.TemporaryDirectory(prefix="soak-") as scratch:
        pristine = Path(scratch) / "pristine"
        pristine.mkdir()
        make_all(pristine)
        with bar("mutations", sum(wanted.values()), console) as progress:
            tasks = (task for task in _tasks(wanted) if not clock.is_over)
            workers = [_Worker(pristine, Path(scratch) / f"{i}", settings.seed, tasks) for i in range(PROCESSES)]
            while sum(worker.give() for worker in workers):
                wait([worker.inbox for worker in workers if worker.busy], timeout=1.0)
                for worker in workers:
                    for kind, result in worker.heard():
                        found.add(kind, result)
                        progress.advance()
            for worker in workers:
                worker.end()
    return found.report(settings.seed, clock.spent)


def show_case(settings: Settings, case: str, console: Console) -> Report:
    """Do one mutation in this process and print what became of it; its file stays where it is said to be."""
    name, number = case.split("/")
    found, place = _Found(), Path(tempfile.mkdtemp(prefix="soak-case-"))
    (place / "pristine").mkdir()
    make_all(place / "pristine")
    kind = next(k for k in KINDS if k.name == name)(place / "pristine", place)
    result = _examined(kind, settings.seed, int(number), console)
    found.add(name, result)
    console.print(f"{case}: {result[1]}\n{result[3]}", highlight=False, markup=False, soft_wrap=True)
    return found.report(settings.seed, 0.0)


def _tasks(wanted: dict[str, int]) -> Iterator[Task]:
    """Kinds in turn, so that a campaign cut short has some of each."""
    begun = dict.fromkeys(wanted, 0)
    while any(begun[kind] < count for kind, count in wanted.items()):
        kind = min(begun, key=lambda k: begun[k] / wanted[k])
        last = min(begun[kind] + AT_ONCE, wanted[kind])
        yield Task(kind, begun[kind], last)
        begun[kind] = last


class _Worker:
    """A process that mutates and reads, and is replaced if it hangs or ends."""

    def __init__(self, pristine: Path, place: Path, seed: int, tasks: Iterator[Task]) -> None:
        self._arguments, self._tasks, self._task = (pristine, place, seed), tasks, Task("", 0, 0)
        self._begin()

    def _begin(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.inbox, theirs = context.Pipe()
        self._process: BaseProcess = context.Process(target=_work, args=(theirs, *self._arguments), daemon=True)
        self._process.start()
        theirs.close()
        self.inbox.recv()  # it has imported all it needs
        self._since = time.monotonic()

    @property
    def busy(self) -> bool:
        """Whether some of its task is left."""
        return self._task.first < self._task.last

    def give(self) -> bool:
        """Give it a task if it has none; whether it has one now."""
        if not self.busy and (task := next(self._tasks, None)) is not None:
            self._task = task
            self._since = time.monotonic()
            self.inbox.send(task)
        return self.busy

    def heard(self) -> Iterator[tuple[str, Result]]:
        """Results since the last time; a process that hangs or has ended makes one, too."""
        try:
            while self.busy and self.inbox.poll():
                result: Result = self.inbox.recv()
                self._since = time.monotonic()
                self._task = Task(self._task.kind, result[0] + 1, self._task.last)
                yield self._task.kind, result
        except (EOFError, ConnectionError):
            self._process.join()
            yield from self._lost(f"the process ended with code {self._process.exitcode}")
        if self.busy and time.monotonic() - self._since > PATIENCE:
            yield from self._lost(f"no answer within {PATIENCE:.0f} seconds")

    def _lost(self, why: str) -> Iterator[tuple[str, Result]]:
        self.end()
        yield self._task.kind, (self._task.first, VIOLATION, why, why)
        self._task = Task(self._task.kind, self._task.first + 1, self._task.last)
        self._begin()
        if self.busy:
            self._since = time.monotonic()
            self.inbox.send(self._task)

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()
        self.inbox.close()


def _work(outbox: Connection, pristine: Path, place: Path, seed: int) -> None:
    """A worker: tasks in, results out, one by one."""
    os.nice(5)
    warnings.simplefilter("ignore")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    kinds = {kind.name: kind(pristine, place) for kind in KINDS}
    for kind in kinds.values():
        for variant in kind.variants:
            kind.expected(variant)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    outbox.send("ready")
    while True:
        task: Task = outbox.recv()
        for number in range(task.first, task.last):
            outbox.send(_examined(kinds[task.kind], seed, number))


def _examined(kind: Kind, seed: int, number: int, console: Console | None = None) -> Result:
    """Mutate and read one file; with a console, print the traceback too."""
    spoiled = kind.spoil(Random(f"{seed} {kind.name} {number}"))
    words, violation = f"{spoiled.variant}: {spoiled.words}", ""
    if console is not None:  # before it is read, as that may never end
        console.print(f"{spoiled.path}\n{words}", highlight=False, markup=False, soft_wrap=True)
    try:
        answer = kind.read(spoiled.path)
    except DualrsError as refusal:
        outcome, words = REFUSED, f"{words}\n{refusal}"
    except Exception as error:
        if console is not None:
            console.print_exception()
        outcome, violation = VIOLATION, f"{type(error).__name__} in {_place(error)}"
        words = f"{words}\n{type(error).__name__}: {str(error)[:300]}"
    else:
        if kind.same(answer, spoiled):
            outcome = UNCHANGED
        elif spoiled.strict:
            outcome, violation = VIOLATION, "another answer without a word"
        else:
            outcome = OTHERWISE
    if kind.marker.exists():
        shutil.rmtree(kind.marker) if kind.marker.is_dir() else kind.marker.unlink()
        outcome, violation = VIOLATION, "code was run"
    return number, outcome, violation, words


def _place(error: Exception) -> str:
    """The function of dualrs that let an exception through: the last one of its own."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "dualrs" in frame.filename]
    if not frames:
        return "the campaign itself"
    return f"{frames[-1].filename.rpartition('dualrs/')[2]}:{frames[-1].name}"


@dataclass
class _Found:
    """Outcomes by kind, and violations by kind and by what they are."""

    outcomes: dict[str, Counter[str]] = field(default_factory=dict)
    violations: dict[tuple[str, str], list[Result]] = field(default_factory=dict)

    def add(self, kind: str, result: Result) -> None:
        """Count one result."""
        _, outcome, violation, _ = result
        self.outcomes.setdefault(kind, Counter())[outcome] += 1
        if outcome == VIOLATION:
            self.violations.setdefault((kind, violation), []).append(result)

    def report(self, seed: int, seconds: float) -> Report:
        """The table, and a sentence for each kind of violation."""
        total = sum(sum(c.values()) for c in self.outcomes.values())
        columns = ("file", "mutated", UNCHANGED, REFUSED, OTHERWISE, "violations")
        report = Report("mutations", f"{total:,} mutated files", columns, seconds=seconds)
        for kind, counter in self.outcomes.items():
            numbers = (sum(counter.values()), *(counter[o] for o in (UNCHANGED, REFUSED, OTHERWISE, VIOLATION)))
            report.rows.append((kind, *(f"{number:,}" for number in numbers)))
            report.figures[kind] = dict(zip(columns[1:], numbers, strict=True))
        for (kind, violation), results in sorted(self.violations.items(), key=lambda pair: -len(pair[1])):
            cases = ", ".join(f"{kind}/{result[0]}" for result in results[:NAMED])
            first = results[0][3].replace("\n", "; ")
            report.violations.append(
                f"{kind}: {violation}, {len(results)} times: --seed {seed} --case {cases}; {first[:500]}"
            )
        return report
