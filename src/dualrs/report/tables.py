"""Tables of a comparison as text: Markdown, CSV and LaTeX, and the cells that they share.

Enters: a comparison. Leaves: text. Accuracies are in percent, radii are rounded down; CSV has all numbers in full.
"""

import csv
import io
from collections.abc import Callable

from dualrs.report.accuracy import shown_radii
from dualrs.report.compare import Comparison, Row, said_together
from dualrs.theory.radius import round_down

Cells = list[list[str]]  # the first row is the head

ACCURACY = "accuracy at "  # how columns of the CSV begin, before the radius
_UNKNOWN = "–"


def main_cells(comparison: Comparison) -> Cells:
    """Certified accuracy at the radii and, where anybody knows them, abstention, ACR and votes; a row per method."""
    shown = shown_radii((row.accuracy for row in comparison.rows), comparison.radii)
    head = ["method", *(f"{r:g}" for r in comparison.radii[:shown]), "abstained", "ACR", "votes mean", "worst"]
    rows = [_main_row(row, shown) for row in comparison.rows]
    known = [k for k, column in enumerate(zip(*rows, strict=True)) if set(column) != {_UNKNOWN}]
    return [[line[k] for k in known] for line in (head, *rows)]


def difference_cells(comparison: Comparison) -> Cells:
    """Differences against the baseline, in points, each with its interval; no rows without a baseline."""
    shown = shown_radii((row.accuracy for row in comparison.rows), comparison.radii)
    rows = [[row.name, *(d.points(1) for d in row.differences[:shown])] for row in comparison.rows if row.differences]
    return [[f"minus {comparison.baseline}", *(f"{r:g}" for r in comparison.radii[:shown])], *rows] if rows else []


def choice_cells(comparison: Comparison) -> list[Cells]:
    """Which sigma is best how often, and how often a router has to name it; no tables where no router is looked at."""
    if not comparison.choices:
        return []
    shown = shown_radii((row.accuracy for row in comparison.rows), comparison.radii)
    sigmas = sorted({sigma for choice in comparison.choices for sigma in choice.best})
    best = [["best sigma", *(f"{sigma:g}" for sigma in sigmas), "none"]]
    needed = [["needed at", *(f"{r:g}" for r in comparison.radii[:shown])]]
    for choice in comparison.choices:
        shares = [choice.best.get(sigma) for sigma in sigmas]
        none = comparison.inputs - sum(choice.best.values())
        written = [_or_unknown(count, lambda c: _percent(c / comparison.inputs)) for count in (*shares, none)]
        whose = f"{choice.name}: " if choice.name else ""
        best.append([f"{whose}% of inputs", *written])
        needed.append([f"{whose}accuracy %", *(_or_unknown(share, _percent) for share in choice.needed[:shown])])
    return [best, needed]


def all_cells(comparison: Comparison) -> list[Cells]:
    """Every table of a comparison, without empty ones."""
    tables = [main_cells(comparison), difference_cells(comparison), *choice_cells(comparison)]
    return [cells for cells in tables if cells]


def remarks(comparison: Comparison) -> list[str]:
    """What each method is and guarantees, then the notes."""
    methods = said_together((row.name, f"{row.title}. Guarantee: {row.guarantee}") for row in comparison.rows)
    return [*methods, *comparison.notes]


def as_markdown(comparison: Comparison) -> str:
    """Tables with the remarks as a list below."""
    parts = [f"Certified accuracy (%) at L2 radius, {comparison.inputs:,} inputs"]
    for head, *rows in all_cells(comparison):
        rule = ["---", *["---:"] * (len(head) - 1)]
        parts.append("\n".join("| " + " | ".join(map(_markdown_text, line)) + " |" for line in (head, rule, *rows)))
    parts.append("\n".join(f"- {_markdown_text(remark)}" for remark in remarks(comparison)))
    return "\n\n".join(parts) + "\n"


def as_csv(comparison: Comparison) -> str:
    """One row per method with all numbers in full; an empty cell where there is none."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    radii = [f"{r:g}" for r in comparison.radii]
    facts = ("abstention", "average certified radius", "mean votes", "worst votes", "baseline")
    ends = [f"{what} at {r}" for r in radii for what in ("difference", "low", "high")]
    writer.writerow(["method", "title", "guarantee", "inputs", *(f"{ACCURACY}{r}" for r in radii), *facts, *ends])
    for row in comparison.rows:
        cells: list[object] = [row.name, row.title, row.guarantee, comparison.inputs, *row.accuracy]
        cells += [row.abstention, row.average_radius, row.mean_votes, row.worst_votes]
        cells += [comparison.baseline if row.differences else None]
        cells += [end for d in row.differences for end in (d.value, d.low, d.high)] or [None] * len(ends)
        writer.writerow(cells)
    return text.getvalue()


def as_latex(comparison: Comparison) -> str:
    """Tables for the package booktabs, with the remarks as comments."""
    parts = [f"% Certified accuracy (%) at L2 radius, {comparison.inputs:,} inputs"]
    for head, *rows in all_cells(comparison):
        body = [" & ".join(map(_latex_text, line)) + r" \\" for line in rows]
        top = " & ".join(map(_latex_text, head)) + r" \\"
        columns = "l" + "r" * (len(head) - 1)
        parts.append(
            "\n".join([rf"\begin{{tabular}}{{{columns}}}", r"\toprule", top, r"\midrule", *body])
            + "\n\\bottomrule\n\\end{tabular}"
        )
    parts.append("\n".join(f"% {remark}" for remark in remarks(comparison)))
    return "\n\n".join(parts) + "\n"


FORMATS: dict[str, Callable[[Comparison], str]] = {"markdown": as_markdown, "csv": as_csv, "latex": as_latex}


def _main_row(row: Row, shown: int) -> list[str]:
    return [
        row.name,
        *map(_percent, row.accuracy[:shown]),
        _or_unknown(row.abstention, _percent),
        _or_unknown(row.average_radius, lambda r: round_down(r, 3)),
        _or_unknown(row.mean_votes, lambda v: f"{v:,.0f}"),
        _or_unknown(row.worst_votes, lambda v: f"{v:,.0f}"),
    ]


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _or_unknown(value: float | None, written: Callable[[float], str]) -> str:
    return _UNKNOWN if value is None else written(value)


def _markdown_text(text: str) -> str:
    return text.replace("|", r"\|")


def _latex_text(text: str) -> str:
    for special in "&%$#_{}":
        text = text.replace(special, f"\\{special}")
    return text.replace(_UNKNOWN, "--")
