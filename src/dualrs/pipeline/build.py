"""From a recipe to objects: open or import what it names and wrap it.

Enters: a recipe. Leaves: its model, smoothed, and its dataset.
"""

from pathlib import Path

from dualrs.config import DataSection, Recipe
from dualrs.data.dataset import Dataset, as_dataset
from dualrs.data.sources import open_dataset
from dualrs.pipeline.networks import Networks
from dualrs.references import resolve
from dualrs.smoothed import Aces, Cascade, DualSmoothed, Smoothed, SmoothedModel


def build_model(recipe: Recipe, folder: Path | None = None, networks: Networks | None = None) -> SmoothedModel:
    """The networks that a recipe names, smoothed; references are relative to ``folder``.

    ``networks`` has those that other models opened, to share them.
    """
    spec, engine, told = recipe.model, recipe.engine.model_dump(), recipe.model.confidences
    network = networks or Networks(folder)
    classifier = network.classifier(spec.classifier, spec.experts)
    if spec.core is not None:
        selector = None if spec.selector is None else network(spec.selector)
        return Aces(classifier, network(spec.core), spec.sigma, spec.thresholds, selector=selector, **engine)  # type: ignore[arg-type]
    if spec.sigma is not None:
        return Smoothed(classifier, spec.sigma, **engine)  # type: ignore[arg-type]
    if spec.router is None:
        return Cascade(classifier, spec.sigmas, confidences=told, **engine)
    return DualSmoothed(network(spec.router), classifier, spec.sigmas, spec.sigma_e, confidences=told, **engine)  # type: ignore[arg-type]


def build_data(data: DataSection, folder: Path | None = None) -> Dataset:
    """The dataset that is named; an array without a name is called after its reference, less the folder."""
    found = open_dataset(data.source, folder, data.resize, data.crop)
    return as_dataset(resolve(data.source, folder), Path(data.source).name) if found is None else found
