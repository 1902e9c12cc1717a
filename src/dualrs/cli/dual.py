"""The command dual: from a classifier and images to a router, a bundle, and which way to certify does best."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from dualrs.cli.compare import compare
from dualrs.cli.options import DataOptions, EngineOptions, NetworkOptions, WorkerOptions, numbers, this_command
from dualrs.cli.rounds import Terminal
from dualrs.cli.sample import certify_models
from dualrs.cli.sets import Only, spread_out
from dualrs.cli.workers import Spread
from dualrs.errors import BadRecipe

if TYPE_CHECKING:
    from collections.abc import Sequence


@spread_out
def dual(
    folder: Annotated[Path, Option("--output", "-o", help="The folder for all that is made.", show_default=False)],
    seed: Annotated[int, Option(help="Seed of the training, and of the votes that are compared.")] = 0,
    *,
    networks: Annotated[NetworkOptions, Only("classifier", "sigma_e", sigmas="0.25,0.5,1.0")],
    data: Annotated[DataOptions, Only("data", "resize", "crop")],
    engine: Annotated[EngineOptions, Only("device")],
    workers: WorkerOptions,
) -> None:
    """Train a router for your classifier, and see whether the dual predictor, the cascade or one sigma does best.

    Three quarters of the images, 15,000 at most, are labelled with the radius that the classifier has on them at each
    sigma, and a router of a size that suits the images learns from them. The others, 500 at most, are certified in
    every way. What comes out is a bundle for `dualrs certify --model`. Settings of your own go into a recipe:
    `dualrs rounds`.

    Stop it at any time; run the same command again to resume.

    Example: `dualrs dual --classifier net.py:classifier --data folder:photos -o runs/photos`
    """
    section, given, sigmas = data.given(), networks.section(), numbers(networks.sigmas, "--sigmas")
    if given["classifier"] is None or section is None or not sigmas:
        raise BadRecipe("name a classifier and labelled images: --classifier net.py:classifier --data folder:photos")

    from dualrs.config import load_recipe
    from dualrs.pipeline.build import build_data, build_model
    from dualrs.pipeline.fitted import fitted_recipe, held_out
    from dualrs.pipeline.rounds import Rounds
    from dualrs.schemes.scheme import sigma_method
    from dualrs.votes import SamplingPlan

    dataset = build_data(section)
    recipe = fitted_recipe(section, dataset, given["classifier"], sigmas, networks.sigma_e or max(sigmas), seed)
    ledger = folder / "test.ledger"
    spread = Spread(workers, engine.device, folder / "1-labels.ledger", ledger)
    bundle = Rounds(recipe, folder, Terminal(spread), command=this_command(), device=spread.local_device).run()
    bundled = load_recipe(None, {}, bundle=bundle)
    models = [(bundled, build_model(spread.local(bundled)), ledger)]
    plan = SamplingPlan(recipe.certify.n0, recipe.certify.n)
    certify_models("comparing on held-out inputs", models, dataset, held_out(recipe, dataset), plan, spread)
    compare([str(ledger)], methods=",".join([*map(sigma_method, sigmas), "paper", "fusion", "cascade"]))
    _conclude(ledger, sigmas)
    print(f"the bundle is in {bundle}; certify with it: dualrs certify --model {bundle} -o FILE.ledger")


def _conclude(ledger: Path, sigmas: "Sequence[float]") -> None:
    """Print which sigmas the router names, and which way to certify has the highest mean accuracy over the radii."""
    import numpy as np

    from dualrs.cli.courses import ONE_SIGMA
    from dualrs.report.compare import compare as tabulate
    from dualrs.report.compare import gather
    from dualrs.sample import Sample
    from dualrs.schemes.scheme import sigma_method

    sample = Sample.open(ledger)
    named = np.bincount(sample.scheme.view(sample.votes).chosen, minlength=len(sigmas))
    print("the router names " + ", ".join(f"sigma {s:g} {k} times" for s, k in zip(sigmas, named, strict=True)))
    if (named > 0).sum() == 1:
        print(ONE_SIGMA)
    own = list(map(sigma_method, sigmas))
    rows = tabulate(gather([ledger], [*own, "fusion", "cascade"]).methods).rows
    mean = {row.name: float(np.mean(row.accuracy)) for row in rows if row.name in (*own, "fusion", "cascade")}
    best = max(mean, key=lambda name: mean[name])
    what = {"fusion": "the dual predictor (fusion)", "cascade": "the cascade, which needs no router"}
    print(
        f"best on these {len(sample)} held-out inputs, by the mean over the radii: {what.get(best, best)} with "
        f"{100 * mean[best]:.1f} %; " + ", ".join(f"{name} {100 * v:.1f} %" for name, v in mean.items() if name != best)
    )
