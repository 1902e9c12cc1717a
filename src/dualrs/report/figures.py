"""Figures in paper form: certified accuracy against radius.

Enters: results with labels, by name. Leaves: a picture file, in the format of its suffix.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from dualrs.errors import BadTable
from dualrs.extras import need
from dualrs.files import whole_file
from dualrs.report.accuracy import certified_accuracy
from dualrs.storage.results import Results

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")  # told apart by the colour-blind too
_SUFFIXES = (".png", ".svg", ".pdf")


def draw_accuracy(methods: Mapping[str, Results], path: Path, title: str = "") -> None:
    """Draw certified accuracy against radius, one exact step curve per method."""
    if path.suffix not in _SUFFIXES:
        raise BadTable(f"a picture ends in {', '.join(_SUFFIXES)}; got {path}")
    need("matplotlib", "figures", "drawing")
    from matplotlib.figure import Figure  # draws without a window or a global state

    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.add_subplot()
    furthest = max(float(r.radius.max(initial=0.0)) for r in methods.values())
    for (name, results), colour in zip(methods.items(), _COLOURS, strict=False):
        jumps = np.unique(np.concatenate([[0.0], results.radius[results.correct & (results.radius > 0)]]))
        accuracy = 100 * certified_accuracy(results, jumps.tolist())
        # certified up to and including its own radius, and not beyond
        axes.step([*jumps, furthest * 1.05], [*accuracy, 0.0], where="pre", color=colour, lw=1.8, label=name)
    axes.set_xlim(0, furthest * 1.05 or 1)
    axes.set_ylim(0, 100)
    axes.set_xlabel("L2 radius")
    axes.set_ylabel("certified accuracy (%)")
    axes.set_title(title, fontsize=10, loc="left")
    axes.grid(axis="y", color="#dddddd", lw=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if len(methods) > 1:
        axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        figure.savefig(file, format=path.suffix[1:], dpi=160)
