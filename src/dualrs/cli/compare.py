"""The command that puts methods side by side, from files alone."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from dualrs.cli.ledgers import Radii
from dualrs.errors import BadSetting

if TYPE_CHECKING:
    from dualrs.report.compare import Comparison
    from dualrs.report.tables import Cells

_FILE_WIDTH = 200  # characters of a table in a file
_SUFFIXES = {".md": "markdown", ".csv": "csv", ".tex": "latex"}


def compare(
    files: Annotated[
        list[str],
        Argument(
            help="Ledgers of `dualrs certify`, attacks on them, and result tables of other projects, each as FILE or "
            "NAME=FILE; a table of one sigma as NAME@SIGMA=FILE or @SIGMA=FILE; the logs of ACES as "
            "NAME=SELECTOR,CERTIFIER,CORE.",
            show_default=False,
        ),
    ],
    baseline: Annotated[
        str | None, Option(help="Also show differences against this method, with bootstrap intervals.")
    ] = None,
    methods: Annotated[
        str | None,
        Option(
            help="Only these methods of each ledger, as sigma-0.25,cascade-0.4,fusion, or LEDGER/METHOD for one of "
            "several; by default all its votes allow."
        ),
    ] = None,
    router_accuracy: Annotated[
        str | None,
        Option(
            help="Also show what to expect of routers that name the best sigma so often, as 0.7,0.9, wherever there "
            "are several fixed sigmas; where only tables are given, 0.5,0.7,0.9 by default.",
            show_default=False,
        ),
    ] = None,
    radii: Radii = None,
    inputs: Annotated[
        str | None, Option(help="Only these inputs of each ledger: START:STOP:STEP of their positions in the dataset.")
    ] = None,
    format_: Annotated[
        str | None,
        Option("--format", help="table, markdown, csv or latex; by default as the output file is called, else table."),
    ] = None,
    output: Annotated[Path | None, Option("--output", "-o", help="Write to this file instead.")] = None,
) -> None:
    """Compare methods on the same inputs: every way to certify that the votes of a ledger allow, side by side.

    Each fixed sigma, the cascade, Multiscale, the dual rules, ACES at each threshold, and as bounds the label oracle
    and the envelope of the fixed sigmas: certified accuracy, abstention, average certified radius, and the votes that
    each would have drawn by itself. `dualrs certify --all-votes` collects what all of them need; an adaptive run has
    its own rule alone.

    Of tables of other projects at several sigmas it shows the oracle and the envelope as well, which sigma is best how
    often, and what a router would give that names the best one so often, before any is trained.

    Example: `dualrs compare run.ledger --baseline sigma-0.5 --format markdown`

    Example: `dualrs compare cohen@0.25=a.tsv cohen@0.5=b.tsv cohen@1=c.tsv --router-accuracy 0.7,0.9`
    """
    from dataclasses import replace

    from rich.console import Console

    from dualrs.cli.ledgers import parse_radii
    from dualrs.cli.options import method_names, numbers, positions
    from dualrs.files import write_whole
    from dualrs.progress import PassingBar
    from dualrs.report.compare import compare as tabulate
    from dualrs.report.compare import gather
    from dualrs.report.given import Given
    from dualrs.report.tables import FORMATS

    chosen = format_ or (_SUFFIXES.get(output.suffix, "table") if output else "table")
    if chosen != "table" and chosen not in FORMATS:
        raise BadSetting(f"--format is one of table, {', '.join(FORMATS)}; got {chosen!r}")
    names = None if methods is None else method_names(methods)
    with PassingBar("comparing") as bar:
        gathered = gather([Given.parse(file) for file in files], names, bar.update, positions(inputs))
    found = tabulate(gathered.methods, parse_radii(radii), baseline, numbers(router_accuracy, "--router-accuracy"))
    found = replace(found, notes=(*found.notes, *gathered.notes))
    width = Console().width if output is None else _FILE_WIDTH
    text = _boxes(found, width) if chosen == "table" else FORMATS[chosen](found)
    if output is None:
        print(text, end="")
    else:
        write_whole(output, text.encode())
        print(f"wrote {output}")


def _boxes(comparison: "Comparison", width: int) -> str:
    """Tables with lines around them, the best of each radius marked, and without the columns that do not fit."""
    from io import StringIO

    from rich.console import Console

    from dualrs.cli.tables import print_cells
    from dualrs.report.tables import all_cells, remarks

    text = StringIO()
    console = Console(file=text, width=width, highlight=False, markup=False)
    console.print(f"certified accuracy (%) at L2 radius, {comparison.inputs:,} inputs")
    (head, *rows), *others = all_cells(comparison)
    radii = [name for name in head if _is_radius(name)]
    facts = [name for name in reversed(head[1:]) if not _is_radius(name)]
    best = _marked(rows, [row.guaranteed for row in comparison.rows], len(radii))
    print_cells(console, [head, *best], spare=[*facts, *_least_missed(radii)])
    for cells in others:
        print_cells(console, cells, spare=_least_missed([name for name in cells[0] if _is_radius(name)]))
    for remark in (*([_BEST] if best != rows else []), *remarks(comparison)):
        console.print(remark)
    return text.getvalue()


_BEST = "* the best at a radius, among methods with a guarantee"


def _is_radius(name: str) -> bool:
    return name[:1].isdigit()


def _marked(rows: "Cells", guaranteed: list[bool], shown: int) -> "Cells":
    """Rows with a star before the best accuracy at each of the radii ``shown``; nobody is best where all have none."""
    columns = range(1, shown + 1)
    sound = [row for row, certifies in zip(rows, guaranteed, strict=True) if certifies]
    best = {column: max((row[column] for row in sound), key=float, default="0.0") for column in columns}

    def marked(row: list[str], certifies: bool) -> list[str]:
        stars = ["*" if certifies and row[c] == best[c] != "0.0" else "" for c in columns]
        return [row[0], *(star + row[c] for c, star in zip(columns, stars, strict=True)), *row[shown + 1 :]]

    return [marked(row, certifies) for row, certifies in zip(rows, guaranteed, strict=True)]


def _least_missed(radii: list[str]) -> list[str]:
    """Radii in the order in which a table can do without them: those between halves first, from the largest down."""
    between = [r for r in radii[1:] if float(r) % 0.5]
    return [*reversed(between), *(r for r in reversed(radii[1:]) if r not in between)]
