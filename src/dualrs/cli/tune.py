"""The command that chooses the numbers in the name of rule `cascade`, from the votes of a ledger alone."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from dualrs.cli.ledgers import Radii
from dualrs.errors import BadRecipe

if TYPE_CHECKING:
    from dualrs.config import Recipe
    from dualrs.report.tune import Tried, Tuning
    from dualrs.storage import Header

_TO_A_LINE = 104  # letters of hashes, whole ones


def tune(
    ledger: Annotated[
        Path,
        Argument(
            help="A ledger on inputs set aside: votes at every sigma, with their confidences, and n fixed.",
            show_default=False,
        ),
    ],
    radii: Radii = None,
    weights: Annotated[
        str | None, Option(help="How much each of the radii counts, as 1,2,1; all alike by default.")
    ] = None,
    thresholds: Annotated[
        str | None,
        Option(help="Thresholds to try at each stage besides plain majority, as 0.6,0.7; none by default."),
    ] = None,
    write: Annotated[
        Path | None,
        Option(
            help="Put the chosen rule into this recipe, or into the recipe of this bundle, with a record of the inputs "
            "it was chosen on."
        ),
    ] = None,
) -> None:
    """Tune a cascade: choose at which confidence the votes of each stage pass, on inputs that are set aside.

    Every recorded confidence, and none, is tried at every stage; the best mean of certified accuracy over --radii is
    chosen. Its own inputs flatter it: a cross-validated line says what such a choice gives on others. Certify other
    inputs under the chosen rule; where results are on these, they say so.

    Sample the votes with `dualrs certify --sigmas 0.25,0.5,1.0 --confidences 0.3,0.4,0.5,0.6 --all-votes`.

    Example: `dualrs tune calibration.ledger --radii 0,0.5,1 --write cascade.toml`
    """
    from dualrs.certificates.cascade import MAJORITY
    from dualrs.cli.ledgers import parse_radii
    from dualrs.cli.options import numbers
    from dualrs.progress import PassingBar
    from dualrs.report.tune import Objective
    from dualrs.report.tune import tune as choose
    from dualrs.storage import Ledger

    objective = Objective(parse_radii(radii), tuple(numbers(weights, "--weights") or ()))
    with Ledger.open(ledger) as opened:
        header = opened.header
        recipe = None if write is None else _recipe_of(write, header)
        with PassingBar("tuning") as bar:
            found = choose(opened, objective, numbers(thresholds, "--thresholds") or (MAJORITY,), bar.update)
        unfinished = len(opened.inputs()) - len(found.ids)
    _print(found, header, unfinished)
    if write is not None and recipe is not None:
        path = _write(write, recipe, header, found)
        print(f"wrote rule {found.chosen.name} to {path}")


def _print(found: "Tuning", header: "Header", unfinished: int) -> None:
    """What each choice gives, what choosing gives elsewhere, and how the noisiest stage's confidence matters."""
    from rich.console import Console

    from dualrs.cli.tables import print_cells, print_notes
    from dualrs.report.accuracy import shown_radii

    console = Console(highlight=False, markup=False)
    count, most = len(found.ids), max(header.scheme.sigmas)
    console.print(f"{header.dataset} · {count:,} inputs · alpha {header.alpha:g} · {header.amount}", style="bold")
    tried = "all of them" if found.all_tried else "stage after stage"
    console.print(
        f"certified accuracy (%) at L2 radius, on the inputs it was chosen on; {found.tried} forms tried, {tried}"
    )
    rows = (*found.rows, found.elsewhere)
    shown = shown_radii((row.accuracy for row in rows), found.objective.radii)
    head = ["", "rule", *(f"{r:g}" for r in found.objective.radii[:shown]), "objective", "gain"]
    print_cells(console, [head, *(_cells(row, shown) for row in rows)], named=2)
    console.print(f"objective (%) by the confidence below which votes pass at sigma {most:g}, the rest as chosen")
    best = max(objective for _, objective in found.curve) or 1.0
    for confidence, objective in found.curve:
        mark = " chosen" if confidence == (found.chosen.confidences or (0.0,))[0] else ""
        console.print(f"{confidence:>5g} {100 * objective:6.2f} {'█' * round(30 * objective / best)}{mark}")
    console.print(f"chosen: {found.chosen.name}")
    print_notes(_notes(found, unfinished))


def _notes(found: "Tuning", unfinished: int) -> list[str]:
    from collections import Counter

    from dualrs.report.bootstrap import COVERAGE, RESAMPLES
    from dualrs.report.tune import FOLDS

    mean = "weighted mean" if found.objective.weights else "mean"
    left_out = [f"{unfinished} inputs are not finished and are left out"] if unfinished else []
    chosen = ", ".join(f"{name} {count} times" for name, count in Counter(found.in_folds).items())
    return [
        f"the objective is the {mean} of certified accuracy over {len(found.objective.radii)} radii; gains are over "
        f"the plain cascade, in points, with {COVERAGE:.0%} intervals of a paired bootstrap over inputs "
        f"({RESAMPLES:,} resamples)",
        f"cross-validated: chosen on {FOLDS - 1} of {FOLDS} folds ({chosen}) and measured on the one left out, in "
        f"turn; the chosen form looks {100 * found.optimism:.2f} points better than that",
        f"tuned on these {len(found.ids):,} inputs, by their votes: no estimate of accuracy on others, but for the "
        "cross-validated line, and no certificates; certify other inputs under the chosen rule",
        *left_out,
    ]


def _cells(row: "Tried", shown: int) -> list[str]:
    gain = "" if row.gain is None else row.gain.points(2)
    return [row.what, row.rule, *(f"{100 * a:.1f}" for a in row.accuracy[:shown]), f"{100 * row.objective:.2f}", gain]


def _recipe_of(target: Path, header: "Header") -> "Recipe":
    """The recipe that is to hold the rule; refuses one of another kind of model, before anything is tried."""
    from dualrs.config import load_recipe

    recipe = load_recipe(None, {}, bundle=target) if target.is_dir() else load_recipe(target, {})
    model = recipe.model
    if model.router is not None:
        raise BadRecipe(
            f"{target} has a router, and rule cascade goes without; write into a recipe that has its classifier or "
            "experts and its sigmas, and neither router nor sigma_e"
        )
    if sorted(model.sigmas or ()) != sorted(header.scheme.sigmas):
        raise BadRecipe(
            f"the sigmas of {target} are {sorted(model.sigmas or ())}, and those of the votes "
            f"{sorted(header.scheme.sigmas)}; a cascade is tuned for its own stages"
        )
    return recipe


def _write(target: Path, recipe: "Recipe", header: "Header", found: "Tuning") -> Path:
    """Put the chosen rule, the confidences that it needs, and the record of the choice into a recipe."""
    from dualrs.certificates import spell_seed
    from dualrs.config import BUNDLE
    from dualrs.config.edit import with_settings, with_table
    from dualrs.files import write_whole
    from dualrs.schemes.several import CONFIDENCES
    from dualrs.storage.tuned import Tuned

    path = target / BUNDLE if target.is_dir() else target
    where, rule = f"the recipe {path}", found.chosen
    text = with_settings(path.read_bytes().decode(), "certify", {"rule": rule.name}, where)
    told = CONFIDENCES if recipe.model.confidences is None else recipe.model.confidences
    if needed := {c for c in rule.confidences if c} - set(told):
        text = with_settings(text, "model", {"confidences": tuple(sorted({*told, *needed}))}, where)
    record = Tuned.on(rule.name, header.dataset, header.dataset_fingerprint, spell_seed(header.seed), found.ids)
    hashes = tuple(record.inputs[i : i + _TO_A_LINE] for i in range(0, len(record.inputs), _TO_A_LINE))
    text = with_table(
        text,
        "tuned",
        {
            **{name: value for name, value in record.fields.items() if name != "inputs"},
            "n": header.n,
            "n0": header.n0,
            "alpha": header.alpha,
            "radii": found.objective.radii,
            **({"weights": found.objective.weights} if found.objective.weights else {}),
            "inputs": hashes,
        },
        where,
    )
    write_whole(path, text.encode())
    return path
