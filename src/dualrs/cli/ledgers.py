"""The commands that work from files alone, without networks: show, verify, export, import, merge."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option

from dualrs.cli.options import EngineOptions, Images, NetworkOptions, numbers, recipe_file
from dualrs.cli.sets import Only, spread_out
from dualrs.errors import BadSetting, ForeignLedger

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dualrs.data.dataset import Dataset
    from dualrs.smoothed import SmoothedModel
    from dualrs.storage import Header, Ledger
    from dualrs.training.assigned import Assigned
    from dualrs.training.labels import Labels

DRAW = "Drawing votes again"
_NAMED = 10  # inputs that a message names

LedgerFile = Annotated[
    Path, Argument(help="A ledger that `dualrs certify`, `label` or `assign` wrote.", show_default=False)
]
OtherRule = Annotated[
    str | None,
    Option("--rule", help="Derive under this rule instead of the run's own: paper, paper-1:4, nosplit, fusion, ..."),
]
OtherAlpha = Annotated[float | None, Option("--alpha", help="Derive at this alpha instead of the run's own.")]
Radii = Annotated[
    str | None, Option("--radii", help="Radii of the accuracy table, as 0,0.25,0.5; multiples of 0.25 by default.")
]

Picture = Annotated[Path | None, Option(help="Also draw certified accuracy against radius: a .png, .svg or .pdf file.")]


def show(
    ledger: LedgerFile,
    rule: OtherRule = None,
    alpha: OtherAlpha = None,
    radii: Radii = None,
    picture: Picture = None,
) -> None:
    """Show what a ledger says: certified accuracy at radii, abstentions, sigmas, what limits the radii.

    Everything is derived again from the votes, so another rule or alpha costs seconds, not samples. Side by side is
    fine; the best of several rules per input is not a certificate, and neither is a rule chosen after the votes.

    Of a ledger that `dualrs label` or `dualrs assign` wrote: how many inputs each sigma suits, or is assigned to.
    """
    from dualrs.certificates import spell_seed
    from dualrs.cli.tables import print_notes, print_summary
    from dualrs.report.summary import summarize
    from dualrs.storage import Ledger, derive

    with Ledger.open(ledger) as opened:
        if not opened.header.certifies:
            _refuse_of_votes(opened, {"--rule": rule, "--radii": radii, "--picture": picture})
            _show_votes(opened, alpha)
            return
        results, certificates = derive(opened, rule, alpha)
        unfinished = len(opened.inputs()) - len(results)
        run = opened.header
    settings = f"rule {rule or run.rule} · alpha {alpha or run.alpha:g} · {run.amount} · seed {spell_seed(run.seed)}"
    title = f"{run.dataset} · {settings}"
    print_summary(summarize(results, certificates, parse_radii(radii)), title, unfinished)
    print_notes([run.second_look] if run.earlier else [])
    shown = run.own_rule if rule is None else run.scheme.rule(rule)
    if overlap := run.overlap(shown.name, results.ids.tolist()):
        print_notes([overlap.note, f"guarantee: {overlap.covered(shown.guarantee(alpha or run.alpha))}"])
    elif not shown.guaranteed:
        print_notes([f"guarantee: {shown.guarantee(alpha or run.alpha)}"])
    if picture is not None:
        from dualrs.report.figures import draw_accuracy

        draw_accuracy({rule or run.rule: results}, picture, title)
        print(f"drew {picture}")


def _show_votes(ledger: "Ledger", alpha: float | None) -> None:
    """What a ledger of labels or of assigned sigmas says."""
    from dualrs.cli.tables import print_assigned, print_labels
    from dualrs.training.labels import Labels

    run, found = ledger.header, _lessons(ledger, alpha)
    title, unfinished = f"{run.contents} · {run.dataset} · n {run.n:,}", len(ledger.inputs()) - len(found.ids)
    if isinstance(found, Labels):
        print_labels(found, title, unfinished)
    else:
        print_assigned(found, f"{title} · alpha {alpha or run.alpha:g}", unfinished)


def _lessons(ledger: "Ledger", alpha: float | None) -> "Labels | Assigned":
    """What networks are trained with: the labels, or the assigned sigmas, of a ledger that holds them."""
    from dualrs.schemes import Labels
    from dualrs.training.assigned import read_assigned
    from dualrs.training.labels import read_labels

    return (read_labels if isinstance(ledger.header.scheme, Labels) else read_assigned)(ledger, alpha)


def _refuse_of_votes(ledger: "Ledger", given: "Mapping[str, object]") -> None:
    """Refuse options that are about certificates."""
    if odd := [option for option, value in given.items() if value is not None]:
        raise BadSetting(
            f"{ledger.path} holds {ledger.header.contents}, and no certificates; leave out {' and '.join(odd)}"
        )


@spread_out
def verify(
    ledgers: Annotated[
        list[str], Argument(help="Ledgers that `dualrs certify`, `label` or `assign` wrote.", show_default=False)
    ],
    table: Annotated[
        Path | None,
        Option(
            help="Also make every row of this table again from the votes of the ledgers: a .csv of `dualrs compare`. "
            "Tables of other projects that stand in it are given beside the ledgers, as they were to `compare`."
        ),
    ] = None,
    redraw: Annotated[
        int | None,
        Option(
            "--redraw",
            min=1,
            help="Also draw so many units of votes again, chosen at random: invented votes are found with the "
            "probability that is printed. Needs the networks and the data, below.",
            show_default=False,
        ),
    ] = None,
    recipe: Annotated[
        Path | None,
        Option(
            "--recipe",
            parser=recipe_file,
            metavar="RECIPE",
            help="The recipe of the run: its networks and its data.",
            rich_help_panel=DRAW,
        ),
    ] = None,
    *,
    networks: Annotated[
        NetworkOptions, Only("model", "router", "classifier", "expert", "core", "selector", "neighbours", "ascent")
    ],
    data: Images,
    engine: Annotated[EngineOptions, Only("device")],
) -> None:
    """Derive every certificate again from its votes, and check that nothing in the ledgers was altered.

    Exits with code 1 if anything differs. Seals find damage and edits; they are no signature. What was invented with
    care is found by --redraw alone.

    Example: `dualrs verify headline.ledger --table headline.csv`

    Example: `dualrs verify runs/quickstart.ledger --redraw 20 --recipe quickstart`
    """
    from dualrs.cli.redraw import open_run
    from dualrs.progress import PassingBar
    from dualrs.report.compare import is_ledger
    from dualrs.report.given import Given
    from dualrs.report.recompute import recompute

    files = [Given.parse(word) for word in ledgers]
    given = partial(open_run, recipe=recipe, networks=networks, data=data, device=engine.device)
    good = True
    for path in (file.path for file in files):
        if table is None or is_ledger(path):
            intact = _examine(path)
            good &= intact and (redraw is None or _redraw(path, redraw, given))
    if table is not None:
        with PassingBar(table.name) as bar:
            rows, problems = recompute(table, files, bar.update)
        good &= _conclude(table, problems, f"{rows} rows follow from the votes")
    if not good:
        raise Exit(1)


def _examine(ledger: Path) -> bool:
    from dualrs.progress import PassingBar
    from dualrs.storage import Ledger
    from dualrs.storage import verify as examine

    with Ledger.open(ledger) as opened:
        with PassingBar(ledger.name) as bar:
            problems = examine(opened, bar.update)
        found = "" if problems else _held(opened)
        derived = " follow from their votes" if opened.header.certifies else ""
        left = [] if problems else [row.id for row in opened.inputs() if row.id not in opened.finished()]
    if left:
        named = ", ".join(left[:_NAMED]) + (f" and {len(left) - _NAMED} more" if len(left) > _NAMED else "")
        derived += f"; not done yet: {named}"
    return _conclude(ledger, problems, f"{found}{derived}; nothing was altered")


def _redraw(ledger: Path, count: int, given: "Callable[[Header], tuple[SmoothedModel, Dataset]]") -> bool:
    """Draw votes of a ledger again, and say what came of it; whether all came out the same."""
    from dualrs.cli.redraw import drawn_again

    found = drawn_again(ledger, count, given)
    chances = " and ".join(f"{found.chance(1 / few):.1%} had it been one in {few}" for few in (10, 100))
    return _conclude(
        ledger,
        found.problems,
        f"{found.drawn:,} of {found.units:,} units of votes, drawn again, came out the same; invented units would have "
        f"been found with probability {chances}",
    )


def _conclude(file: Path, problems: "Sequence[str]", well: str) -> bool:
    """Print what is wrong with a file, or that all is well; whether it is."""
    for problem in problems:
        print(problem)
    print(f"{file}: {len(problems)} problems" if problems else f"{file}: {well}")
    return not problems


def export(
    ledger: LedgerFile,
    file: Annotated[Path, Argument(help="Where to: a name ending in .tsv, .csv or .parquet.", show_default=False)],
    rule: OtherRule = None,
    alpha: OtherAlpha = None,
) -> None:
    """Write one row per input: TSV as the field reads it (idx, label, predict, radius, correct, time), CSV, Parquet.

    Radii are written in full, never rounded. Of a ledger of `dualrs label`: the radius of the true class at every
    sigma; of `dualrs assign`: the sigma of every input.
    """
    from dualrs.storage import Ledger, derive, write, write_columns

    with Ledger.open(ledger) as opened:
        if opened.header.certifies:
            results, _ = derive(opened, rule, alpha)
            write(results, file)
            rows = len(results)
            guaranteed = opened.header.scheme.rule(rule or opened.header.rule).guaranteed
            note = "" if guaranteed else "; its radii have no guarantee"
        else:
            _refuse_of_votes(opened, {"--rule": rule})
            found = _lessons(opened, alpha)
            write_columns(found.columns, file)
            rows, note = len(found.ids), ""
    print(f"wrote {rows} rows to {file}{note}")


def import_(
    file: Annotated[Path, Argument(help="Results of another project, or exported: .tsv or .csv.", show_default=False)],
    output: Annotated[
        Path | None, Option("--output", "-o", help="Write them cleaned, as .tsv, .csv or .parquet.")
    ] = None,
    radii: Radii = None,
) -> None:
    """Read the results of other smoothing projects (idx, label, predict, radius, ...) and say what is odd in them.

    Columns are separated by tabs or commas. What `dualrs export` wrote as .tsv or .csv is read too.

    Such a table has no votes: it can be tabulated and compared, but not verified or derived again.
    """
    from dualrs.cli.tables import print_notes, print_summary
    from dualrs.report.summary import summarize
    from dualrs.storage import read_table, write

    imported = read_table(file)
    print_summary(summarize(imported.results, None, parse_radii(radii)), title=f"{file.name} · as reported")
    print_notes(imported.notes)
    if output is not None:
        write(imported.results, output)
        print(f"wrote {len(imported.results)} rows to {output}")


def merge(
    output: Annotated[Path, Argument(help="The ledger to merge into; made if there is none.", show_default=False)],
    shards: Annotated[list[Path], Argument(help="Ledgers of the same run over other inputs.", show_default=False)],
) -> None:
    """Merge ledgers of one run whose inputs were divided, for example with `certify --inputs 0:250`."""
    from dualrs.storage import Ledger
    from dualrs.storage.ledger import demand_current

    if output in shards:
        raise ForeignLedger(f"{output} cannot be merged into itself")
    with Ledger.open(shards[0]) as first:
        header = first.header
        demand_current(header, shards[0])
    with Ledger.create_or_resume(output, header) as whole, whole.all_or_none():
        for path in shards:
            with Ledger.open(path) as shard:
                whole.absorb(shard)
        print(f"{output}: {_held(whole)}")


def _held(ledger: "Ledger") -> str:
    """What a ledger holds, counted."""
    if ledger.header.certifies:
        return f"{len(ledger.concluded())} certificates"
    return f"{ledger.header.contents} of {len(ledger.complete())} inputs"


def parse_radii(text: str | None) -> tuple[float, ...]:
    """Radii of a table as given on a command line, or the usual ones."""
    from dualrs.theory.radius import RADII

    return tuple(numbers(text, "--radii") or RADII)
