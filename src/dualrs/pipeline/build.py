"""From a recipe, or the record of a run, to objects: open or import what it names and wrap it.

Enters: a recipe, or a kind of run with the references of its networks. Leaves: its model, smoothed, and its dataset.
"""

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dualrs.schemes as schemes
from dualrs.config import DataSection, Recipe
from dualrs.config.sections import ClassifierSection, MethodSection, RouterSection, ScheduleSection
from dualrs.data.dataset import Dataset, as_dataset
from dualrs.data.sources import nearest_dataset, open_dataset
from dualrs.errors import BadRecipe
from dualrs.models.reference import Reference
from dualrs.pipeline.networks import Networks
from dualrs.references import find, resolve
from dualrs.smoothed import (
    Ace,
    Aces,
    Ascending,
    Backed,
    Cascade,
    DualSmoothed,
    InputDependent,
    Mixed,
    Pool,
    RouterAlone,
    Smoothed,
    SmoothedModel,
)
from dualrs.training.methods import Method, choose
from dualrs.training.noise import Levels, OneOf
from dualrs.training.own_loss import OwnLoss
from dualrs.training.router import RouterObjective
from dualrs.training.schedule import Schedule
from dualrs.training.trainee import Trainee

_OF_EACH_INPUT = ("k", "rate", "centre", "steps", "draws")  # settings of the function that gives an input its sigma


def build_model(recipe: Recipe, folder: Path | None = None, networks: Networks | None = None) -> SmoothedModel:
    """The networks that a recipe names, smoothed; references are relative to ``folder``.

    ``networks`` has those that other models opened, to share them.
    """
    spec = recipe.model
    if spec.neighbours is not None or spec.ascent:
        kind = schemes.InputDependent.name
    elif spec.sigma is not None:
        kind = schemes.Single.name if spec.core is None else schemes.Aces.name
    elif spec.router is None:
        kind = schemes.Cascade.name if spec.core is None else schemes.Backed.name
    else:
        kind = schemes.Dual.name if spec.core is None else schemes.Mixed.name
        kind = kind if spec.sigma_e else schemes.Ace.name
    return _smoothed(kind, spec.model_dump(), networks or Networks(folder), recipe.engine.model_dump())


def build_again(kind: schemes.Scheme[Any], named: Mapping[str, Any], **engine: Any) -> SmoothedModel:
    """The model of a run of some kind, from the references of its networks by role, ``experts`` among them."""
    return _smoothed(kind.name, {**named, **kind.settings, "sigma": kind.sigmas[0]}, Networks(), engine)


def _smoothed(kind: str, given: Mapping[str, Any], networks: Networks, engine: Mapping[str, Any]) -> SmoothedModel:
    """A model of some kind from its settings and the references of its networks."""

    def network(role: str) -> Any:
        if given.get(role) is None:
            raise BadRecipe(f"to draw votes of this run again, name its {role}: --{role}, --recipe or --model")
        return networks(given[role])

    sigmas, told = given["sigmas"], given.get("confidences")
    if kind == schemes.Assigned.name:
        return RouterAlone(network("router"), sigmas, given["sigma_e"], **engine)
    experts = given.get("experts")
    classifier: Any = networks.classifier(None, experts) if experts else network("classifier")
    match kind:
        case schemes.Labels.name:
            return Pool(classifier, sigmas, **engine)
        case schemes.Aces.name:
            selector = None if given.get("selector") is None else network("selector")
            return Aces(classifier, network("core"), given["sigma"], given["thresholds"], selector=selector, **engine)
        case schemes.InputDependent.name:
            chosen = {name: given[name] for name in _OF_EACH_INPUT if given.get(name) is not None}
            if given.get("ascent"):
                return Ascending(classifier, given["sigma"], **chosen, **engine)
            if given.get("neighbours") is None:
                raise BadRecipe(
                    "to draw votes of this run again, say what its sigmas go by: --neighbours, --ascent or --recipe"
                )
            return InputDependent(classifier, given["sigma"], load_data(given["neighbours"]), **chosen, **engine)
        case schemes.Cascade.name:
            return Cascade(classifier, sigmas, confidences=told, **engine)
        case schemes.Backed.name:
            return Backed(classifier, network("core"), sigmas, confidences=told, **engine)
        case schemes.Mixed.name:
            core, sigma_e = network("core"), given["sigma_e"]
            return Mixed(network("router"), classifier, core, sigmas, sigma_e, confidences=told, **engine)
        case schemes.Ace.name:
            core = network("core") if given.get("core") is not None or given.get("cores") else None
            return Ace(network("router"), classifier, sigmas, core=core, confidences=told, **engine)
        case schemes.Dual.name:
            return DualSmoothed(network("router"), classifier, sigmas, given["sigma_e"], confidences=told, **engine)
    return Smoothed(classifier, given["sigma"], **engine)


def build_loss(reference: str | None) -> OwnLoss | None:
    """The loss that a reference names, a function; None for our own."""
    if reference is None:
        return None
    found = find(reference)
    if not inspect.isfunction(found):
        raise BadRecipe(f"{reference} is a {type(found).__name__}, and a loss is a function of logits and targets")
    return OwnLoss(reference, found)


def build_schedule(settings: ScheduleSection, seed: int = 0) -> Schedule:
    """How long and how fast a section says to train."""
    given = settings.model_dump(include=set(ScheduleSection.model_fields))
    return Schedule(**given | {"drop_at": settings.drop_at or ()}, seed=seed)


def build_trainee(settings: ClassifierSection, seed: int) -> Trainee:
    """The classifier that a section trains, behind its denoiser, before it is trained."""
    if settings.start is not None:
        return Networks().going_on(Reference.parse(settings.start).behind(settings.denoiser))
    return Networks().fresh(Reference.parse(settings.network).behind(settings.denoiser), settings.network_args, seed)


def planned_method(settings: MethodSection, levels: Levels) -> Method:
    """The method that a section names, before its teacher is opened; refused if that is missing, or not needed."""
    method = choose(settings.method, levels, settings.epochs, settings.method_args)
    method.check_teacher(settings.teacher is not None)
    return method


def build_method(settings: MethodSection, levels: Levels) -> Method:
    """The method that a section names, with its teacher; its settings are those published for the nearest sigma."""
    method = planned_method(settings, levels)
    if settings.teacher is None:
        return method
    teacher = Networks().teacher(settings.teacher)
    return choose(settings.method, levels, settings.epochs, settings.method_args, teacher)


def build_router_method(name: str, settings: Mapping[str, Any], sigma_e: float, epochs: int) -> Method | None:
    """The method that trains a router; None is the paper's own, consistency with its gates."""
    if name != "consistency":
        return choose(name, OneOf((sigma_e,)), epochs, settings)
    if settings:
        raise BadRecipe(
            "the router's own loss has its settings beside the method, as consistency_weight; leave method_args out"
        )
    return None


def build_objective(settings: RouterSection, sigma_e: float, balanced: bool) -> RouterObjective:
    """The loss of a router: the paper's own, a user's, or that of a method."""
    method = build_router_method(settings.method, settings.method_args, sigma_e, settings.epochs)
    return RouterObjective(
        sigma_e, settings.consistency_weight, settings.entropy_weight, settings.noise_copies, settings.gate,
        balanced, settings.hard, build_loss(settings.loss), method,
    )  # fmt: skip


def load_data(reference: str, *, resize: int | None = None, crop: int | None = None) -> Dataset:
    """A dataset by any name that the command line knows: cifar10:subset, folder:PATH, hub:NAME:SPLIT, net.py:test.

    ``resize`` is the shorter side that images of folders and hubs get, ``crop`` the side of the central square then
    taken. Paths start at the working folder.
    """
    return build_data(DataSection(source=reference, resize=resize, crop=crop))


def build_data(data: DataSection, folder: Path | None = None) -> Dataset:
    """The dataset that is named; an array without a name is called after its reference, less the folder."""
    found = open_dataset(data.source, folder, data.resize, data.crop)
    if found is not None:
        return found
    try:
        return as_dataset(resolve(data.source, folder), Path(data.source).name)
    except BadRecipe as error:
        raise BadRecipe(f"{error}{nearest_dataset(data.source, folder)}") from error
