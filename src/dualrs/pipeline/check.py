"""Every check that the steps of a recipe make of their settings, made before the first of them.

Enters: a recipe, the model that votes first, its data. Leaves: nothing; what a later step would refuse is refused.
"""

from typing import Any

from dualrs.config import RoundsRecipe
from dualrs.config.sections import CertifySection
from dualrs.data.classes import demand_fit
from dualrs.data.dataset import Dataset
from dualrs.data.subsets import parse_inputs
from dualrs.errors import BadData
from dualrs.jobs.opening import numbered_for
from dualrs.jobs.teach import check_labels
from dualrs.models.hardware import check_dtype
from dualrs.pipeline.build import build_loss, build_objective, build_schedule, planned_method
from dualrs.schemes import Dual, Scheme
from dualrs.smoothed import SmoothedModel
from dualrs.smoothed.model import sampling_plan, target_of
from dualrs.training.noise import OneOf


def check_rounds(recipe: RoundsRecipe, data: Dataset, test: Dataset) -> None:
    """Refuse settings of any step of rounds, networks aside."""
    start, router, finetune = recipe.start, recipe.router, recipe.finetune
    check_labels(recipe.label.n, recipe.label.alpha)
    check_dtype(recipe.engine.dtype)
    build_loss(finetune.loss)
    other = build_objective(router, start.sigma_e, balanced=True).method
    method = planned_method(finetune, OneOf(start.sigmas))
    for section, inputs, trained, copies in (
        (router, recipe.label.inputs, "router", 1 if other is None else other.copies),
        (finetune, recipe.assign.inputs, "classifier", method.copies),
    ):
        count = len(parse_inputs(inputs, len(data.ids)))
        if trained in recipe.rounds:
            build_schedule(section).of_copies(copies).steps_per_epoch(count)
    check_certify(recipe.certify, Dual(start.sigmas, sigma_e=start.sigma_e))
    ours, theirs = data.image(0).shape, test.image(0).shape
    if ours != theirs:
        raise BadData(f"images of {data.name} have shape {ours}, those of {test.name} {theirs}; give both one size")


def check_certify(settings: CertifySection, kind: Scheme[Any]) -> None:
    """Refuse a rule that does not fit the kind of run, and votes that could not certify anything under it."""
    wanted = target_of(settings.radii, settings.tolerance)
    plan, target = sampling_plan(settings.n0, settings.n, settings.budget, wanted)
    rule = kind.own_rule(settings.rule)
    rule.check(plan, settings.alpha)
    kind.policy(plan, rule, settings.alpha, target=target)


def check_data(model: SmoothedModel, *datasets: Dataset) -> None:
    """Refuse data whose classes do not fit the networks, and networks that fail on the images."""
    model.engine.prepare(datasets[0].image(0))
    for dataset in datasets:
        if model.scheme.classes:
            demand_fit(numbered_for(model, dataset), model.scheme.classes)
