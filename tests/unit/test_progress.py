"""Progress: a bar on a screen, a line a minute in a file."""

import numpy as np
import pytest

from dualrs import Smoothed, progress
from dualrs.progress import Bar
from dualrs.sampling.collect import Progress
from dualrs.smoothed import model
from small import Small


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])
    return now


def reported(clock, seconds):
    with Bar("certifying", 500) as bar:
        for second in range(seconds):
            clock[0] = 1000.0 + second
            bar.update(Progress(inputs=second, votes=10 * second, work=float(second)))


def test_output_into_a_file_gets_a_line_a_minute(clock, capsys):
    reported(clock, 200)
    lines = capsys.readouterr().err.splitlines()
    between = [line.split("/")[0] for line in lines if line.startswith("certifying ·")]
    assert between == ["certifying · 60", "certifying · 120", "certifying · 180"]
    assert "━" in lines[-1]  # and the bar when it is over


def test_a_short_run_says_nothing_in_between(clock, capsys):
    reported(clock, 50)
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("screen", [True, False])
@pytest.mark.parametrize("asked", [None, True, False])
def test_python_shows_a_bar_where_there_is_a_screen(monkeypatch, capsys, screen, asked):
    monkeypatch.setattr(model, "has_screen", lambda: screen)
    shown = []
    monkeypatch.setattr(Bar, "update", lambda self, state: shown.append(state))
    smoothed = Smoothed(Small(), 0.25, batch_size=16)
    smoothed.certify(np.zeros((1, 6, 6), np.uint8), n=50, alpha=0.1, seed=0, progress=asked)
    assert bool(shown) == (screen if asked is None else asked)
