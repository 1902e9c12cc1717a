"""The commands that run networks: certify and predict."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from dualrs.cli.ledgers import Picture, show
from dualrs.errors import BadRecipe

if TYPE_CHECKING:
    from dualrs.config import Recipe
    from dualrs.data.dataset import Dataset
    from dualrs.smoothed import SmoothedModel

_NETWORKS, _DATA, _VOTES, _ENGINE = "Networks", "Data", "Votes and rule", "Engine"
_REFERENCE = (
    "zoo:NAME, a file of weights or a hub's model (see `dualrs models`), or module:attribute or file.py:attribute, an "
    "object or a function that makes it; 'DENOISER | NETWORK' puts a denoiser in front"
)

RecipeFile = Annotated[
    Path | None, Argument(help="A recipe (TOML) with the settings below; options given by hand win over it.")
]
Router = Annotated[str | None, Option(help=f"The router: {_REFERENCE}.", rich_help_panel=_NETWORKS)]
Classifier = Annotated[str | None, Option(help="The classifier, named likewise.", rich_help_panel=_NETWORKS)]
Experts = Annotated[
    list[str] | None,
    Option("--expert", help="An expert for one sigma, as 0.25=module:attribute; repeat.", rich_help_panel=_NETWORKS),
]
Sigmas = Annotated[str | None, Option(help="Candidate sigmas, as 0.25,0.5,1.0.", rich_help_panel=_NETWORKS)]
SigmaE = Annotated[float | None, Option(help="Sigma of the router.", rich_help_panel=_NETWORKS)]
Sigma = Annotated[float | None, Option(help="The one sigma of a classifier without router.", rich_help_panel=_NETWORKS)]
Data = Annotated[
    str | None,
    Option(
        help="cifar10:test, cifar10:subset, folder:PATH, hub:ID:SPLIT, or module:attribute: a dataset, an array of "
        "images, or (images, labels).",
        rich_help_panel=_DATA,
    ),
]
Resize = Annotated[
    int | None, Option(help="Resize images of folders and hubs: pixels of the shorter side.", rich_help_panel=_DATA)
]
Crop = Annotated[int | None, Option(help="Then take the central square of this side.", rich_help_panel=_DATA)]
Inputs = Annotated[
    str, Option(help="Which inputs, as START:STOP:STEP of their positions; :: is all.", rich_help_panel=_DATA)
]
N = Annotated[int | None, Option(help="Estimation votes per stage; 10,000 by default.", rich_help_panel=_VOTES)]
N0 = Annotated[int | None, Option(help="Selection votes per stage; 100 by default.", rich_help_panel=_VOTES)]
Alpha = Annotated[
    float | None,
    Option(help="Probability that the answer for an input may be wrong; 0.001 by default.", rich_help_panel=_VOTES),
]
RuleName = Annotated[
    str | None,
    Option(
        help="cohen (one sigma); paper, paper-1:4 (another split), nosplit, fusion or fusion-pair (two stages). "
        "cohen or fusion by default.",
        rich_help_panel=_VOTES,
    ),
]
Seed = Annotated[int | None, Option(help="Seed of the noise; 0 by default.", rich_help_panel=_VOTES)]
BatchSize = Annotated[
    int | None,
    Option(
        help="Shape of every batch, part of the run; 256 by default, less if memory asks for it.",
        rich_help_panel=_ENGINE,
    ),
]
Device = Annotated[
    str | None, Option(help="cpu, cuda, mps; where the networks are by default.", rich_help_panel=_ENGINE)
]
Dtype = Annotated[str | None, Option(help="float32 (default), bfloat16 or float16.", rich_help_panel=_ENGINE)]


def certify(
    recipe: RecipeFile = None,
    ledger: Annotated[
        Path | None,
        Option("--ledger", "-o", help="Where votes and certificates are kept; runs/RECIPE.ledger by default."),
    ] = None,
    picture: Picture = None,
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
    n: N = None,
    n0: N0 = None,
    alpha: Alpha = None,
    rule: RuleName = None,
    seed: Seed = None,
    batch_size: BatchSize = None,
    device: Device = None,
    dtype: Dtype = None,
) -> None:
    """Certify inputs: sample votes, keep them in a ledger, derive a radius for each.

    Stop it at any time; the same command goes on where it was. The ledger refuses another model, other data or
    other settings.

    Example: `dualrs certify --router net.py:router --classifier net.py:classifier --sigmas 0.25,0.5,1.0
    --sigma-e 1.0 --data net.py:test -o run.ledger`
    """
    loaded = _load(
        recipe, router, classifier, expert, sigmas, sigma_e, sigma, data, resize, crop, batch_size,
        device, dtype,
        certify={"n": n, "n0": n0, "alpha": alpha, "rule": rule, "seed": seed},
    )  # fmt: skip
    if ledger is None:
        if recipe is None:
            raise BadRecipe("say where to keep the votes: -o FILE.ledger")
        ledger = Path("runs") / f"{recipe.stem}.ledger"
    ledger.parent.mkdir(parents=True, exist_ok=True)
    model, dataset = _build(loaded, recipe)

    from dualrs.cli.progress import Bar
    from dualrs.jobs import certify_dataset
    from dualrs.votes import SamplingPlan

    settings = loaded.certify
    indices = _indices(inputs, len(dataset.ids))
    chosen = model.rule(settings.rule)
    with Bar("certifying", len(indices)) as bar:
        certify_dataset(
            model,
            dataset,
            ledger,
            plan=SamplingPlan(settings.n0, settings.n),
            alpha=settings.alpha,
            rule=chosen,
            seed=settings.seed,
            indices=indices,
            command=shlex.join(["dualrs", *sys.argv[1:]]),
            report=bar.update,
        )
    show(ledger, picture=picture)


def predict(
    recipe: RecipeFile = None,
    output: Annotated[
        Path | None, Option("--output", "-o", help="Also write the predictions to this .tsv file.")
    ] = None,
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
    n: Annotated[int, Option(help="Votes per stage.", rich_help_panel=_VOTES)] = 1_000,
    alpha: Alpha = None,
    seed: Seed = None,
    batch_size: BatchSize = None,
    device: Device = None,
    dtype: Dtype = None,
) -> None:
    """Classify inputs without a radius: far fewer votes, wrong with probability at most alpha per input.

    Each stage is tested at alpha/2 (the paper's PREDICT); undecided inputs abstain and say which stage was.
    """
    loaded = _load(
        recipe, router, classifier, expert, sigmas, sigma_e, sigma, data, resize, crop, batch_size,
        device, dtype,
        certify={"alpha": alpha, "seed": seed},
    )  # fmt: skip
    model, dataset = _build(loaded, recipe)

    import numpy as np

    from dualrs.certificates import Predictions
    from dualrs.cli.progress import Bar
    from dualrs.cli.tables import print_predictions
    from dualrs.storage.exports import whole_file

    indices = _indices(inputs, len(dataset.ids))
    images = np.stack([dataset.image(i) for i in indices])
    ids = [dataset.ids[i] for i in indices]
    settings = loaded.certify
    with Bar("predicting", len(indices)) as bar:
        found = model.predict(images, n=n, alpha=settings.alpha, seed=settings.seed, ids=ids, progress=bar.update)
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
    certify: dict[str, Any],
) -> "Recipe":
    from dualrs.config import load_recipe

    here = Path.cwd()
    model = {
        "router": _from_here(router, here),
        "classifier": _from_here(classifier, here),
        "experts": _experts(expert, here),
        "sigmas": _numbers(sigmas, "--sigmas"),
        "sigma_e": sigma_e,
        "sigma": sigma,
    }
    engine = {"batch_size": batch_size, "device": device, "dtype": dtype}
    images = {"source": _from_here(data, here), "resize": resize, "crop": crop}
    return load_recipe(recipe, {"model": model, "data": images, "certify": certify, "engine": engine})


def _from_here(reference: str | None, folder: Path) -> str | None:
    """Paths on the command line start here, those in a recipe at the recipe; make the former absolute."""
    from dualrs.references import anchored

    return None if reference is None else anchored(reference, folder)


def _experts(pairs: list[str] | None, folder: Path) -> dict[str, str | None] | None:
    if not pairs:
        return None
    split = [p.partition("=") for p in pairs]
    if any(not sign for _, sign, _ in split):
        raise BadRecipe("an expert is given as SIGMA=module:attribute, for example --expert 0.25=net.py:small")
    return {sigma: _from_here(reference, folder) for sigma, _, reference in split}


def _numbers(text: str | None, option: str) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(t) for t in text.split(",")]
    except ValueError as error:
        raise BadRecipe(f"{option} takes numbers separated by commas, such as 0.25,0.5,1.0; got {text!r}") from error


def _build(recipe: "Recipe", path: Path | None) -> "tuple[SmoothedModel, Dataset]":
    from dualrs.build import build_data, build_model
    from dualrs.models.hardware import keep_memory

    keep_memory()
    folder = None if path is None else path.parent.resolve()
    return build_model(recipe, folder), build_data(recipe.data, folder)


def _indices(text: str, count: int) -> range:
    try:
        chosen = range(count)[slice(*(int(t) if t else None for t in text.split(":")))]
    except (TypeError, ValueError) as error:
        raise BadRecipe(f"--inputs takes START:STOP:STEP, such as 0:500 or ::20; got {text!r}") from error
    if not len(chosen):
        raise BadRecipe(f"--inputs {text} leaves none of the {count} inputs")
    return chosen
