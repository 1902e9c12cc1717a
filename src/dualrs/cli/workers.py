"""How the votes of a command are spread over workers: --workers and --ray."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from dualrs.cli.device import chosen_device
from dualrs.cli.options import WorkerOptions

if TYPE_CHECKING:
    from dualrs.config import Recipe, RoundsRecipe
    from dualrs.progress import Bar
    from dualrs.smoothed import SmoothedModel


R = TypeVar("R", bound="Recipe | RoundsRecipe")


class Spread:
    """The options as given, the device that is asked for, and ledgers that the command may go on with.

    ``local_device`` is where this process puts its own networks: where they are if it only sends them to workers.
    """

    def __init__(self, options: WorkerOptions, device: str | None, *ledgers: Path) -> None:
        self.options, self.device = options, device
        self._asked = options != WorkerOptions()
        if self._asked:  # say that Ray is missing before networks and data are loaded
            from dualrs.scale.cluster import import_ray

            import_ray()
        self.local_device = None if self._asked else chosen_device(device, *ledgers)

    def local(self, recipe: R) -> R:
        """A recipe with this process's own device."""
        engine = recipe.engine.model_copy(update={"device": self.local_device})
        return cast(R, recipe.model_copy(update={"engine": engine}))

    @contextmanager
    def over(self, bar: "Bar", *models: "SmoothedModel") -> Iterator[None]:
        """Have the votes of some models counted by workers, if any are asked for, and their number shown."""
        if not self._asked:
            yield
            return
        from dualrs.scale.workers import Workers

        bar.wait("starting workers")
        engines = [model.engine for model in models]
        with Workers(*engines, count=self.options.workers, address=self.options.ray, device=self.device) as workers:
            bar.workers = workers
            for model, executor in zip(models, workers.executors, strict=True):
                model.engine = executor
            yield
