"""The commands about whole trainings: rounds, and what a recipe will do and cost."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option, Typer

from dualrs.cli.device import chosen_device
from dualrs.cli.options import EngineOptions, WorkerOptions, recipe_file, this_command
from dualrs.cli.sets import Only, spread_out
from dualrs.cli.workers import Spread

if TYPE_CHECKING:
    from dualrs.pipeline.rounds import Step
    from dualrs.sampling.collect import Report
    from dualrs.smoothed import SmoothedModel
    from dualrs.training.loop import State

recipe_app = Typer(no_args_is_help=True, help="Look at recipes.")

_recipe = partial(Argument, parser=recipe_file, metavar="RECIPE", show_default=False)
RoundsFile = Annotated[Path, _recipe(help="A recipe for rounds of training: a file (TOML), or a name, as cifar10-cpu.")]


@spread_out
def rounds(
    recipe: RoundsFile,
    folder: Annotated[
        Path | None, Option("--folder", "-o", help="Where everything goes; runs/RECIPE by default.")
    ] = None,
    *,
    engine: Annotated[EngineOptions, Only("device")],
    workers: WorkerOptions,
) -> None:
    """Train a router and a classifier in turn: label, train router, assign, fine-tune, label, train router ...

    Stop it at any time; run the same command again to resume, and no step is done twice. What comes out is a bundle, a
    folder that `dualrs certify --model FOLDER` takes.

    Example: `dualrs rounds cifar10-cpu`
    """
    from dualrs.config import load_rounds
    from dualrs.pipeline.rounds import Rounds

    loaded = load_rounds(recipe, {"engine": {"device": engine.device}})
    folder = folder or Path("runs") / recipe.stem
    spread = Spread(workers, loaded.engine.device, folder / "1-labels.ledger")
    bundle = Rounds(loaded, folder, Terminal(spread), command=this_command(), device=spread.local_device).run()
    print(f"the bundle is in {bundle}; certify it: dualrs certify --model {bundle} -o {folder / 'test.ledger'}")


@recipe_app.command("check")
def check(
    recipe: Annotated[Path, _recipe(help="A recipe for certify, rounds or train: a file (TOML), or a name.")],
    *,
    rate: Annotated[
        float | None, Option(help="Noisy images a second of the machine that it is for; nothing is measured here.")
    ] = None,
    images: Annotated[
        int | None, Option(min=1, help="How many images the data have, where they are not at hand; with --rate.")
    ] = None,
    test_images: Annotated[
        int | None, Option(min=1, help="How many are certified at the end of rounds; with --rate.")
    ] = None,
) -> None:
    """Check a recipe of any kind, and print what it will do: noisy images through the networks, and the time here.

    Every setting is checked that some step would refuse, and every rate is measured by doing the step itself on a few
    batches. Where networks or data are not at hand, the plan is printed without times.

    With a rate, the times are those of one device of that rate: no network is opened, and certificates are on the plan.

    Example: `dualrs recipe check imagenet-paper --rate 13 --images 1281167 --test-images 500`
    """
    from dualrs.cli.tables import print_costs
    from dualrs.config import ClassifierRecipe, load_any
    from dualrs.errors import BadSetting
    from dualrs.pipeline.estimate import Elsewhere, estimate

    loaded = load_any(recipe)
    if rate is not None:
        costs = estimate(loaded, Elsewhere(rate, images, test_images))
        print_costs(costs, loaded.title or recipe.name, measured=False)
        return
    if images is not None or test_images is not None:
        raise BadSetting("--images and --test-images go with --rate; what is measured here takes the data themselves")
    if isinstance(loaded, ClassifierRecipe):
        here = {"device": chosen_device(loaded.classifier.device)}
        loaded = loaded.model_copy(update={"classifier": loaded.classifier.model_copy(update=here)})
    else:
        loaded = Spread(WorkerOptions(), loaded.engine.device).local(loaded)
    print_costs(estimate(loaded), loaded.title or recipe.name)


class Terminal:
    """Bars for the steps of rounds, under the names of what they make; workers for their votes, if asked for."""

    def __init__(self, spread: Spread) -> None:
        self._spread = spread

    @contextmanager
    def collecting(self, step: "Step", inputs: int, model: "SmoothedModel") -> "Iterator[Report]":
        """While votes of a model are collected."""
        from dualrs.progress import Bar

        with Bar(f"{step.kind}: {step.product}", inputs) as bar, self._spread.over(bar, model):
            yield bar.update

    @contextmanager
    def training(self, step: "Step") -> "Iterator[Callable[[State], None]]":
        """While a network is trained."""
        from dualrs.cli.training_bar import TrainingBar

        with TrainingBar(f"{step.kind}: {step.product}") as bar:
            yield bar.update
