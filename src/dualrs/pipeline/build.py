"""From a recipe, or the record of a run, to objects: open or import what it names and wrap it.

Enters: a recipe, or a kind of run with the references of its networks. Leaves: its model, smoothed, and its dataset.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dualrs.schemes as schemes
from dualrs.config import DataSection, Recipe
from dualrs.data.dataset import Dataset, as_dataset
from dualrs.data.sources import open_dataset
from dualrs.errors import BadRecipe
from dualrs.pipeline.networks import Networks
from dualrs.references import resolve
from dualrs.smoothed import Aces, Cascade, DualSmoothed, Pool, RouterAlone, Smoothed, SmoothedModel


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


def build_again(kind: schemes.Scheme[Any], named: Mapping[str, Any], **engine: Any) -> SmoothedModel:
    """The model of a run of some kind, from the references of its networks by role, ``experts`` among them."""
    open_network = Networks()

    def network(role: str) -> Any:
        if named.get(role) is None:
            raise BadRecipe(f"to draw votes of this run again, name its {role}: --{role}, --recipe or --model")
        return open_network(named[role])

    if isinstance(kind, schemes.Assigned):
        return RouterAlone(network("router"), kind.sigmas, kind.sigma_e, **engine)
    experts = named.get("experts")
    classifier: Any = open_network.classifier(None, experts) if experts else network("classifier")
    if isinstance(kind, schemes.Labels):
        return Pool(classifier, kind.sigmas, **engine)
    if isinstance(kind, schemes.Aces):
        selector = None if named.get("selector") is None else network("selector")
        return Aces(classifier, network("core"), kind.sigma, kind.thresholds, selector=selector, **engine)
    if isinstance(kind, schemes.Cascade):
        return Cascade(classifier, kind.sigmas, confidences=kind.confidences, **engine)
    if isinstance(kind, schemes.Dual):
        router = network("router")
        return DualSmoothed(router, classifier, kind.sigmas, kind.sigma_e, confidences=kind.confidences, **engine)
    return Smoothed(classifier, kind.sigmas[0], **engine)


def load_data(reference: str, *, resize: int | None = None, crop: int | None = None) -> Dataset:
    """A dataset by any name that the command line knows: cifar10:subset, folder:PATH, hub:NAME:SPLIT, net.py:test.

    ``resize`` is the shorter side that images of folders and hubs get, ``crop`` the side of the central square then
    taken. Paths start at the working folder.
    """
    return build_data(DataSection(source=reference, resize=resize, crop=crop))


def build_data(data: DataSection, folder: Path | None = None) -> Dataset:
    """The dataset that is named; an array without a name is called after its reference, less the folder."""
    found = open_dataset(data.source, folder, data.resize, data.crop)
    return as_dataset(resolve(data.source, folder), Path(data.source).name) if found is None else found
