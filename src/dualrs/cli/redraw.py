"""Drawing votes of a run again, for `dualrs verify` and `dualrs board`: its networks, its data, and the drawing."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualrs.cli.options import DataOptions, NetworkOptions
from dualrs.errors import BadRecipe

if TYPE_CHECKING:
    from dualrs.data.dataset import Dataset
    from dualrs.jobs.redraw import Redrawn
    from dualrs.smoothed import SmoothedModel
    from dualrs.storage import Header


def open_run(
    header: "Header", recipe: Path | None, networks: NetworkOptions, data: DataOptions, device: str | None
) -> "tuple[SmoothedModel, Dataset]":
    """The model and the data of a run: those given by hand over those of a recipe or of a bundle.

    Sigmas are those of the ledger.
    """
    from dualrs.config import DataSection, load_recipe
    from dualrs.models.hardware import keep_memory
    from dualrs.pipeline.build import build_again, build_data

    keep_memory()
    found: dict[str, Any] = {}
    section: DataSection | None = None
    if recipe is not None or networks.model is not None:
        loaded = load_recipe(recipe, {}, bundle=networks.model)
        found, section = loaded.model.model_dump(), loaded.data
    found |= {role: name for role, name in networks.section().items() if name is not None}
    if data.data is not None:
        section = DataSection(**data.section())
    if section is None:
        raise BadRecipe("to draw votes again, name the images: --data, --recipe or --model")
    engine = {"batch_size": header.batch_size, "device": device or header.device, "dtype": header.dtype}
    return build_again(header.scheme, found, **engine), build_data(section)


def drawn_again(ledger: Path, count: int, opened: "Callable[[Header], tuple[SmoothedModel, Dataset]]") -> "Redrawn":
    """Draw so many random units of a ledger again, with the model and the data that its header leads to."""
    from dualrs.jobs import redraw
    from dualrs.progress import Bar
    from dualrs.storage import Ledger

    with Ledger.open(ledger) as recorded:
        model, dataset = opened(recorded.header)
        with Bar(ledger.name, len(recorded.inputs())) as bar:
            return redraw(model, dataset, recorded, count, report=bar.update)
