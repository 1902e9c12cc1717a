"""The command that samples for several models at once: panel."""

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from dualrs.cli.options import DataOptions, EngineOptions, VoteOptions, WorkerOptions, recipe_file
from dualrs.cli.sample import certify_models
from dualrs.cli.sets import Only, spread_out
from dualrs.cli.workers import Spread
from dualrs.errors import BadRecipe, BadSetting


@spread_out
def panel(
    recipes: Annotated[
        list[Path],
        Argument(
            parser=recipe_file,
            metavar="RECIPES",
            help="Recipes (files, or names) with a model each, or bundles (folders).",
            show_default=False,
        ),
    ],
    folder: Annotated[
        Path, Option("--output", "-o", help="The folder for the ledgers, one for each model.", show_default=False)
    ],
    *,
    data: Annotated[DataOptions, Only("inputs")],
    votes: Annotated[VoteOptions, Only("reuse", "n", "n0", "alpha", "seed")],
    engine: EngineOptions,
    workers: WorkerOptions,
) -> None:
    """Sample for several models on the same inputs in one pass, into a ledger each: the votes for a comparison.

    Noisy copies are drawn and denoised once for all models that vote on them, and a network that several models have in
    common votes once. Every model gets all votes, as with `dualrs certify --all-votes`, and each ledger is the one that
    this command would have written for its model alone, at the smallest of their batch sizes. Stop it at any time; run
    the same command again to resume.

    Example: `dualrs panel results/experts/weak.toml results/experts/strong.toml -o runs --inputs ::2`
    """
    from dualrs.config import load_recipe
    from dualrs.data.subsets import parse_inputs
    from dualrs.pipeline.build import build_data, build_model
    from dualrs.pipeline.networks import Networks
    from dualrs.votes import SamplingPlan

    names = [_name(path) for path in recipes]
    if len(set(names)) < len(names):
        raise BadRecipe("two of the models have the same name, and would write to the same ledger")
    given: dict[str, dict[str, Any]] = {"certify": votes.section(), "engine": engine.section()}
    loaded = [load_recipe(None, given, bundle=path) if path.is_dir() else load_recipe(path, given) for path in recipes]
    first = loaded[0]
    for path, other in zip(recipes, loaded, strict=True):
        for name, ours, theirs in (
            ("data", first.data, other.data),
            *((key, getattr(first.certify, key), getattr(other.certify, key)) for key in ("n", "n0", "alpha", "seed")),
        ):
            if ours != theirs:
                raise BadSetting(
                    f"models vote together on one run: {name} is {ours} in {recipes[0]}, {theirs} in {path}"
                )
    folder.mkdir(parents=True, exist_ok=True)
    ledgers = [folder / f"{name}.ledger" for name in names]
    spread = Spread(workers, first.engine.device, *ledgers)
    networks = Networks()  # references start at their recipe
    models = [build_model(spread.local(recipe), networks=networks) for recipe in loaded]
    plan = SamplingPlan(first.certify.n0, first.certify.n)
    together = list(zip(loaded, models, ledgers, strict=True))
    dataset = build_data(first.data)
    indices = parse_inputs(data.inputs, len(dataset.ids))
    certify_models("sampling", together, dataset, indices, plan, spread, reuse=votes.reuse)
    files = " ".join(map(str, ledgers))
    print(f"sampled {len(indices)} inputs for {', '.join(names)}; compare them: dualrs compare {files}")


def _name(path: Path) -> str:
    """What the ledger of a recipe or of a bundle is called: `dualrs rounds` names the folder around a bundle."""
    if not path.is_dir():
        return path.stem
    whole = path.resolve()
    return whole.parent.name if whole.name == "bundle" else whole.name
