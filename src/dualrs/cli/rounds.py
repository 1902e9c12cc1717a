"""The commands about whole trainings: rounds, and what a recipe will do and cost."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option, Typer

from dualrs.cli.options import EngineOptions, WorkerOptions, this_command
from dualrs.cli.sets import Only, spread_out
from dualrs.cli.workers import Spread

if TYPE_CHECKING:
    from dualrs.pipeline.rounds import Step
    from dualrs.sampling.collect import Report
    from dualrs.smoothed import SmoothedModel
    from dualrs.training.loop import State

recipe_app = Typer(no_args_is_help=True, help="Look at recipes.")

RoundsFile = Annotated[Path, Argument(help="A recipe (TOML) for rounds of training.", show_default=False)]


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

    Example: `dualrs rounds recipes/cifar10-cpu.toml`
    """
    from dualrs.config import load_rounds
    from dualrs.models.hardware import keep_memory
    from dualrs.pipeline.rounds import Rounds

    keep_memory()
    loaded = load_rounds(recipe, {"engine": {"device": engine.device}})
    folder = folder or Path("runs") / recipe.stem
    terminal = _Terminal(Spread(workers, loaded.engine.device))
    bundle = Rounds(loaded, folder, terminal, command=this_command(), spread=terminal.spread).run()
    print(f"the bundle is in {bundle}; certify it: dualrs certify --model {bundle} -o {folder / 'test.ledger'}")


@recipe_app.command("check")
def check(
    recipe: Annotated[Path, Argument(help="A recipe (TOML), for certify or for rounds.", show_default=False)],
) -> None:
    """Check a recipe, and print what it will do: noisy images through the networks, and the time, measured here.

    Every rate is measured by doing the step itself on a few batches. Where networks or data are not at hand, the plan
    is printed without times.
    """
    from dualrs.cli.tables import print_costs
    from dualrs.config import load_any
    from dualrs.models.hardware import keep_memory
    from dualrs.pipeline.estimate import estimate

    keep_memory()
    loaded = load_any(recipe)
    print_costs(estimate(loaded), loaded.title or recipe.name)


class _Terminal:
    """Bars for the steps of rounds, under the names of what they make; workers for their votes, if asked for."""

    def __init__(self, options: Spread) -> None:
        self._options = options

    @contextmanager
    def collecting(self, step: "Step", inputs: int) -> "Iterator[Report]":
        """While votes are collected."""
        from dualrs.progress import Bar

        with Bar(f"{step.kind}: {step.product}", inputs) as bar:
            self._bar = bar
            yield bar.update

    def spread(self, model: "SmoothedModel") -> AbstractContextManager[None]:
        """While the votes of a model are collected."""
        return self._options.over(self._bar, model)

    @contextmanager
    def training(self, step: "Step") -> "Iterator[Callable[[State], None]]":
        """While a network is trained."""
        from dualrs.cli.training_bar import TrainingBar

        with TrainingBar(f"{step.kind}: {step.product}") as bar:
            yield bar.update
