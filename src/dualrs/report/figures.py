"""Figures in paper form: accuracy against radius, the best sigma, regret, slack, p_A, and why one radius is what it is.

Enters: results with labels, or what `diagnostics` and `gallery` measured, by name. Leaves: a picture file, in the
format of its suffix.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualrs.errors import BadTable
from dualrs.extras import need
from dualrs.files import whole_file
from dualrs.report.accuracy import certified_accuracy
from dualrs.report.diagnostics import SHARES, SPLITS, Ecdf, FixedRadii, confidence_penalty
from dualrs.report.gallery import Copies, Why, class_name, shortened, top_classes
from dualrs.report.nearest import Nearest
from dualrs.storage.results import Results
from dualrs.theory.bounds import Floats
from dualrs.theory.radius import round_down

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Colours of Okabe and Ito, told apart by the colour-blind too, and each with a dash of its own, so that nine curves
# have nine looks without colours too.
Dash = str | tuple[int, tuple[float, ...]]
_DASHES: tuple[Dash, ...] = (
    *("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)), (0, (9, 2)), (0, (2.5, 1))),
    *((0, (5, 1, 1, 1, 1, 1)), (0, (9, 2, 2, 2)), (0, (1, 2.5))),
)
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#56b4e9", "#e69f00", "#7a4a12", "#5e5e8c")
_GREYS = ("#b0b0b0", "#808080", "#404040")
_SUFFIXES = (".png", ".svg", ".pdf")
_UNDATED = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}  # the same picture is the same file
_SIZE = (6.4, 4.0)
_LABEL = 18  # characters of a class beside its bar


def draw_accuracy(methods: Mapping[str, Results], path: Path, title: str = "", *, behind: Collection[str] = ()) -> None:
    """Draw certified accuracy against radius, one exact step curve per method; those ``behind`` in thin grey."""
    furthest = max((float(r.radius.max(initial=0.0)) for r in methods.values()), default=0.0)
    pens, greys = _pens(), cycle((grey, dash) for dash in _DASHES[:4] for grey in _GREYS)
    with _picture(path, title) as axes:
        for name, results in methods.items():
            colour, dash = next(greys if name in behind else pens)
            width = 1.0 if name in behind else 1.8
            # What counts at radius 0 alone is a line at the very left.
            jumps = np.unique(np.concatenate([[0.0], results.radius[results.correct & (results.radius > 0)]]))
            accuracy = 100 * certified_accuracy(results, jumps.tolist())
            # certified up to and including its own radius, and not beyond
            axes.step(
                [*jumps, furthest * 1.05], [*accuracy, 0.0], where="pre", color=colour, ls=dash, lw=width, label=name
            )
        axes.set_xlim(0, furthest * 1.05 or 1)
        axes.set_ylim(0, 100)
        axes.set_xlabel("L2 radius")
        axes.set_ylabel("certified accuracy (%)")
        _legend(axes, methods)


def draw_best_sigma(runs: Mapping[str, FixedRadii], path: Path, title: str = "") -> None:
    """Draw for how many inputs each sigma gives the largest radius; Figure 1 of the paper, left."""
    sigmas = sorted({sigma for fixed in runs.values() for sigma in fixed.sigmas})
    bars = {}
    for name, fixed in runs.items():
        share = dict(zip(fixed.sigmas, 100 * fixed.best_counts / max(len(fixed.radii), 1), strict=True))
        nowhere = 100 - sum(share.values()) if len(fixed.radii) else 0.0
        bars[name] = [*(share.get(sigma, 0.0) for sigma in sigmas), nowhere]
    with _picture(path, title) as axes:
        written = {name: [f"{share:.0f}" for share in shares] for name, shares in bars.items()}
        _grouped(axes, [*(f"{sigma:g}" for sigma in sigmas), "none"], bars, written, 8)
        axes.set_xlabel("sigma with the largest certified radius")
        axes.set_ylabel("inputs (%)")
        _legend(axes, runs)


def draw_radius_sigma(fixed: FixedRadii, ids: Sequence[str], path: Path, title: str = "") -> None:
    """Draw the radius of some inputs against sigma; Figure 1 of the paper, right."""
    rising = np.argsort(fixed.sigmas)
    with _picture(path, title) as axes:
        for name, (colour, dash) in zip(ids, _pens(), strict=False):
            if name not in fixed.ids:
                raise BadTable(f"there is no input {name} with all votes; the first is {fixed.ids[0]}")
            radii = fixed.radii[fixed.ids.index(name)][rising]
            axes.plot(np.asarray(fixed.sigmas)[rising], radii, color=colour, ls=dash, marker="o", ms=4, label=name)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("sigma")
        axes.set_ylabel("certified radius of the true class")
        axes.legend(frameon=False, fontsize=8)


def draw_regret(runs: Mapping[str, FixedRadii], path: Path, title: str = "") -> None:
    """Draw the ECDF of Delta R_c = R*_c - R_c; its intercept is the share of inputs with an optimal sigma."""
    regrets = {name: fixed.regret for name, fixed in runs.items()}
    label = "regret: radius of the best sigma less that of the chosen one"
    with _ecdfs(regrets, path, title, label, lambda ecdf: ecdf.up_to(0.0), "inputs whose sigma is optimal") as axes:
        axes.axhline(100, color="black", ls="--", lw=0.8)  # a router that always names the best sigma
        axes.set_xlim(left=0)


def draw_slack(runs: Mapping[str, Floats], path: Path, title: str = "") -> None:
    """Draw the ECDF of Delta R_sigma = R_sigma - R_c; below zero, the routing holds the radius down."""
    label = "slack: radius of the routing less that of the class"
    with _ecdfs(runs, path, title, label, lambda ecdf: ecdf.below(0.0), "inputs that the routing limits") as axes:
        axes.axvline(0, color="black", ls="--", lw=0.8)


def draw_p_a(runs: Mapping[str, Floats], path: Path, title: str = "") -> None:
    """Draw the ECDF of p_A, the share of votes for the true class at the chosen sigma; in brackets, up to one half."""
    label, half = "share of votes for the true class", "inputs with at most half of the votes"
    with _ecdfs(runs, path, title, label, lambda ecdf: ecdf.up_to(0.5), half) as axes:
        axes.axvline(0.5, color="black", ls="--", lw=0.8)
        axes.set_xlim(0, 1)


def draw_penalty(path: Path, title: str = "") -> None:
    """Draw the confidence penalty: how much radius each split alpha : beta costs, at each share of votes."""
    rows = confidence_penalty()
    radius = {(row.split, row.share): row.radius for row in rows}
    whole, *others = SPLITS  # the first has all of alpha for the class
    bars = {f"{a}:{b}": [radius[whole, share] - radius[(a, b), share] for share in SHARES] for a, b in others}
    # the digits that the paper prints
    left = {f"{a}:{b}": [f"radius\n{radius[(a, b), share]:.4f}" for share in SHARES] for a, b in others}
    with _picture(path, title or "sigma 1, n 100,000, alpha + beta = 0.001, the class limits") as axes:
        ticks = [f"{share:g}\n(radius {radius[whole, share]:.4f})" for share in SHARES]
        _grouped(axes, ticks, bars, left, 7)
        axes.set_xlabel("share of votes for the class (radius without a router)")
        axes.set_ylabel("radius lost to the router's share of alpha")
        axes.legend(frameon=False, title="alpha : beta, for class : router")


def draw_why(
    why: Why,
    path: Path,
    copies: Copies | None = None,
    names: Sequence[str] | None = None,
    nearest: Nearest | None = None,
) -> None:
    """Draw one input's radius explained: its images if there are any, the votes as bars, the radii, the limit.

    ``nearest`` is what an attack found beside it.
    """
    sigmas = why.scheme.sigmas_of(why.certificate)
    stages = (["router"] if why.seen.router is not None else []) + [f"sigma {s:g}" for s in sigmas]
    pictures = _picture_rows(stages, copies, nearest, names)
    rows, columns = len(pictures) + 2, max(len(stages), *map(len, pictures), 1)
    said = [f"{why.id}: {why.claim(names)}", why.reason(names), *([] if nearest is None else [nearest.said(names)])]
    with _canvas(path, (2.1 * columns + 0.6, 1.7 * rows + 0.5)) as figure:
        figure.suptitle("\n".join(said), fontsize=8, wrap=True)
        grid = figure.add_gridspec(rows, columns)
        for row, line in enumerate(pictures):
            for column, (what, image) in enumerate(line):
                if image is not None:
                    axes = figure.add_subplot(grid[row, column])
                    axes.set_axis_off()
                    shown = image.transpose(1, 2, 0) if image.shape[0] == 3 else image[0]
                    axes.imshow(shown, cmap="gray", vmin=0, vmax=255)
                    axes.set_title(what, fontsize=7)
        for column, (stage, bars) in enumerate(zip(stages, _bars(why, names), strict=True)):
            axes = figure.add_subplot(grid[rows - 2, column])
            axes.set_title(f"votes, {stage}", fontsize=7)
            if not bars:
                axes.set_axis_off()
                axes.text(0.5, 0.5, "not asked", ha="center", fontsize=7, transform=axes.transAxes)
                continue
            axes.barh(range(len(bars)), [share for _, share in bars], color=_COLOURS[0])
            axes.set_yticks(range(len(bars)), [shortened(name, _LABEL) for name, _ in bars], fontsize=6)
            axes.set_xlim(0, 1)
            axes.invert_yaxis()
            axes.tick_params(axis="x", labelsize=6)
        axes = figure.add_subplot(grid[rows - 1, :])
        radii = why.radii()
        written = [round_down(r) for r in radii.values()]
        if nearest is not None and nearest.attack.upper is not None:
            radii[f"attack on {nearest.method}"] = nearest.attack.upper
            written.append(nearest.upper)
        found = axes.barh(range(len(radii)), list(radii.values()), color=_COLOURS[1])
        axes.bar_label(found, written, fontsize=6, padding=2)
        axes.set_yticks(range(len(radii)), list(radii), fontsize=6)
        axes.invert_yaxis()
        axes.margins(x=0.15)
        axes.tick_params(axis="x", labelsize=6)
        axes.set_title("radii", fontsize=7)


def _picture_rows(
    stages: Sequence[str], copies: Copies | None, nearest: Nearest | None, names: Sequence[str] | None
) -> list[list[tuple[str, NDArray[np.uint8] | None]]]:
    """Rows of images with their titles: the input and what an attack made of it, then copies, a column per stage."""
    if copies is None:
        return []
    rows = [[("input", copies.image), *([] if nearest is None else _found(copies.image, nearest, names))]]
    for kind, images in (("noisy", copies.noisy), ("denoised", copies.denoised)):
        if any(image is not None for image in images):
            rows.append([(f"{kind}, {stage}", image) for stage, image in zip(stages, images, strict=True)])
    return rows


def _found(
    attacked: NDArray[np.uint8], nearest: Nearest, names: Sequence[str] | None
) -> Iterator[tuple[str, NDArray[np.uint8] | None]]:
    """The image that an attack found, and its difference; nothing where it found none."""
    if (difference := nearest.difference()) is not None:
        yield f"answered with {class_name(nearest.attack.answer, names)}", nearest.image(attacked)
        yield f"the difference, times {difference[1]}", difference[0]


def _bars(why: Why, names: Sequence[str] | None) -> Iterator[list[tuple[str, float]]]:
    """Answers and their shares of the votes, for the router and for each sigma; empty where it was not sampled.

    Two of them may have one name: ImageNet has two cranes.
    """
    if (router := why.seen.router) is not None:
        yield [(route, count / router.sum()) for route, count in zip(why.scheme.route_names, router, strict=True)]
    for counts in why.seen.experts:
        if counts is None:
            yield []
        else:
            yield [(name, k / counts.sum()) for name, k in top_classes(counts, names, why.scheme.classes)]


@contextmanager
def _ecdfs(
    numbers: Mapping[str, Floats], path: Path, title: str, label: str, intercept: Callable[[Ecdf], float], meaning: str
) -> Iterator["Axes"]:
    """Axes with one distribution function per list of numbers, as steps in percent.

    The legend has its intercept, and says what that means.
    """
    found = {name: Ecdf.of(values) for name, values in numbers.items()}
    ends = [value for ecdf in found.values() for value in (ecdf.values[0], ecdf.values[-1])]
    with _picture(path, title) as axes:
        for (name, ecdf), (colour, dash) in zip(found.items(), _pens(), strict=False):
            x = [min(ends), *ecdf.values, max(ends)]
            y = [0.0, *(100 * ecdf.share), 100.0]
            axes.step(x, y, where="post", color=colour, ls=dash, lw=1.8, label=f"{name} ({100 * intercept(ecdf):.1f}%)")
        axes.set_ylim(0, 102)
        axes.set_xlabel(label)
        axes.set_ylabel("inputs (%)")
        axes.legend(frameon=False, fontsize=8, title=f"in brackets: {meaning}", title_fontsize=8)
        yield axes


def _grouped(
    axes: "Axes",
    ticks: Sequence[str],
    bars: Mapping[str, Sequence[float]],
    written: Mapping[str, Sequence[str]],
    size: int,
) -> None:
    """Bars side by side at each tick, one for each name, with what is written above them."""
    width = 0.8 / len(bars)
    for k, ((name, heights), (colour, _)) in enumerate(zip(bars.items(), _pens(), strict=False)):
        places = np.arange(len(ticks)) + (k - (len(bars) - 1) / 2) * width
        axes.bar_label(axes.bar(places, heights, width, color=colour, label=name), written[name], fontsize=size)
    axes.set_xticks(range(len(ticks)), ticks)


def _pens() -> Iterator[tuple[str, Dash]]:
    """A colour and a dash for each curve: nine looks, then the same colours with other dashes."""
    count = len(_COLOURS)
    return cycle((_COLOURS[k], _DASHES[(k + turn) % count]) for turn in range(count) for k in range(count))


def _legend(axes: "Axes", named: Mapping[str, object]) -> None:
    if len(named) > 1:
        axes.legend(frameon=False, fontsize=8)


@contextmanager
def _picture(path: Path, title: str) -> Iterator["Axes"]:
    """Axes to draw one diagram on."""
    with _canvas(path, _SIZE) as figure:
        axes = figure.add_subplot()
        axes.set_title(title, fontsize=10, loc="left")
        axes.grid(axis="y", color="#dddddd", lw=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        yield axes


def demand_drawable(path: Path) -> None:
    """Refuse a picture of no known format, or without the package that draws; before a run, and not after it."""
    if path.suffix not in _SUFFIXES:
        raise BadTable(f"a picture ends in {', '.join(_SUFFIXES)}; got {path}")
    need("matplotlib", "figures", "drawing")


@contextmanager
def _canvas(path: Path, size: tuple[float, float]) -> Iterator["Figure"]:
    """A figure, written to its file when all of it is drawn."""
    demand_drawable(path)
    from matplotlib import rc_context
    from matplotlib.figure import Figure  # draws without a window or a global state

    figure = Figure(figsize=size, layout="constrained")
    yield figure
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file, rc_context({"svg.hashsalt": "dualrs"}):
        figure.savefig(file, format=path.suffix[1:], dpi=160, metadata=_UNDATED.get(path.suffix))
