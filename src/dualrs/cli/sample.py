"""The commands that run networks: certify and predict."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from dualrs.cli.ledgers import Picture, show
from dualrs.cli.options import (
    VOTES,
    DataOptions,
    EngineOptions,
    NetworkOptions,
    RecipeFile,
    VoteOptions,
    WorkerOptions,
    this_command,
)
from dualrs.cli.sets import Only, spread_out
from dualrs.cli.workers import Spread
from dualrs.errors import BadRecipe

if TYPE_CHECKING:
    from dualrs.config import Recipe
    from dualrs.data.dataset import Dataset
    from dualrs.smoothed import SmoothedModel


@spread_out
def certify(
    recipe: RecipeFile = None,
    ledger: Annotated[
        Path | None,
        Option("--ledger", "-o", help="Where votes and certificates are kept; runs/RECIPE.ledger by default."),
    ] = None,
    picture: Picture = None,
    all_votes: Annotated[
        bool,
        Option(
            "--all-votes",
            help="Sample every candidate at its sigma, not only those the rule can use: `dualrs compare` then derives "
            "every method from the one ledger.",
            rich_help_panel=VOTES,
        ),
    ] = False,
    *,
    networks: NetworkOptions,
    data: DataOptions,
    votes: VoteOptions,
    engine: EngineOptions,
    workers: WorkerOptions,
) -> None:
    """Certify inputs: sample votes, keep them in a ledger, derive a radius for each.

    Stop it at any time; run the same command again to resume. The ledger refuses another model, other data or other
    settings.

    Example: `dualrs certify --classifier net.py:classifier --sigmas 0.25,0.5,1.0 --data net.py:test -o run.ledger`

    With a router, add `--router net.py:router --sigma-e 1.0`; for one noise level, give `--sigma 0.5` instead.
    """
    loaded = _load(recipe, networks, data, votes, engine)
    if ledger is None:
        if recipe is None:
            raise BadRecipe("say where to keep the votes: -o FILE.ledger")
        ledger = Path("runs") / f"{recipe.stem}.ledger"
    ledger.parent.mkdir(parents=True, exist_ok=True)
    spread = Spread(workers, loaded.engine.device)
    smoothed, dataset = _build(spread.local(loaded), recipe)

    from dualrs.data.subsets import parse_inputs
    from dualrs.jobs import certify_dataset
    from dualrs.policy import Grid, Tolerance
    from dualrs.progress import Bar
    from dualrs.smoothed import sampling_plan

    settings = loaded.certify
    wanted: Grid | Tolerance | None = None if settings.radii is None else Grid(settings.radii)
    if settings.tolerance is not None:
        wanted = Tolerance(settings.tolerance)
    plan, target = sampling_plan(settings.n0, settings.n, settings.budget, wanted)
    indices = parse_inputs(data.inputs, len(dataset.ids))
    chosen = smoothed.rule(settings.rule)
    with Bar("certifying", len(indices)) as bar, spread.over(bar, smoothed):
        certify_dataset(
            smoothed,
            dataset,
            ledger,
            plan=plan,
            alpha=settings.alpha,
            rule=chosen,
            seed=settings.seed,
            indices=indices,
            all_votes=all_votes,
            target=target,
            reuse=votes.reuse,
            tuned=None if loaded.tuned is None else loaded.tuned.record,
            command=this_command(),
            report=bar.update,
        )
    show(ledger, picture=picture)


@spread_out
def predict(
    recipe: RecipeFile = None,
    output: Annotated[
        Path | None, Option("--output", "-o", help="Also write the predictions to this .tsv file.")
    ] = None,
    n: Annotated[int, Option(help="Votes per stage.", rich_help_panel=VOTES)] = 1_000,
    *,
    networks: Annotated[
        NetworkOptions,
        Only("model", "router", "classifier", "expert", "sigmas", "sigma_e", "sigma", "confidences"),
    ],
    data: DataOptions,
    votes: Annotated[VoteOptions, Only("alpha", "rule", "seed")],
    engine: EngineOptions,
) -> None:
    """Classify inputs without a radius: far fewer votes, wrong with probability at most alpha per input.

    With a router each stage is tested at alpha/2 (the paper's PREDICT); a cascade names a class where its rule gives it
    a radius. Undecided inputs abstain and say which stage was.
    """
    loaded = _load(recipe, networks, data, votes, engine)
    smoothed, dataset = _build(loaded, recipe)

    import numpy as np

    from dualrs.certificates import Predictions
    from dualrs.cli.tables import print_predictions
    from dualrs.data.subsets import parse_inputs
    from dualrs.files import whole_file
    from dualrs.progress import Bar

    indices = parse_inputs(data.inputs, len(dataset.ids))
    images = np.stack([dataset.image(i) for i in indices])
    ids = [dataset.ids[i] for i in indices]
    settings = loaded.certify
    with Bar("predicting", len(indices)) as bar:
        found = smoothed.predict(
            images, n=n, alpha=settings.alpha, rule=settings.rule, seed=settings.seed, ids=ids, progress=bar.update
        )
    assert isinstance(found, Predictions)  # of a batch
    labels = None if dataset.labels is None else [dataset.labels[i] for i in indices]
    print_predictions(ids, labels, found)
    if output is not None:
        lines = ["id\tlabel\tpredict\tsigma_c\toutcome"]
        for k, (name, p) in enumerate(zip(ids, found, strict=True)):
            lines.append(f"{name}\t{'' if labels is None else labels[k]}\t{p.prediction}\t{p.sigma_c}\t{p.outcome}")
        with whole_file(output) as file:
            file.write(("\n".join(lines) + "\n").encode())


def _load(
    recipe: Path | None, networks: NetworkOptions, data: DataOptions, votes: VoteOptions, engine: EngineOptions
) -> "Recipe":
    """A recipe, if there is one, and what was given by hand over it."""
    from dualrs.config import load_recipe

    by_hand: dict[str, dict[str, Any]] = {
        "model": networks.section(),
        "data": data.section(),
        "certify": votes.section(),
        "engine": engine.section(),
    }
    return load_recipe(recipe, by_hand, bundle=networks.model)


def _build(recipe: "Recipe", path: Path | None) -> "tuple[SmoothedModel, Dataset]":
    from dualrs.models.hardware import keep_memory
    from dualrs.pipeline.build import build_data, build_model

    keep_memory()
    folder = None if path is None else path.parent.resolve()
    return build_model(recipe, folder), build_data(recipe.data, folder)
