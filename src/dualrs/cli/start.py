"""The command for the first minutes: start."""

from pathlib import Path
from typing import Annotated

from typer import Option

from dualrs.cli.compare import compare
from dualrs.cli.options import DataOptions, EngineOptions, WorkerOptions
from dualrs.cli.report import figure
from dualrs.cli.sample import certify_models
from dualrs.cli.sets import Only, spread_out
from dualrs.cli.workers import Spread
from dualrs.errors import MissingExtra

NAME = "quickstart"  # of the recipe, and of what comes out
METHODS = "sigma-0.25,sigma-0.5,sigma-1,multiscale,paper,fusion,cascade"
_FIRST = 10  # inputs of the first table


@spread_out
def start(
    folder: Annotated[Path, Option("--output", "-o", help="The folder for the ledger and the picture.")] = Path("runs"),
    *,
    data: Annotated[DataOptions, Only(inputs="0:100")],
    engine: Annotated[EngineOptions, Only("device")],
) -> None:
    """Try dualrs: certify test images of CIFAR-10 with the networks that come with it, and compare every way to do so.

    Networks and images are part of dualrs, nothing is downloaded. The first table comes after 10 inputs, the last, and
    a picture, after all. Stop it at any time; run the same command again to resume. It is the recipe *quickstart*, as
    in `dualrs certify quickstart --inputs 0:100 --all-votes`.
    """
    from dualrs.config import load_recipe, recipe_path
    from dualrs.data.subsets import parse_inputs
    from dualrs.pipeline.build import build_data, build_model
    from dualrs.votes import SamplingPlan

    recipe = load_recipe(recipe_path(NAME), {"engine": engine.section()})
    folder.mkdir(parents=True, exist_ok=True)
    ledger = folder / f"{NAME}.ledger"
    spread = Spread(WorkerOptions(), recipe.engine.device, ledger)
    models, dataset = [(recipe, build_model(spread.local(recipe)), ledger)], build_data(recipe.data)
    plan = SamplingPlan(recipe.certify.n0, recipe.certify.n)
    indices = parse_inputs(data.inputs, len(dataset.ids))
    first = [] if ledger.exists() or len(indices) <= _FIRST else [indices[:_FIRST]]
    for some in [*first, indices]:
        certify_models("certifying", models, dataset, some, plan, spread)
        compare([str(ledger)], methods=METHODS)
        if some is not indices:
            print(f"these are the first {_FIRST}; {len(indices) - _FIRST} more follow, and votes are kept if you stop")
    try:
        figure("accuracy", [str(ledger)], output=folder / f"{NAME}.png", methods=METHODS)
    except MissingExtra as missing:
        print(f"no picture: {missing}")
    print(f"every vote is in {ledger}: try  dualrs why {ledger} {dataset.ids[indices[0]]},  or  dualrs report {ledger}")
