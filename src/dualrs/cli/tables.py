"""Tables on the terminal."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Column, Table

from dualrs.certificates import Outcome, Predictions
from dualrs.cli.durations import duration
from dualrs.report.accuracy import shown_radii
from dualrs.report.summary import Summary
from dualrs.report.tables import Cells
from dualrs.theory.radius import round_down
from dualrs.training.assigned import Assigned
from dualrs.training.labels import Labels

if TYPE_CHECKING:
    from dualrs.pipeline.estimate import Cost

_COST = ("inputs", "images each", "in all", "a second", "time")


def print_summary(summary: Summary, title: str, unfinished: int = 0) -> None:
    """Certified accuracy at radii, then abstentions, sigmas and limits."""
    console = _headed(title, unfinished)
    if summary.accuracy is None:
        console.print("no certified accuracy: inputs have no labels")
    else:
        last = shown_radii([summary.accuracy], summary.radii)
        console.print("certified accuracy (%) at L2 radius")
        cells = [[f"{r:g}" for r in summary.radii[:last]], [f"{100 * a:.1f}" for a in summary.accuracy[:last]]]
        print_cells(console, cells, named=0)
    facts = Table.grid(padding=(0, 2))
    facts.add_row("inputs", f"{summary.inputs:,}")
    facts.add_row("abstained", f"{100 * summary.abstention:.1f}%{_reasons(summary)}")
    if summary.average_radius is not None:
        facts.add_row("average certified radius", f"{round_down(summary.average_radius)} (dominated by easy inputs)")
    for name, counts in (("sigma", summary.sigmas), ("limited by", summary.limits)):
        if counts:
            facts.add_row(name, _bars(counts, summary.inputs))
    console.print(facts, highlight=False)


def print_cells(console: Console, cells: Cells, named: int = 1, spare: Sequence[str] = ()) -> None:
    """A table with lines around it; numbers stand at the right.

    Where it is too wide, it does without columns that it can ``spare``, in this order, and says so; if that is not
    enough, it comes in pieces.
    """
    left_out = [*_too_many(cells, console.width, spare)]
    kept = [column for column, name in enumerate(cells[0]) if name not in left_out]
    for head, *rows in _pieces([[row[c] for c in kept] for row in cells], console.width, named):
        sides = ["left"] * named + ["right"] * (len(head) - named)
        table = Table(*(Column(name, justify=side, no_wrap=True) for name, side in zip(head, sides, strict=True)))  # type: ignore[arg-type]
        for row in rows:
            table.add_row(*row)
        console.print(table)
    if left_out:
        names = ", ".join(name for name in cells[0] if name in left_out)
        console.print(f"left out, as the terminal is narrow: {names}; a file (-o) has all columns")


def _too_many(cells: Cells, width: int, spare: Sequence[str]) -> Iterator[str]:
    """Which columns have to go until a table fits a width."""
    widths = {column[0]: max(map(len, column)) + 3 for column in zip(*cells, strict=True)}
    used = sum(widths.values()) + 1
    for name in spare:
        if used <= width:
            return
        used -= widths[name]
        yield name


def _pieces(cells: Cells, width: int, named: int) -> Iterator[Cells]:
    """A table cut into pieces that fit a width; the first columns, which name the rows, begin each of them."""
    widths = [max(map(len, column)) + 3 for column in zip(*cells, strict=True)]  # with a line and two spaces
    first = list(range(named))
    begun = sum(widths[:named]) + 1
    taken, used = first, begun
    for column in range(named, len(widths)):
        if used + widths[column] > width and len(taken) > named:
            yield [[row[c] for c in taken] for row in cells]
            taken, used = first, begun
        taken, used = [*taken, column], used + widths[column]
    yield [[row[c] for c in taken] for row in cells]


def print_labels(labels: Labels, title: str, unfinished: int = 0) -> None:
    """Which sigma is best for how many inputs, and what the others would give."""
    console = _headed(title, unfinished)
    kept = labels.radii[labels.kept]
    table = Table("sigma", "best for", "mean radius", "positive radius")
    for k, sigma in enumerate(labels.sigmas):
        share = (labels.best == k).mean() if len(kept) else 0.0
        mean, positive = (kept[:, k].mean(), (kept[:, k] > 0).mean()) if len(kept) else (0.0, 0.0)
        table.add_row(f"{sigma:g}", f"{100 * share:.1f}%", f"{mean:.4f}", f"{100 * positive:.1f}%")
    console.print(table)
    dropped = len(labels.radii) - len(kept)
    console.print(f"{len(kept):,} inputs, and {dropped:,} dropped: no positive radius at any sigma", highlight=False)


def print_assigned(assigned: Assigned, title: str, unfinished: int = 0) -> None:
    """How many inputs go to each sigma, and how many of them the test leaves undecided."""
    console = _headed(title, unfinished)
    table = Table("sigma", "inputs", "share", "undecided")
    for sigma in assigned.sigmas:
        here = assigned.sigma_c == sigma
        share = here.mean() if len(here) else 0.0
        table.add_row(f"{sigma:g}", f"{here.sum():,}", f"{100 * share:.1f}%", f"{(here & ~assigned.decided).sum():,}")
    console.print(table)
    undecided = int((~assigned.decided).sum())
    console.print(
        f"{len(assigned.ids):,} inputs, and {undecided:,} of them undecided: they take the sigma that most votes name",
        highlight=False,
    )


_LINE = 100  # of a table of costs, also where there is no terminal: hundreds of millions of images fit


def print_costs(costs: "Iterable[Cost]", title: str, measured: bool = True) -> None:
    """A line for each step as it is measured, or at a rate that was given, and the time of all."""
    console = Console(width=max(Console().width, _LINE))
    console.print(f"[bold]{title}[/bold]", highlight=False)
    found: list[Cost] = []
    with console.status("measuring the networks on a few batches"):
        for cost in costs:
            found.append(cost)
    table = Table(Column("makes", no_wrap=True), *(Column(name, justify="right") for name in _COST))
    for cost in found:
        table.add_row(
            cost.product,
            _or_unknown(cost.inputs),
            f"{cost.images_per_input:,}",
            _or_unknown(cost.images),
            _or_unknown(cost.rate),
            "?" if cost.seconds is None else duration(cost.seconds),
        )
    console.print(table)
    console.print("images are noisy ones that pass through the networks", highlight=False)
    for reason in dict.fromkeys(cost.unknown for cost in found if cost.unknown):
        console.print(f"[yellow]not {'measured' if measured else 'known'}[/yellow] {reason}", highlight=False)
    if all(cost.seconds is not None for cost in found):
        total = duration(sum(cost.seconds or 0.0 for cost in found if not cost.instead))
        where = "on this machine" if measured else "on one device of this rate"
        console.print(f"{total} in all, {where}", highlight=False)
    if any(cost.instead for cost in found):
        said = "adaptive, instead of a fixed n: if its share of the votes is that of CIFAR-10 at n = 10,000"
        console.print(said, highlight=False)


def print_notes(notes: Sequence[str]) -> None:
    """What an importer found odd."""
    console = Console()
    for note in notes:
        console.print(f"[yellow]note[/yellow] {note}", highlight=False)


def print_predictions(ids: Sequence[str], labels: Sequence[int] | None, found: Predictions, most: int = 20) -> None:
    """The first predictions one by one, and the totals."""
    console = Console()
    table = Table("input", "class", "sigma", "label", "")
    for k, (name, p) in enumerate(zip(ids[:most], found, strict=False)):
        answer = "abstains" if p.abstained else str(p.prediction)
        label = "" if labels is None else str(labels[k])
        remark = str(p.outcome) if p.abstained else ("" if labels is None or labels[k] == p.prediction else "wrong")
        table.add_row(name, answer, f"{p.sigma_c:g}", label, remark)
    console.print(table)
    if len(found) > most:
        console.print(f"and {len(found) - most} more")
    abstained = sum(p.abstained for p in found)
    right = None if labels is None else sum(p.prediction == y for p, y in zip(found, labels, strict=True))
    accuracy = "" if right is None else f", {right} right ({100 * right / len(found):.1f}%)"
    console.print(f"{len(found)} inputs{accuracy}, {abstained} abstained", highlight=False)


def _headed(title: str, unfinished: int) -> Console:
    """A console on which the title, and whether the run is finished, stand already."""
    console = Console()
    console.print(f"[bold]{title}[/bold]", highlight=False)
    if unfinished:
        console.print(f"[yellow]{unfinished} inputs are not finished; run the same command again to resume[/yellow]")
    return console


def _or_unknown(value: float | None) -> str:
    return "?" if value is None else f"{value:,.0f}"


def _reasons(summary: Summary) -> str:
    reasons = [f"{k} {v}" for k, v in summary.outcomes.items() if k not in (Outcome.CERTIFIED, Outcome.PREDICTED)]
    return f" ({', '.join(reasons)})" if reasons else ""


def _bars(counts: dict[str, int], total: int) -> str:
    width = max(len(k) for k in counts)
    return "\n".join(
        f"{name:<{width}} {'█' * round(30 * count / total)} {count} ({100 * count / total:.1f}%)"
        for name, count in counts.items()
    )
