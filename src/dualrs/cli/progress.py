"""A progress bar for collecting votes: inputs done, votes a second, time left."""

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from dualrs.collect import Progress as Collected


class Bar:
    """Shows on the terminal's error stream how a collection of votes gets on."""

    def __init__(self, title: str, inputs: int) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(20),
            TextColumn("{task.fields[done]}/{task.total} inputs · {task.fields[rate]} ·"),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=Console(stderr=True),
        )
        self._task = self._progress.add_task(title, total=inputs, rate="checking the networks", done=0)
        self._fresh = True
        self._began = time.perf_counter()

    def __enter__(self) -> "Bar":
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def update(self, collected: Collected) -> None:
        """Show the present state; the first call tells where an earlier run had stopped."""
        if self._fresh:
            self._progress.reset(self._task, completed=collected.inputs)
            self._fresh = False
        rate = collected.votes / max(time.perf_counter() - self._began, 1e-9)
        self._progress.update(
            self._task, completed=round(collected.work, 3), done=collected.inputs, rate=f"{rate:,.0f} votes/s"
        )
