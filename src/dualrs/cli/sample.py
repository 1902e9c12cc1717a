"""The commands that run networks: certify and predict."""

from collections.abc import Sequence
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

_EXAMPLE = (
    "dualrs certify --classifier 'zoo:cifar10-denoiser | zoo:cifar10-classifier' --sigmas 0.25,0.5,1.0 "
    "--data cifar10:subset --inputs 0:3 --n 1000 -o run.ledger"
)

if TYPE_CHECKING:
    from dualrs.config import Recipe
    from dualrs.data.dataset import Dataset
    from dualrs.policy import Target
    from dualrs.smoothed import SmoothedModel
    from dualrs.votes import SamplingPlan


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
    if picture is not None:
        from dualrs.report.figures import demand_drawable

        demand_drawable(picture)
    ledger.parent.mkdir(parents=True, exist_ok=True)
    spread = Spread(workers, loaded.engine.device, ledger)
    smoothed, dataset = _build(spread.local(loaded), recipe)

    from dualrs.data.subsets import parse_inputs
    from dualrs.smoothed.model import sampling_plan, target_of

    settings = loaded.certify
    wanted = target_of(settings.radii, settings.tolerance)
    plan, target = sampling_plan(settings.n0, settings.n, settings.budget, wanted)
    models = [(loaded, smoothed, ledger)]
    indices = parse_inputs(data.inputs, len(dataset.ids))
    certify_models(
        "certifying", models, dataset, indices, plan, spread, reuse=votes.reuse, target=target, all_votes=all_votes
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
        Only(
            *("model", "router", "classifier", "expert", "sigmas", "sigma_e", "sigma", "core", "confidences"),
            *("neighbours", "ascent"),
        ),
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
    smoothed, dataset = _build(Spread(WorkerOptions(), loaded.engine.device).local(loaded), recipe)

    import numpy as np

    from dualrs.certificates import Predictions
    from dualrs.cli.tables import print_predictions
    from dualrs.data.classes import demand_fit
    from dualrs.data.subsets import parse_inputs
    from dualrs.files import write_whole
    from dualrs.jobs.opening import numbered_for
    from dualrs.progress import Bar

    dataset = numbered_for(smoothed, dataset)
    indices = parse_inputs(data.inputs, len(dataset.ids))
    images = np.stack([dataset.image(i) for i in indices])
    ids = [dataset.ids[i] for i in indices]
    smoothed.engine.prepare(images[0])
    demand_fit(dataset, smoothed.scheme.classes)
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
        write_whole(output, ("\n".join(lines) + "\n").encode())


def certify_models(
    title: str,
    models: "Sequence[tuple[Recipe, SmoothedModel, Path]]",
    dataset: "Dataset",
    indices: Sequence[int],
    plan: "SamplingPlan",
    spread: Spread,
    *,
    reuse: Path | None = None,
    target: "Target | None" = None,
    all_votes: bool = True,
) -> None:
    """Certify into the ledger of each model, under the rule of its recipe, with a bar on the terminal."""
    from dualrs.jobs import Certification, certify_together
    from dualrs.progress import Bar

    jobs = []
    for recipe, model, path in models:
        tuned = {} if recipe.tuned is None else recipe.tuned.record
        jobs.append(Certification(model, model.rule(recipe.certify.rule), path, reuse, tuned))
    settings = models[0][0].certify
    with Bar(title, len(indices) * len(jobs)) as bar, spread.over(bar, *(model for _, model, _ in models)):
        certify_together(
            jobs, dataset, plan=plan, alpha=settings.alpha, seed=settings.seed, indices=indices, all_votes=all_votes,
            target=target, command=this_command(), report=bar.update,
        )  # fmt: skip


def _load(
    recipe: Path | None, networks: NetworkOptions, data: DataOptions, votes: VoteOptions, engine: EngineOptions
) -> "Recipe":
    """A recipe, if there is one, and what was given by hand over it."""
    there = {"model": networks != NetworkOptions(), "data": data.data}
    missing = [f"{section}: is missing" for section, given in there.items() if not given]
    if missing and recipe is None and networks.model is None:
        raise BadRecipe(
            f"the settings: {'; '.join(missing)}. Name a network, sigmas and images, as in\n  {_EXAMPLE}\n"
            "or a recipe that does, as in\n  dualrs certify quickstart --inputs 0:3"
        )
    from dualrs.config import load_recipe

    by_hand: dict[str, dict[str, Any]] = {
        "model": networks.section(),
        "data": data.section(),
        "certify": votes.section(),
        "engine": engine.section(),
    }
    return load_recipe(recipe, by_hand, bundle=networks.model)


def _build(recipe: "Recipe", path: Path | None) -> "tuple[SmoothedModel, Dataset]":
    from dualrs.pipeline.build import build_data, build_model

    folder = None if path is None else path.parent.resolve()
    return build_model(recipe, folder), build_data(recipe.data, folder)
