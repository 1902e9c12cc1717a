"""The campaign of simulations: false certificates where the truth is known, judged by exact binomial tests.

Enters: how many certifications. Leaves: for each rule its worst setting with its rate as a multiple of alpha. The claim
that a setting errs with probability at most alpha is rejected if so many errors, or more, would have probability below
1e-6 over the number of settings: an honest library fails the whole campaign with probability below 1e-6. Twins with
raised levels must be rejected.
"""

import os
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context

import numpy as np
from rich.console import Console
from scipy.stats import binom

from soak.report import Clock, Report, Settings, bar
from soak.setting import Errors, Setting
from soak.settings import all_settings

TRIALS = 52_000_000
AT_ONCE = 10_000  # trials a task
TWIN = 10_000  # trials at least, so that a small campaign proves it too
FALSE_ALARM = 1e-6
ENOUGH = 20  # errors at a rate of alpha, for a rate to be called the worst
PROCESSES = 2


@dataclass
class Found:
    """The false certificates of one setting so far."""

    setting: Setting
    trials: int = 0
    errors: int = 0

    @property
    def tells(self) -> bool:
        """Whether there are trials enough for its rate to mean something."""
        return self.trials * self.setting.alpha >= ENOUGH

    @property
    def rate(self) -> float:
        """As a multiple of alpha."""
        return self.errors / max(self.trials, 1) / self.setting.alpha

    @property
    def p_value(self) -> float:
        """Probability of at least this many errors if each trial errs with probability alpha."""
        return float(binom.sf(self.errors - 1, self.trials, self.setting.alpha))


def simulate(settings: Settings, console: Console) -> Report:
    """Run the campaign."""
    clock, every = Clock(settings.seconds), all_settings(settings.seed)
    planned = _planned(settings, every)
    found = [Found(setting) for setting in every]
    fork = get_context("forkserver")
    with (
        bar("simulations", sum(planned), console) as progress,
        ProcessPoolExecutor(PROCESSES, mp_context=fork, initializer=os.nice, initargs=(5,)) as pool,
    ):
        running: dict[Future[int], tuple[int, int]] = {}
        for number, part, size in _tasks(planned):
            running[pool.submit(_errors, settings.seed, number, part, size)] = number, size
            while len(running) > 2 * PROCESSES:
                progress.advance(_take(running, found))
            if clock.is_over:
                break
        while running:
            progress.advance(_take(running, found))
    return _report(found, clock.spent)


def _planned(settings: Settings, every: list[Setting]) -> list[int]:
    """How many trials each setting gets."""
    each = settings.scaled(TRIALS) / sum(s.weight for s in every)
    return [max(round(each * s.weight), TWIN if s.twin else 1) for s in every]


def _tasks(planned: list[int]) -> Iterator[tuple[int, int, int]]:
    """Setting, part and size of each task: a part of all settings before the next of any, as time may be up."""
    for part in range(-(-max(planned) // AT_ONCE)):
        for number, trials in enumerate(planned):
            size = min(AT_ONCE, trials - part * AT_ONCE)
            if size > 0:
                yield number, part, size


def _take(running: dict[Future[int], tuple[int, int]], found: list[Found]) -> int:
    """Take in what is done; how many trials that was."""
    done, _ = wait(running, return_when=FIRST_COMPLETED)
    trials = 0
    for future in done:
        number, size = running.pop(future)
        found[number].errors += future.result()
        found[number].trials += size
        trials += size
    return trials


def _errors(seed: int, number: int, part: int, size: int) -> int:
    """The false certificates of one task, in a process of its own."""
    return _made(seed, number)(size, np.random.default_rng([seed, 1, number, part]))


@cache
def _made(seed: int, number: int) -> Errors:
    return all_settings(seed)[number].make()


def _report(found: list[Found], seconds: float) -> Report:
    limit = FALSE_ALARM / len(found)
    honest, twins = [f for f in found if not f.setting.twin], [f for f in found if f.setting.twin]
    report = Report(
        "simulations",
        f"{sum(f.trials for f in honest):,} certifications in {len(honest)} settings, "
        f"{sum(f.errors for f in honest):,} false ones; a setting is rejected at p < {limit:.1g}",
        (
            "rule",
            "settings",
            "certifications",
            "false",
            "worst rate / alpha",
            "its p-value",
            "smallest p",
            "where the rate is worst",
        ),
        seconds=seconds,
    )
    for name in dict.fromkeys(f.setting.rule for f in honest):
        own = [f for f in honest if f.setting.rule == name]
        worst = max(own, key=lambda f: (f.tells, f.rate))
        trials, errors = sum(f.trials for f in own), sum(f.errors for f in own)
        report.rows.append(
            (name, f"{len(own)}", f"{trials:,}", f"{errors:,}", f"{worst.rate:.3f}", f"{worst.p_value:.2g}",
             f"{min(f.p_value for f in own):.2g}", f"{worst.setting.what}; {worst.errors:,} of {worst.trials:,}")
        )  # fmt: skip
    for twin in twins:
        report.rows.append(
            (f"twin of {twin.setting.rule}", "1", f"{twin.trials:,}", f"{twin.errors:,}", f"{twin.rate:.3f}",
             f"{twin.p_value:.2g}", "", f"{twin.setting.what}: {'caught' if twin.p_value < limit else 'NOT CAUGHT'}")
        )  # fmt: skip
    for number, one in enumerate(found):
        said = f"{one.setting.rule}, {one.setting.what}: {one.errors:,} of {one.trials:,}, {one.rate:.3f} alpha"
        if not one.setting.twin and one.p_value < limit:
            report.violations.append(f"setting {number}: {said}, p = {one.p_value:.2g}")
        if one.setting.twin and one.p_value >= limit:
            report.violations.append(f"setting {number}: a twin with raised levels was not caught: {said}")
    report.figures["settings"] = [
        {"rule": f.setting.rule, "what": f.setting.what, "alpha": f.setting.alpha, "twin": f.setting.twin,
         "trials": f.trials, "errors": f.errors, "rate / alpha": f.rate, "p": f.p_value}
        for f in found
    ]  # fmt: skip
    return report
