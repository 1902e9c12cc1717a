"""The campaign of kills: kill -9 on the real commands at random moments, until each ends like an unbroken run.

Enters: how many kills. Leaves: for each command how many kills it took, and what was not as it should be: votes,
certificates or weights other than those of an unbroken run, a command that does not go on, a ledger that does not
verify, a file or a process that is left behind.

Moments are of three kinds: some time after the start; just after a file has appeared or gone, which is when files are
founded or removed; and while a file is about to take its place.
"""

import os
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from dualrs.errors import DualrsError
from dualrs.storage import Ledger, verify
from soak.commands import COMMANDS, Command, blind_spots, differences, kept, ledgers, recorded
from soak.processes import Running, start
from soak.report import Bar, Clock, Report, Settings, bar

KILLS = 40  # of each command
LANES = 2  # commands at a time
AT_FILES = 0.4  # share of kills that wait for a file; of these, half for one that is about to take its place
EARLY = 0.2  # share of the others that may come long before the first vote
SOON = 0.03  # seconds after a change


@dataclass
class Found:
    """What was seen of one command so far."""

    command: Command
    kills: int = 0
    jobs: int = 0
    early: int = 0  # kills before there was a vote
    rows: int = 0  # of votes that were compared
    violations: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass
class Timing:
    """How long a slow run takes until its first vote, and in all, and how files come and go; measured once."""

    first_vote: float
    whole: float
    changes: int  # of files
    placed: int  # files that are written beside their place first, coming and going


def kill(settings: Settings, console: Console) -> Report:
    """Run the campaign."""
    clock, wanted = Clock(settings.seconds), settings.scaled(KILLS, least=2)
    found = [Found(command) for command in COMMANDS]
    with (
        tempfile.TemporaryDirectory(prefix="soak-") as scratch,
        bar("kills", wanted * len(found), console) as progress,
        ThreadPoolExecutor(LANES) as lanes,
    ):
        campaign = _Campaign(Path(scratch), settings.seed, wanted, clock, progress)
        try:
            list(lanes.map(campaign.run, found))
        except BaseException:
            clock.stop()  # jobs that are under way end soon, and no other begins
            raise
    return _report(found, clock.spent)


@dataclass(frozen=True)
class _Campaign:
    """Where and how long commands are killed."""

    scratch: Path
    seed: int
    wanted: int
    clock: Clock
    progress: Bar

    def run(self, found: Found) -> None:
        """One command, job after job, until it was killed often enough."""
        timing = None
        while found.kills < self.wanted and not self.clock.is_over:
            job = _Job(self, found, f"{found.command.name} job {found.jobs}")
            try:
                timing = job.run(timing)
            except (TimeoutError, ChildProcessError) as failure:
                job.complain(str(failure))
                return  # the next job would fail likewise
            found.jobs += 1


class _Job:
    """One command line with one seed: unbroken in one folder, killed in another, and compared."""

    def __init__(self, campaign: _Campaign, found: Found, name: str) -> None:
        self.campaign, self.found, self.command, self.name = campaign, found, found.command, name
        self.moment = random.Random(f"{campaign.seed} {name}")
        self.seed = self.moment.randrange(2**31)
        place = campaign.scratch / name.replace(" ", "-")
        self.unbroken, self.killed, self.log = place / "unbroken", place / "killed", place / "log"
        for folder in (self.unbroken, self.killed):
            self.command.prepare(folder, self.seed)

    def run(self, timing: Timing | None) -> Timing:
        """Do all of it; how long the command takes, which the first job measures."""
        timing = self._unbroken(slowly=timing is None) or timing
        assert timing is not None
        expected = kept(self.unbroken)
        if not self.found.jobs:
            for unseen in blind_spots(self.unbroken, self.log.parent):
                self.complain(f"the comparison does not see {unseen}")
        for number in range(self.command.kills + 1):
            enough = self.found.kills >= self.campaign.wanted or self.campaign.clock.is_over
            last = number == self.command.kills or enough
            if self._attempt(timing, last):
                break
        for difference in differences(kept(self.killed), expected):
            self.complain(difference)
        for ledger in ledgers(self.killed):
            self.found.rows += recorded(ledger)
            with self._started(["verify", str(ledger)], self.killed, 0.0) as running:
                if running.process.wait():
                    self.complain(f"{ledger.name} does not verify: {running.said()}")
        return timing

    def _unbroken(self, slowly: bool) -> Timing | None:
        began, first = time.monotonic(), 0.0
        files, placed = _Changes(self.unbroken), _Changes(self.unbroken, beside=True)
        with self._started(
            self.command.line(self.seed), self.unbroken, self.command.pause if slowly else 0.0
        ) as running:
            if not running.ended_before(lambda: files.seen() > 0 and any(map(recorded, ledgers(self.unbroken)))):
                first = time.monotonic() - began
            running.ended_before(lambda: files.seen() + placed.seen() < 0)
            if running.process.returncode:
                raise ChildProcessError(f"the unbroken run failed: {running.said()}")
        return Timing(first, time.monotonic() - began, files.seen(), placed.seen()) if slowly else None

    def _attempt(self, timing: Timing, last: bool) -> bool:
        """Run the command, and kill it unless it is the last time; whether it ended by itself."""
        with self._started(self.command.line(self.seed), self.killed, 0.0 if last else self.command.pause) as running:
            condition = (lambda: False) if last else self._moment(timing)
            if running.ended_before(condition):
                if running.process.returncode:
                    self.complain(f"it did not go on after kill {self.found.kills}: {running.said()}")
                if left := running.dismiss({}):
                    self.complain(f"processes outlived it: {left}")
                return True
            early = not any(map(recorded, ledgers(self.killed)))
            if left := running.kill(everyone=self.command.workers and self.moment.random() < 0.5):
                self.complain(f"processes outlived the kill: {left}")
        self.found.kills += 1
        self.found.early += early
        self.campaign.progress.advance()
        for ledger in ledgers(self.killed):
            self._look_at(ledger)
        return False

    def _moment(self, timing: Timing) -> Callable[[], bool]:
        """When to kill: at a time, or at a change of files."""
        if self.moment.random() < AT_FILES:
            beside = timing.placed > 0 and self.moment.random() < 0.5
            files = _Changes(self.killed, beside)
            wanted = self.moment.randint(1, timing.placed if beside else timing.changes)
            delay = self.moment.uniform(0, self.command.pause if beside else SOON)
            after = time.monotonic() + timing.whole  # if there are fewer changes

            def changed() -> bool:
                if files.seen() >= wanted:
                    time.sleep(delay)
                    return True
                return time.monotonic() > after

            return changed
        begin = (EARLY if self.moment.random() < EARLY else 1 - EARLY) * timing.first_vote
        until = timing.first_vote + 0.6 * (timing.whole - timing.first_vote)  # what is left gets less from kill to kill
        at = time.monotonic() + self.moment.uniform(begin, until)
        return lambda: time.monotonic() > at

    def _look_at(self, ledger: Path) -> None:
        """What a kill leaves is sound, as far as it goes, or says what to do."""
        try:
            with Ledger.open(ledger) as opened:
                for problem in verify(opened):
                    self.complain(f"after kill {self.found.kills}, {ledger.name}: {problem}")
        except DualrsError:
            pass  # not founded, or in the middle of a write: the same command mends it, which is seen at the end

    @contextmanager
    def _started(self, words: list[str], folder: Path, pause: float) -> Iterator[Running]:
        running = start(words, folder, self.log, pause)
        try:
            yield running
        finally:
            if running.process.poll() is None:
                running.kill(everyone=True)

    def complain(self, what: str) -> None:
        """Note a violation, with what repeats the job."""
        said = f"{self.name}, --seed {self.campaign.seed}: {what}"
        self.found.violations.append(said)
        self.campaign.progress.say(f"violation: {said}")


class _Changes:
    """Counts how often the names of files in a folder have changed since; if asked, of hidden ones alone."""

    def __init__(self, folder: Path, beside: bool = False) -> None:
        self._folder, self._start, self._seen = folder, "." if beside else "", 0
        self._names = self._now()

    def seen(self) -> int:
        """How often so far."""
        now = self._now()
        self._seen += now != self._names
        self._names = now
        return self._seen

    def _now(self) -> set[str]:
        every = ((where, name) for where, _, names in os.walk(self._folder) for name in names)
        return {os.path.join(where, name) for where, name in every if name.startswith(self._start)}


def _report(found: list[Found], seconds: float) -> Report:
    report = Report(
        "kills",
        f"{sum(f.kills for f in found)} kill -9 over {len(found)} commands, each run again until it ended, and then "
        "compared with an unbroken run",
        (
            "command",
            "kills",
            "before the first vote",
            "runs brought to their end",
            "rows of votes compared",
            "violations",
        ),
        seconds=seconds,
    )
    for one in found:
        numbers = (one.kills, one.early, one.jobs, one.rows, len(one.violations))
        report.rows.append((f"dualrs {one.command.name}", *(f"{number:,}" for number in numbers)))
        report.violations += one.violations
        report.figures[one.command.name] = dict(
            zip(("kills", "early", "jobs", "rows", "violations"), numbers, strict=True)
        )
    return report
