"""The command why: one input, its votes, its radii, and what limits its certificate."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from dualrs.cli.ledgers import LedgerFile, OtherAlpha, OtherRule
from dualrs.cli.options import Images, NetworkOptions
from dualrs.cli.sets import Only, spread_out
from dualrs.errors import BadSetting, BadTable

if TYPE_CHECKING:
    from dualrs.report.gallery import Why
    from dualrs.report.nearest import Nearest
    from dualrs.smoothed import SmoothedModel
    from dualrs.storage import Header, Ledger

_WIDTH = 40  # of a bar of all votes
_BESIDE = 14  # characters of a line that are neither name nor bar: spaces, and a number of votes


@spread_out
def why(
    ledger: LedgerFile,
    input_id: Annotated[
        str, Argument(metavar="INPUT", help="The id of an input, or its position in the dataset.", show_default=False)
    ],
    output: Annotated[
        Path | None, Option("--output", "-o", help="Also draw it, with images where there are any: .png, .svg or .pdf.")
    ] = None,
    rule: OtherRule = None,
    alpha: OtherAlpha = None,
    attack: Annotated[
        Path | None, Option(help="Also show what an attack on the run found beside this input: a file of `attack`.")
    ] = None,
    recipe: Annotated[
        Path | None, Option(help="For the denoised copies: the recipe of the run, with its networks and data.")
    ] = None,
    *,
    networks: Annotated[NetworkOptions, Only("model")],
    data: Images,
) -> None:
    """Why this radius? Show the votes on one input as bars, its radii, and what limits its certificate.

    The drawing adds the image and the first noisy copy that voted at each sigma, where the data are at hand, and what
    the denoiser made of it, where --recipe or --model gives the networks. With --attack it shows how far from the
    certified radius an image with another answer was found, which image, and its difference.
    """
    from dualrs.cli.pictures import class_names, open_data
    from dualrs.report.gallery import explain
    from dualrs.storage import Ledger

    if output is None and (recipe or networks.model or data.data):
        raise BadSetting("networks and data are for the drawing; say where to draw: -o FILE.png")
    with Ledger.open(ledger) as opened:
        header = opened.header
        found = _find(explain(opened, rule, alpha), input_id, ledger)
        attacked = None if attack is None else _attack(attack, opened)
    nearest = next((one for one in attacked or () if one.attack.id == found.id), None)
    missing = f"{attack} has no attack on {found.id}" if attack is not None and nearest is None else ""
    if output is None:
        _print(found, class_names(header, None), header)
        _print_attack(nearest, missing, class_names(header, None))
        return

    from dualrs.cli.copies import copies_of, networks_of
    from dualrs.report.figures import draw_why

    given = data.given()
    smoothed: SmoothedModel | None = None
    if recipe is not None or networks.model is not None:
        smoothed, recorded = networks_of(header, recipe, networks.model)
        given = given or recorded
    dataset, note = open_data(header, given)
    names = class_names(header, dataset)
    _print(found, names, header)
    _print_attack(nearest, missing, names)
    copies = None if dataset is None else copies_of(header, found, dataset.image(found.index), smoothed)
    draw_why(found, output, copies, names, nearest)
    print(" ".join(filter(None, (f"drew {output}.", note))))


def _attack(path: Path, ledger: "Ledger") -> "list[Nearest]":
    """What an attack on a run found beside its inputs; refuses an attack on another run."""
    from dualrs.report.attacked import Campaigns
    from dualrs.report.nearest import Nearest

    campaigns = Campaigns([path])
    found = campaigns.against(ledger).values()
    campaigns.demand_all_used()
    return [Nearest(attacks.settings["method"], row) for attacks in found for row in attacks]


def _find(every: "Sequence[Why]", wanted: str, ledger: Path) -> "Why":
    """The input of this id or, if there is none, at this position."""
    for name in ("id", "index"):
        for one in every:
            if str(getattr(one, name)) == wanted:
                return one
    known = f"; the first is {every[0].id} at position {every[0].index}" if every else ""
    raise BadTable(f"{ledger} has no finished input {wanted}, neither by id nor by position{known}")


def _print(found: "Why", names: "Sequence[str] | None", header: "Header") -> None:
    from rich.console import Console

    from dualrs.report.gallery import class_name, top_classes
    from dualrs.theory.radius import round_down

    console = Console(highlight=False)
    label = "no label" if found.label is None else f"label: {class_name(found.label, names)}"
    console.print(f"[bold]{found.id}[/bold] · {found.claim(names)} · {label}")
    console.print(found.reason(names))
    console.print(f"[dim]{' · '.join((header.amount, *found.flags))}[/dim]")
    scheme, seen = found.scheme, found.seen
    if seen.router is not None:
        rows = list(zip(scheme.route_names, seen.router.tolist(), strict=True))
        _print_bars(f"votes of the {scheme.router_name}", rows)
    for sigma, counts in zip(scheme.sigmas_of(found.certificate), seen.experts, strict=True):
        top = None if counts is None else top_classes(counts, names, scheme.classes)
        _print_bars(f"class votes at sigma {sigma:g}{', chosen' * (sigma == found.certificate.sigma_c)}", top)
    if found.core is not None:
        stands = "" if found.core_radius is None else f", up to {round_down(found.core_radius)}"
        console.print(f"[bold]core network, without noise[/bold]\n  {class_name(found.core, names)}{stands}")
    console.print("[bold]radii[/bold]")
    for name, radius in found.radii().items():
        console.print(f"  {name:<21} {round_down(radius)}")


def _print_attack(nearest: "Nearest | None", missing: str, names: "Sequence[str] | None") -> None:
    """What an attack found, and a scale from what is certified to what is broken; or that there is none."""
    from rich.console import Console

    from dualrs.theory.radius import round_down

    console = Console(highlight=False, markup=False)
    if nearest is None:
        console.print(missing, end="\n" * bool(missing))
        return
    row, reach = nearest.attack, nearest.reach
    console.print(f"attack on {nearest.method}", style="bold")
    console.print(f"  {nearest.said(names)}")
    known = round(_WIDTH * min(row.radius, reach) / reach)
    end = f"not broken up to {round_down(reach)}" if row.upper is None else f"broken at {nearest.upper}"
    console.print(f"  {'█' * known}{'░' * (_WIDTH - known)} {end}")
    console.print(f"  █ certified, up to {round_down(row.radius)}   ░ neither certified nor broken")


def _print_bars(title: str, rows: "Sequence[tuple[str, int]] | None") -> None:
    from rich.console import Console

    from dualrs.report.gallery import shortened

    console = Console(highlight=False)
    console.print(f"[bold]{title}[/bold]{'' if rows else ': not asked'}")
    total = sum(count for _, count in rows or ())
    room = max(console.width - _WIDTH - _BESIDE, 10)
    width = min(max((len(name) for name, _ in rows or ()), default=0), room)
    for name, count in rows or ():
        bar = "█" * round(_WIDTH * count / total)
        console.print(f"  {shortened(name, width):<{width}} {bar} {count:,}", markup=False)
