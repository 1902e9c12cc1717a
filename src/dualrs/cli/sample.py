"""The commands that run networks: certify and predict."""

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from dualrs.cli.ledgers import Picture, show
from dualrs.cli.options import (
    N0,
    VOTES,
    Adaptive,
    Alpha,
    BatchSize,
    Bundle,
    Classifier,
    Compile,
    Core,
    Crop,
    Data,
    Device,
    Dtype,
    Experts,
    Inputs,
    N,
    RayAddress,
    RecipeFile,
    Resize,
    Reuse,
    Router,
    RuleName,
    Seed,
    Selector,
    Sigma,
    SigmaE,
    Sigmas,
    TargetRadii,
    TargetTolerance,
    Thresholds,
    WorkerCount,
    expert_references,
    from_here,
    numbers,
)
from dualrs.cli.workers import Spread
from dualrs.errors import BadRecipe

if TYPE_CHECKING:
    from dualrs.config import Recipe
    from dualrs.data.dataset import Dataset
    from dualrs.smoothed import SmoothedModel


def certify(
    recipe: RecipeFile = None,
    ledger: Annotated[
        Path | None,
        Option("--ledger", "-o", help="Where votes and certificates are kept; runs/RECIPE.ledger by default."),
    ] = None,
    picture: Picture = None,
    model: Bundle = None,
    router: Router = None,
    classifier: Classifier = None,
    expert: Experts = None,
    sigmas: Sigmas = None,
    sigma_e: SigmaE = None,
    sigma: Sigma = None,
    core: Core = None,
    thresholds: Thresholds = None,
    selector: Selector = None,
    data: Data = None,
    resize: Resize = None,
    crop: Crop = None,
    inputs: Inputs = "::",
    all_votes: Annotated[
        bool,
        Option(
            "--all-votes",
            help="Sample every candidate at its sigma, not only those the rule can use: `dualrs compare` then derives "
            "every method from the one ledger.",
            rich_help_panel=VOTES,
        ),
    ] = False,
    reuse: Reuse = None,
    n: N = None,
    n0: N0 = None,
    alpha: Alpha = None,
    rule: RuleName = None,
    adaptive: Adaptive = False,
    radii: TargetRadii = None,
    tolerance: TargetTolerance = None,
    seed: Seed = None,
    batch_size: BatchSize = None,
    device: Device = None,
    dtype: Dtype = None,
    compile: Compile = False,
    workers: WorkerCount = None,
    ray: RayAddress = None,
) -> None:
    """Certify inputs: sample votes, keep them in a ledger, derive a radius for each.

    Stop it at any time; the same command goes on where it was. The ledger refuses another model, other data or
    other settings.

    Example: `dualrs certify --router net.py:router --classifier net.py:classifier --sigmas 0.25,0.5,1.0
    --sigma-e 1.0 --data net.py:test -o run.ledger`
    """
    loaded = _load(
        recipe, model, router, classifier, expert, sigmas, sigma_e, sigma, data, resize, crop, batch_size,
        device, dtype, compile,
        certify={
            "n": n, "n0": n0, "alpha": alpha, "rule": rule, "budget": "adaptive" if adaptive else None,
            "radii": numbers(radii, "--radii"), "tolerance": tolerance, "seed": seed,
        },
        core=core, thresholds=thresholds, selector=selector,
    )  # fmt: skip
    if ledger is None:
        if recipe is None:
            raise BadRecipe("say where to keep the votes: -o FILE.ledger")
        ledger = Path("runs") / f"{recipe.stem}.ledger"
    ledger.parent.mkdir(parents=True, exist_ok=True)
    spread = Spread(workers, ray, loaded.engine.device)
    smoothed, dataset = _build(spread.local(loaded), recipe)

    from dualrs.cli.progress import Bar
    from dualrs.data.subsets import parse_inputs
    from dualrs.jobs import certify_dataset
    from dualrs.policy import Grid, Tolerance
    from dualrs.smoothed import sampling_plan

    settings = loaded.certify
    wanted: Grid | Tolerance | None = None if settings.radii is None else Grid(settings.radii)
    if settings.tolerance is not None:
        wanted = Tolerance(settings.tolerance)
    plan, target = sampling_plan(settings.n0, settings.n, settings.budget, wanted)
    indices = parse_inputs(inputs, len(dataset.ids))
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
            reuse=reuse,
            command=shlex.join(["dualrs", *sys.argv[1:]]),
            report=bar.update,
        )
    show(ledger, picture=picture)


def predict(
    recipe: RecipeFile = None,
    output: Annotated[
        Path | None, Option("--output", "-o", help="Also write the predictions to this .tsv file.")
    ] = None,
    model: Bundle = None,
    router: Router = None,
    classifier: Classifier = None,
    expert: Experts = None,
    sigmas: Sigmas = None,
    sigma_e: SigmaE = None,
    sigma: Sigma = None,
    data: Data = None,
    resize: Resize = None,
    crop: Crop = None,
    inputs: Inputs = "::",
    n: Annotated[int, Option(help="Votes per stage.", rich_help_panel=VOTES)] = 1_000,
    alpha: Alpha = None,
    seed: Seed = None,
    batch_size: BatchSize = None,
    device: Device = None,
    dtype: Dtype = None,
    compile: Compile = False,
) -> None:
    """Classify inputs without a radius: far fewer votes, wrong with probability at most alpha per input.

    Each stage is tested at alpha/2 (the paper's PREDICT); undecided inputs abstain and say which stage was.
    """
    loaded = _load(
        recipe, model, router, classifier, expert, sigmas, sigma_e, sigma, data, resize, crop, batch_size,
        device, dtype, compile,
        certify={"alpha": alpha, "seed": seed},
    )  # fmt: skip
    smoothed, dataset = _build(loaded, recipe)

    import numpy as np

    from dualrs.certificates import Predictions
    from dualrs.cli.progress import Bar
    from dualrs.cli.tables import print_predictions
    from dualrs.data.subsets import parse_inputs
    from dualrs.files import whole_file

    indices = parse_inputs(inputs, len(dataset.ids))
    images = np.stack([dataset.image(i) for i in indices])
    ids = [dataset.ids[i] for i in indices]
    settings = loaded.certify
    with Bar("predicting", len(indices)) as bar:
        found = smoothed.predict(images, n=n, alpha=settings.alpha, seed=settings.seed, ids=ids, progress=bar.update)
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
    recipe: Path | None,
    bundle: Path | None,
    router: str | None,
    classifier: str | None,
    expert: list[str] | None,
    sigmas: str | None,
    sigma_e: float | None,
    sigma: float | None,
    data: str | None,
    resize: int | None,
    crop: int | None,
    batch_size: int | None,
    device: str | None,
    dtype: str | None,
    compile: bool,
    certify: dict[str, Any],
    core: str | None = None,
    thresholds: str | None = None,
    selector: str | None = None,
) -> "Recipe":
    from dualrs.config import load_recipe

    here = Path.cwd()
    model = {
        "router": from_here(router, here),
        "classifier": from_here(classifier, here),
        "experts": expert_references(expert, here),
        "sigmas": numbers(sigmas, "--sigmas"),
        "sigma_e": sigma_e,
        "sigma": sigma,
        "core": from_here(core, here),
        "thresholds": numbers(thresholds, "--thresholds"),
        "selector": from_here(selector, here),
    }
    engine = {"batch_size": batch_size, "device": device, "dtype": dtype, "compile": compile or None}
    images = {"source": from_here(data, here), "resize": resize, "crop": crop}
    overrides: dict[str, Mapping[str, Any]] = {"model": model, "data": images, "certify": certify, "engine": engine}
    return load_recipe(recipe, overrides, bundle=bundle)


def _build(recipe: "Recipe", path: Path | None) -> "tuple[SmoothedModel, Dataset]":
    from dualrs.build import build_data, build_model
    from dualrs.models.hardware import keep_memory

    keep_memory()
    folder = None if path is None else path.parent.resolve()
    return build_model(recipe, folder), build_data(recipe.data, folder)
