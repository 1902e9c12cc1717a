"""How the votes of a command are spread over workers: --workers and --ray."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dualrs.cli.options import WorkerOptions

if TYPE_CHECKING:
    from dualrs.config import Recipe
    from dualrs.progress import Bar
    from dualrs.smoothed import SmoothedModel


@dataclass(frozen=True)
class Spread:
    """The options as given, and the device that networks run on."""

    options: WorkerOptions
    device: str | None

    def __post_init__(self) -> None:
        if self._asked:  # say that Ray is missing before networks and data are loaded
            from dualrs.scale.cluster import import_ray

            import_ray()

    @property
    def _asked(self) -> bool:
        return self.options != WorkerOptions()

    @property
    def local_device(self) -> str | None:
        """Where this process puts its own networks: where they are if it only sends them to workers."""
        return None if self._asked else self.device

    def local(self, recipe: "Recipe") -> "Recipe":
        """A recipe with this process's own device."""
        engine = recipe.engine.model_copy(update={"device": self.local_device})
        return recipe.model_copy(update={"engine": engine})

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
