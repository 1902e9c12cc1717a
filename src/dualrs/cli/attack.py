"""The command attack: try to break the certificates of a ledger, and find how far each input really stands."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Exit, Option

from dualrs.cli.ledgers import LedgerFile
from dualrs.cli.options import DataOptions, EngineOptions, NetworkOptions, WorkerOptions, recipe_file
from dualrs.cli.sets import Only, spread_out
from dualrs.errors import BadSetting

if TYPE_CHECKING:
    from dualrs.storage.attacks import Attacks


@spread_out
def attack(
    ledger: LedgerFile,
    output: Annotated[
        Path | None, Option("--output", "-o", help="Where to; beside the ledger by default, as NAME.METHOD.attack.")
    ] = None,
    method: Annotated[
        str | None,
        Option(help="Attack what this method certifies, as cascade or sigma-0.5; by default the rule of the run."),
    ] = None,
    recipe: Annotated[
        Path | None,
        Option(
            "--recipe", parser=recipe_file, metavar="RECIPE", help="The recipe of the run: its networks and its data."
        ),
    ] = None,
    steps: Annotated[int, Option(min=1, help="Steps of each search, at most.")] = 20,
    restarts: Annotated[int, Option(min=1, help="Places from which searches begin, at most.")] = 2,
    copies: Annotated[int, Option(min=1, help="Noisy copies for each gradient; in the end four times as many.")] = 32,
    bracket: Annotated[
        bool, Option(help="Also search beyond the radius for the nearest image that is answered otherwise.")
    ] = True,
    straight: Annotated[
        bool, Option("--straight-through", help="Pass gradients by the denoisers as if these changed nothing.")
    ] = False,
    *,
    networks: Annotated[
        NetworkOptions, Only("model", "router", "classifier", "expert", "core", "selector", "neighbours", "ascent")
    ],
    data: DataOptions,
    engine: Annotated[EngineOptions, Only("device")],
    spread: WorkerOptions,
) -> None:
    """Attack what is certified: look for an 8-bit image inside each radius that is answered otherwise.

    The verdict on an image that the attack found is a prediction with fresh noise. A certificate may be wrong with
    probability alpha, so one that breaks among a thousand is no surprise; the command says how likely so many are, and
    exits with code 1 if chance does not explain them. Beyond the radius, the attack brackets the true one from above.

    Run the same command again to resume, or with other `--inputs` to go on with another part: levels are shared among
    all certificates of the ledger either way. What was tried with `--no-bracket` is not tried again without it: the
    search beyond the radius is added. With `--workers`, several processes take inputs.

    Example: `dualrs attack runs/quickstart.ledger --recipe quickstart --method cascade --inputs 0:20`
    """
    from dualrs.attacks import Effort, attack_ledger
    from dualrs.cli.redraw import open_run
    from dualrs.data.subsets import parse_inputs
    from dualrs.progress import AttackBar
    from dualrs.storage import Ledger
    from dualrs.storage.attacks import UNLIKELY

    with Ledger.open(ledger) as opened:
        header = opened.header
    if not header.certifies:
        raise BadSetting(f"{ledger} holds {header.scheme.contents(header.rule)}: there is nothing to attack")
    name = method or header.rule
    model, dataset = open_run(header, recipe, networks, data, engine.device)
    out = ledger.with_suffix(f".{name}.attack") if output is None else output
    with AttackBar(out.name) as bar:
        found = attack_ledger(
            model, dataset, ledger, out,
            method=name,
            indices=set(parse_inputs(data.inputs, len(dataset.ids))),
            effort=Effort(steps=steps, restarts=restarts, copies=copies),
            bracket=bracket,
            straight=straight,
            workers=spread.workers,
            address=spread.ray,
            report=bar.update,
        )  # fmt: skip
    print_attacks(found, name, out)
    if found.chance < UNLIKELY:
        print("so many broken certificates are not chance: a certificate, or what it was made with, is wrong")
        raise Exit(1)


def print_attacks(found: "Attacks", method: str, out: Path) -> None:
    """Print how many certificates held, and how far attacks had to go."""
    from collections import Counter

    import numpy as np
    from rich.console import Console
    from rich.table import Table

    from dualrs.theory.radius import RADII

    if not len(found):
        print(f"{method}: none of these inputs has a certificate, so there is nothing to attack")
        return
    print(f"{method}: {found}")
    if bracketed := found.bracketed:
        upper = np.array([np.inf if row.upper is None else row.upper for row in bracketed])
        radius = np.array([row.radius for row in bracketed])
        table = Table(title=f"{len(bracketed)} attacked inputs (%) at L2 radius", title_justify="left")
        shown = [r for r in RADII if r <= max(radius) + 0.5]
        for column in ("", *(f"{r:g}" for r in shown)):
            table.add_column(column, justify="left" if not column else "right")
        for what, reach in (("certified", radius), ("not broken by attack", upper)):
            table.add_row(what, *(f"{100 * (reach >= r).mean():.1f}" for r in shown))
        Console().print(table)
        aims = Counter(row.aim or "none found" for row in bracketed)
        print("what led to the nearest change: " + ", ".join(f"{aim} {count}" for aim, count in aims.most_common()))
    passes = [sum(getattr(row, what) for row in found) for what in ("forward", "backward", "votes")]
    print("cost: {:,} images forward, {:,} backward, {:,} votes".format(*passes))
    print(f"wrote {out}")
