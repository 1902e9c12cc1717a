"""The command board: a leaderboard of runs, every row derived again from its votes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option

from dualrs.errors import BadSetting

if TYPE_CHECKING:
    from dualrs.report.board import Entry

Runs = Annotated[
    list[str] | None,
    Argument(
        metavar="[FILES]...",
        help="Ledgers, and result tables of other projects, each as FILE or NAME=FILE, with FILE.card.toml beside it.",
        show_default=False,
    ),
]


def board(
    files: Runs = None,
    output: Annotated[Path, Option("--output", "-o", help="Where to write the page.")] = Path("board.html"),
    title: Annotated[str, Option(help="The title of the page.")] = "Certified robustness: a board",
    redraw: Annotated[
        int | None,
        Option(
            min=1,
            help="Also draw so many units of the votes of each ledger again, with the networks of the recipe that its "
            "card names.",
            show_default=False,
        ),
    ] = None,
    template: Annotated[bool, Option("--template", help="Print an empty card, to fill in, and stop.")] = False,
) -> None:
    """Make a leaderboard of many runs: one page, a row each, sorted by the radius that you choose.

    Every ledger is verified before its row is shown, under the rule that its run was made for; a result table stands
    there as reported. What the votes cannot tell (authors, paper, training) comes from a card beside the file:
    RUN.card.toml beside RUN.ledger. A ledger that does not verify gets a row without numbers, and the command exits
    with code 1.

    Example: `dualrs board results/baselines/*.ledger -o board.html`

    Example: `dualrs board --template > runs/mine.card.toml`
    """
    from dualrs.cli.options import this_command
    from dualrs.files import write_whole
    from dualrs.report.board import TEMPLATE, write_board
    from dualrs.report.given import Given, names_of
    from dualrs.version import __version__

    if template:
        print(TEMPLATE, end="")
        return
    if not files:
        raise BadSetting("say which runs the board is of: dualrs board FILE...")
    given = [Given.parse(file) for file in files]
    if odd := [one for one in given if one.sigma is not None or len(one.paths) > 1]:
        raise BadSetting(f"{odd[0].path}: a board takes a table as FILE or NAME=FILE")
    entries = [_entry(name, one.path, redraw) for name, one in zip(names_of(given), given, strict=True)]
    page = write_board(entries, title=title, command=this_command(), version=__version__).encode()
    output.parent.mkdir(parents=True, exist_ok=True)
    write_whole(output, page)
    print(f"wrote {output}, {len(entries)} rows")
    if bad := [entry for entry in entries if entry.problems]:
        for entry in bad:
            print(f"{entry.name} does not verify: {entry.problems[0]}")
        raise Exit(1)


def _entry(name: str, path: Path, redraw: int | None) -> "Entry":
    from dualrs.progress import PassingBar
    from dualrs.report.board import of_ledger, of_table
    from dualrs.report.compare import is_ledger

    if path.suffix != ".ledger" and not is_ledger(path):
        return of_table(path, name)
    redrawn = "" if redraw is None else _redrawn(path, redraw)
    with PassingBar(path.name) as bar:
        return of_ledger(path, name, redrawn, bar.update)


def _redrawn(path: Path, count: int) -> str:
    """Draw some votes of a run again, and say how many; a run whose card names no recipe is left as it is."""
    from dualrs.cli.options import DataOptions, NetworkOptions, recipe_file
    from dualrs.cli.redraw import drawn_again, open_run
    from dualrs.errors import ForeignLedger
    from dualrs.report.board import read_card

    recipe = read_card(path).recipe
    if not recipe:
        return ""
    beside = path.parent / recipe
    found = beside if beside.exists() else recipe_file(recipe)
    drawn = drawn_again(path, count, lambda run: open_run(run, found, NetworkOptions(), DataOptions(), None))
    if drawn.problems:
        raise ForeignLedger(f"{path}: {drawn.problems[0]}; its votes are not those of the networks that its card names")
    return f"{drawn.drawn:,} of {drawn.units:,} units redrawn"
