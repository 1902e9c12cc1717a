"""From a recipe to objects: import what it names and wrap it."""

from pathlib import Path

from dualrs.config import Recipe
from dualrs.data.dataset import Dataset, as_dataset
from dualrs.references import resolve
from dualrs.smoothed import DualSmoothed, Smoothed, SmoothedModel


def build_model(recipe: Recipe, folder: Path | None = None) -> SmoothedModel:
    """The networks that a recipe names, smoothed; references are relative to ``folder``."""
    spec, engine = recipe.model, recipe.engine.model_dump()
    classifier = (
        {sigma: resolve(reference, folder) for sigma, reference in spec.experts.items()}
        if spec.experts is not None
        else resolve(str(spec.classifier), folder)
    )
    # What a reference leads to is checked by the classes themselves, which say what is wrong with it.
    if spec.router is None:
        return Smoothed(classifier, spec.sigma, **engine)  # type: ignore[arg-type]
    return DualSmoothed(resolve(spec.router, folder), classifier, spec.sigmas, spec.sigma_e, **engine)  # type: ignore[arg-type]


def build_data(recipe: Recipe, folder: Path | None = None) -> Dataset:
    """The dataset that a recipe names; an array without a name is called after its reference, less the folder."""
    return as_dataset(resolve(recipe.data, folder), Path(recipe.data).name)
