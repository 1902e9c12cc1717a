"""Figures: the curve that is drawn is the accuracy that is tabulated."""

import sys

import numpy as np
import pytest

from dualrs.errors import BadTable, MissingExtra
from dualrs.report import figures
from dualrs.report.accuracy import certified_accuracy
from dualrs.report.figures import draw_accuracy
from dualrs.storage.results import Results


def results(radii, correct):
    count = len(radii)
    return Results(
        ids=np.array([str(i) for i in range(count)]),
        index=np.arange(count),
        label=np.zeros(count, dtype=np.int64),
        prediction=np.where(correct, 0, 1),
        radius=np.asarray(radii, dtype=float),
        seconds=np.zeros(count),
    )


SOME = results([0.5, 1.0, 0.0, 0.25], [True, True, True, False])


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_picture_is_written_whole(tmp_path, suffix):
    draw_accuracy({"fusion": SOME, "paper": SOME}, tmp_path / "new" / f"a{suffix}", "a title")
    assert [p.name for p in (tmp_path / "new").iterdir()] == [f"a{suffix}"]
    assert (tmp_path / "new" / f"a{suffix}").stat().st_size > 1000


def test_drawn_steps_are_the_certified_accuracy(tmp_path, monkeypatch):
    from matplotlib.axes import Axes

    drawn = {}
    monkeypatch.setattr(Axes, "step", lambda self, x, y, **kw: drawn.update(x=np.array(x), y=np.array(y), **kw))
    draw_accuracy({"fusion": SOME}, tmp_path / "a.png")
    assert drawn["where"] == "pre"
    for radius in (0.0, 0.1, 0.5, 0.75, 1.0, 1.02):
        step = np.searchsorted(drawn["x"], radius)  # the value of a "pre" step holds up to and including its x
        assert drawn["y"][step] == pytest.approx(100 * certified_accuracy(SOME, [radius])[0])


def test_nothing_certified_is_drawn_as_nothing(tmp_path):
    draw_accuracy({"fusion": results([0.0, 0.0], [False, False])}, tmp_path / "a.png")


def test_other_formats_are_refused(tmp_path):
    with pytest.raises(BadTable, match=r"ends in .png, .svg, .pdf"):
        draw_accuracy({"fusion": SOME}, tmp_path / "a.gif")


def test_without_matplotlib_the_command_that_installs_it_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"pip install 'dualrs\[figures\]'"):
        figures.draw_accuracy({"fusion": SOME}, tmp_path / "a.png")
