"""From a recipe to objects: open or import what it names and wrap it."""

from pathlib import Path
from typing import cast

from torch import nn

from dualrs.config import DataSection, Recipe
from dualrs.data.dataset import Dataset, as_dataset
from dualrs.data.sources import open_dataset
from dualrs.errors import BadRecipe
from dualrs.models.denoise import Denoised
from dualrs.models.sources import open_network
from dualrs.references import resolve
from dualrs.smoothed import DualSmoothed, Smoothed, SmoothedModel


class Networks:
    """Opens references to networks, each once, so that two heads behind one denoiser share it."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or Path.cwd()
        self._opened: dict[str, nn.Module] = {}

    def __call__(self, reference: str) -> nn.Module:
        """A network, or a denoiser and the network behind it: ``DENOISER | NETWORK``."""
        parts = [part.strip() for part in reference.split("|")]
        if len(parts) > 2 or not all(parts):
            raise BadRecipe(f"{reference!r} is neither one network nor DENOISER | NETWORK")
        modules = [self._one(part) for part in parts]
        if len(modules) == 1:
            return modules[0]
        for part, module in zip(parts, modules, strict=True):
            if not isinstance(module, nn.Module):
                raise BadRecipe(f"{part!r} leads to a {type(module).__name__}, not to a torch module")
        return Denoised(*modules)

    def _one(self, reference: str) -> nn.Module:
        if reference not in self._opened:
            found = open_network(reference, self._folder)
            # What Python leads to is checked by the classes that take it, which say what is wrong with it.
            self._opened[reference] = cast(nn.Module, resolve(reference, self._folder)) if found is None else found
        return self._opened[reference]


def build_model(recipe: Recipe, folder: Path | None = None) -> SmoothedModel:
    """The networks that a recipe names, smoothed; references are relative to ``folder``."""
    spec, engine = recipe.model, recipe.engine.model_dump()
    network = Networks(folder)
    classifier = (
        {sigma: network(reference) for sigma, reference in spec.experts.items()}
        if spec.experts is not None
        else network(str(spec.classifier))
    )
    if spec.router is None:
        assert spec.sigma is not None, "checked by the recipe"
        return Smoothed(classifier, spec.sigma, **engine)  # type: ignore[arg-type]
    return DualSmoothed(network(spec.router), classifier, spec.sigmas, spec.sigma_e, **engine)  # type: ignore[arg-type]


def build_data(data: DataSection, folder: Path | None = None) -> Dataset:
    """The dataset that is named; an array without a name is called after its reference, less the folder."""
    found = open_dataset(data.source, folder, data.resize, data.crop)
    return as_dataset(resolve(data.source, folder), Path(data.source).name) if found is None else found
