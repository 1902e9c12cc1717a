"""Progress bars on the terminal's error stream: what is done, how fast, and the time left."""

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from dualrs.sampling.collect import Progress as Collected
    from dualrs.scale.workers import Workers


_BETWEEN_LINES = 60.0  # seconds, where output goes into a file


def has_screen(console: Console | None = None) -> bool:
    """Whether there is a terminal or a notebook to show a bar on."""
    console = console or Console(stderr=True)
    return console.is_terminal or console.is_jupyter


class OneBar:
    """A bar with one task, shown while the context is open; where output goes into a file, a line a minute."""

    def __init__(self, title: str, total: float | None, state: str, *, passing: bool = False) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(20),
            TextColumn("{task.fields[state]} ·"),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=Console(stderr=True),
            transient=passing,
        )
        self._task = self._progress.add_task(title, total=total, state=state)
        self._fresh = True
        self._said = time.perf_counter()

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def _show(self, completed: float, total: float, state: str) -> None:
        if self._fresh:  # the first call tells where an earlier run had stopped
            self._progress.reset(self._task, completed=int(completed), total=int(total))
            self._fresh = False
        self._progress.update(self._task, completed=completed, total=total, state=state)
        silent = self._progress.disable or has_screen(self._progress.console)
        if not silent and time.perf_counter() - self._said >= _BETWEEN_LINES:
            self._said, task = time.perf_counter(), self._progress.tasks[self._task]
            left = "" if task.time_remaining is None else f" · {timedelta(seconds=round(task.time_remaining))} left"
            self._progress.console.print(f"{task.description} · {state}{left}", highlight=False, soft_wrap=True)


class Bar(OneBar):
    """How a collection of votes gets on."""

    def __init__(self, title: str, inputs: int, *, passing: bool = False) -> None:
        super().__init__(title, inputs, f"0/{inputs} inputs · checking the networks", passing=passing)
        self.workers: Workers | None = None
        self._inputs = inputs
        self._began = time.perf_counter()

    def wait(self, what: str) -> None:
        """Say what is done before the first vote."""
        self._progress.update(self._task, state=f"0/{self._inputs} inputs · {what}")

    def update(self, collected: "Collected") -> None:
        """Show the present state."""
        if collected.to_check:
            done, total = collected.checked, collected.to_check
            self._show(done, total, f"drawing recorded votes again · {done:,}/{total:,} votes")
            self._fresh = True
            return
        if self._fresh:  # starting workers, and checking networks, is no counting
            self._began = time.perf_counter()
        rate = collected.votes / max(time.perf_counter() - self._began, 1e-9)
        state = f"{collected.inputs}/{self._inputs} inputs · {rate:,.0f} votes/s"
        if self.workers is not None:
            state += f" · {self.workers.alive}/{self.workers.wanted} workers"
        self._show(round(collected.work, 3), self._inputs, state)


class MeasuringBar(OneBar):
    """How many images were looked at."""

    def __init__(self, title: str, images: int) -> None:
        super().__init__(title, images, f"0/{images:,} images")
        self._images, self._done = images, 0

    def update(self, images: int) -> None:
        """Count images that were looked at just now."""
        self._done += images
        self._show(self._done, self._images, f"{self._done:,}/{self._images:,} images")


class AttackBar(OneBar):
    """How many certificates were attacked."""

    def __init__(self, title: str) -> None:
        super().__init__(title, None, "opening")

    def update(self, done: int, total: int) -> None:
        """Show the present state."""
        self._show(done, total, f"{done:,}/{total:,} certificates")


class PassingBar(OneBar):
    """How an examination gets on, one pass after the other; gone when it is over."""

    def __init__(self, title: str) -> None:
        super().__init__(title, None, "opening", passing=True)
        self._progress.disable = not self._progress.console.is_terminal
        self._pass = ""

    def update(self, what: str, done: int, total: int) -> None:
        """Show the present state; another pass begins the bar anew."""
        self._fresh = self._fresh or what != self._pass
        self._pass = what
        self._show(done, total, f"{what} · {done:,}/{total:,}")
