"""Figures: the curve that is drawn is the accuracy that is tabulated."""

import re
import sys
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from report_cases import a_header, made

from dualrs.errors import BadTable, MissingExtra, UnusableVotes
from dualrs.report import figures
from dualrs.report.accuracy import certified_accuracy
from dualrs.report.diagnostics import FixedRadii
from dualrs.report.figures import (
    _pens,
    draw_accuracy,
    draw_best_sigma,
    draw_p_a,
    draw_penalty,
    draw_radius_sigma,
    draw_regret,
    draw_slack,
    draw_why,
)
from dualrs.report.gallery import Copies, explain
from dualrs.storage import Ledger
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


def test_no_method_is_left_out_however_many_there_are(tmp_path):
    names = [f"method {k}" for k in range(13)]
    draw_accuracy(dict.fromkeys(names, SOME), tmp_path / "a.svg")
    assert len(shapes(tmp_path / "a.svg")) >= 13


def shapes(path):
    """The different pens, colour and dashes, of an SVG."""
    return set(re.findall(r'style="(fill: none; stroke[^"]*)"', path.read_text()))


FIXED = FixedRadii(
    ids=("a", "b", "c", "d"),
    sigmas=(0.5, 0.25),
    radii=np.array([[0.5, 0.2], [0.0, 0.3], [0.7, 0.1], [0.0, 0.0]]),
    chosen=np.array([0, 0, 1, 0]),
)


@pytest.fixture
def drawn(monkeypatch):
    """What is put on axes: legends, bars and lines as they are asked for."""
    from matplotlib.axes import Axes

    calls = []
    for name in ("step", "bar", "plot"):
        real = getattr(Axes, name)

        def spy(self, *args, _real=real, _name=name, **options):
            calls.append((_name, args, options))
            return _real(self, *args, **options)

        monkeypatch.setattr(Axes, name, spy)
    return calls


def test_best_sigma_has_a_bar_per_sigma_and_one_for_none(tmp_path, drawn):
    draw_best_sigma({"one": FIXED, "two": FIXED}, tmp_path / "a.png")
    assert [list(args[1]) for _, args, _ in drawn] == [[25.0, 50.0, 25.0]] * 2  # sigma 0.25, sigma 0.5, none


def test_radius_is_drawn_against_rising_sigma(tmp_path, drawn):
    draw_radius_sigma(FIXED, ["c", "a"], tmp_path / "a.png")
    assert [(list(args[0]), list(args[1])) for _, args, _ in drawn] == [
        ([0.25, 0.5], [0.1, 0.7]),
        ([0.25, 0.5], [0.2, 0.5]),
    ]


def test_an_input_that_is_not_there_is_named(tmp_path):
    with pytest.raises(BadTable, match="no input z with all votes; the first is a"):
        draw_radius_sigma(FIXED, ["z"], tmp_path / "a.png")
    assert not list(tmp_path.iterdir())


def test_intercepts_stand_in_the_legend(tmp_path, drawn):
    draw_regret({"dual": FIXED}, tmp_path / "a.png")
    draw_slack({"dual": np.array([-1.0, -0.5, 0.0, 2.0])}, tmp_path / "b.png")
    draw_p_a({"dual": np.array([0.1, 0.5, 0.6, 0.9, 1.0])}, tmp_path / "c.png")
    assert [options["label"] for kind, _, options in drawn if kind == "step"] == [
        "dual (50.0%)",
        "dual (50.0%)",
        "dual (40.0%)",
    ]


def test_regret_without_a_router_is_refused(tmp_path):
    with pytest.raises(UnusableVotes, match="no router voted"):
        draw_regret({"labels": FixedRadii(FIXED.ids, FIXED.sigmas, FIXED.radii, None)}, tmp_path / "a.png")


def test_penalty_shows_the_digits_of_the_paper(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("matplotlib").rcParams, "svg.fonttype", "none")  # letters, not outlines
    draw_penalty(tmp_path / "a.svg")
    assert all(digits in (tmp_path / "a.svg").read_text() for digits in ("2.2877", "0.8256", "0.2409"))


def test_nine_curves_have_nine_looks_in_black_and_white_too():
    pens = [*islice(_pens(), 81)]
    assert len(set(pens)) == 81
    assert len({colour for colour, _ in pens[:9]}) == len({dash for _, dash in pens[:9]}) == 9


def test_the_legend_says_what_its_numbers_are(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("matplotlib").rcParams, "svg.fonttype", "none")
    draw_slack({"run": np.array([-0.1, 0.2])}, tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text()
    assert "in brackets: inputs that the routing limits" in text
    assert "run (50.0%)" in text


@pytest.mark.parametrize(("images", "only_chosen"), [(True, False), (False, True)])
def test_why_is_drawn_with_and_without_images_and_experts(tmp_path, images, only_chosen):
    header = a_header(rule="paper", votes="needed" if only_chosen else "all")
    with Ledger.open(made(tmp_path / "run.ledger", header, count=2, only_chosen=only_chosen)) as ledger:
        why = explain(ledger)[0]
    image = np.zeros((3, 8, 8), dtype=np.uint8)
    copies = Copies(image, [image] * 4, [None, image, image, image]) if images else None
    draw_why(why, tmp_path / "why.png", copies)
    assert (tmp_path / "why.png").stat().st_size > 5000


def test_classes_of_one_name_have_a_bar_each_and_long_names_are_cut(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("matplotlib").rcParams, "svg.fonttype", "none")
    with Ledger.open(made(tmp_path / "run.ledger", count=2)) as ledger:
        why = explain(ledger)[0]
    counts = np.array([100, 250, 150, 0])
    seen = why.seen._replace(experts=(counts,) * 3)
    names = ("crane", "crane", "German short-haired pointer", "owl")
    draw_why(replace(why, seen=seen), tmp_path / "why.svg", names=names)
    text = (tmp_path / "why.svg").read_text()
    assert text.count(">crane<") == 2 * 3
    assert text.count(">German short-hair…<") == 3
