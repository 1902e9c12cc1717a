"""What every campaign is given, and what it leaves: settings, figures and violations; bars with the time left."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

SHOWN = 20  # violations that are printed; all are in the file of figures


@dataclass(frozen=True)
class Settings:
    """How long, from which seed, and how much of the whole campaign."""

    seed: int = 0
    scale: float = 1.0
    seconds: float = float("inf")

    def scaled(self, count: int, least: int = 1) -> int:
        """So much of a count as is asked for."""
        return max(least, round(self.scale * count))


@dataclass
class Report:
    """The figures of one campaign: a table for people, the same and more for a file, and what was found."""

    campaign: str
    headline: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    def show(self, console: Console) -> None:
        """Print the table, in Markdown for the documents, then the verdict."""
        say = partial(console.print, highlight=False, markup=False, soft_wrap=True)
        say(f"\n{self.campaign}: {self.headline}\n\n{self._table()}\n")
        for violation in self.violations[:SHOWN]:
            say(f"violation: {violation}")
        if len(self.violations) > SHOWN:
            say(f"... and {len(self.violations) - SHOWN} more; --output FILE.json keeps all of them")
        verdict = f"{len(self.violations)} violations" if self.violations else "nothing was found"
        say(f"{self.campaign}: {verdict}, after {self.seconds / 60:.1f} minutes")

    def _table(self) -> str:
        """Columns side by side, numbers to the right."""
        lines = [self.columns, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.columns))]
        right = [all(row[i][:1].isdigit() or not row[i] for row in self.rows) for i in range(len(self.columns))]
        padded = [
            [c.rjust(w) if r else c.ljust(w) for c, w, r in zip(line, widths, right, strict=True)] for line in lines
        ]
        rule = ["-" * (w - 1) + (":" if r else "-") for w, r in zip(widths, right, strict=True)]
        return "\n".join(f"| {' | '.join(line)} |" for line in (padded[0], rule, *padded[1:]))

    def as_json(self) -> dict[str, Any]:
        """Everything, for a file."""
        return {
            "headline": self.headline,
            "seconds": round(self.seconds, 1),
            "table": [dict(zip(self.columns, row, strict=True)) for row in self.rows],
            "violations": self.violations,
            **self.figures,
        }


class Clock:
    """When a campaign began, and whether its time is up."""

    def __init__(self, seconds: float) -> None:
        self._began, self._limit = time.monotonic(), seconds

    @property
    def spent(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._began

    def stop(self) -> None:
        """Have the time be up."""
        self._limit = 0.0

    @property
    def is_over(self) -> bool:
        """Whether nothing new may be begun."""
        return self.spent > self._limit


@dataclass(frozen=True)
class Bar:
    """A bar with the time left."""

    progress: Progress
    task: TaskID

    def advance(self, by: int = 1) -> None:
        """Note that so much more is done."""
        self.progress.advance(self.task, by)

    def say(self, what: str) -> None:
        """Print a line above the bar."""
        self.progress.console.print(what, highlight=False, markup=False, soft_wrap=True)


@contextmanager
def bar(what: str, total: int, console: Console) -> Iterator[Bar]:
    """Show how far a campaign is."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
    )
    with Progress(*columns, TimeRemainingColumn(), console=console, refresh_per_second=2) as progress:
        yield Bar(progress, progress.add_task(what, total=total))
