"""What a recipe will cost: noisy images through the networks, and the time, measured here or at a given rate.

Enters: a recipe. Leaves: a line for each of its steps. A rate is measured by doing the step itself on a few batches.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch

from dualrs.config import ClassifierRecipe, DataSection, Recipe, RoundsRecipe
from dualrs.config.sections import MethodSection, ScheduleSection
from dualrs.data.dataset import Dataset
from dualrs.data.subsets import parse_inputs
from dualrs.errors import BadCheckpoint, BadRecipe, BadSetting, DualrsError, MissingExtra, Unreachable, first_line
from dualrs.models.hardware import open_device
from dualrs.models.reference import Reference
from dualrs.pipeline.build import (
    build_data,
    build_loss,
    build_method,
    build_model,
    build_objective,
    build_schedule,
    build_trainee,
    planned_method,
)
from dualrs.pipeline.check import check_certify, check_data, check_rounds
from dualrs.pipeline.networks import Networks
from dualrs.pipeline.rounds import Kind, Step, plan
from dualrs.sampling.collect import Input, Progress, collect
from dualrs.sampling.noise import NoiseSource
from dualrs.smoothed import Pool, RouterAlone, SmoothedModel
from dualrs.training.classifier import classifier_task
from dualrs.training.front import Front
from dualrs.training.images import TrainingImages
from dualrs.training.loop import State, Task, fit
from dualrs.training.methods import Method
from dualrs.training.noise import Levels, OneOf, parse_levels
from dualrs.training.router import router_task
from dualrs.training.schedule import Schedule
from dualrs.training.trainee import Trainee
from dualrs.votes import Part, Purpose, SamplingPlan, Stream, Tally, Wanted

_BATCHES = 4  # that a rate is measured on
ADAPTIVE = 0.2  # of the votes of n = 10,000: what adaptive runs took on two sets of images (docs/performance.md)


@dataclass(frozen=True)
class Cost:
    """What a step takes: inputs, noisy images for each, and how many a second pass here; None if that is not known."""

    product: str
    inputs: int | None
    images_per_input: int
    rate: float | None
    unknown: str = ""  # why
    instead: bool = False  # of the step before, and not beside it

    @property
    def images(self) -> int | None:
        """Noisy images in all."""
        return None if self.inputs is None else self.inputs * self.images_per_input

    @property
    def seconds(self) -> float | None:
        """How long the step takes here."""
        return None if self.images is None or self.rate is None else self.images / self.rate


class Elsewhere(NamedTuple):
    """Another machine: noisy images a second that pass there, and how many the data have where they are not here."""

    rate: float
    images: int | None = None
    test_images: int | None = None


def estimate(recipe: Recipe | RoundsRecipe | ClassifierRecipe, elsewhere: Elsewhere | None = None) -> Iterator[Cost]:
    """The cost of each step of a recipe, as they are measured; of another machine nothing is, and it certifies too."""
    if elsewhere is not None:
        return _planned(recipe, elsewhere)
    match recipe:
        case Recipe():
            return _of_certify(recipe)
        case RoundsRecipe():
            return _of_rounds(recipe)
    return _of_classifier(recipe)


def _planned(recipe: Recipe | RoundsRecipe | ClassifierRecipe, elsewhere: Elsewhere) -> Iterator[Cost]:
    """The cost of each step at one rate for all of them, and of certificates with a fixed n and adaptive."""
    if elsewhere.rate <= 0:
        raise BadSetting(f"the rate must be positive, in noisy images a second; got {elsewhere.rate:g}")

    def at_rate(product: str, data: Dataset | str | int, inputs: str, each: int) -> Cost:
        if isinstance(data, str):
            return Cost(product, None, each, elsewhere.rate, data)
        count = data if isinstance(data, int) else len(data.ids)
        return Cost(product, len(parse_inputs(inputs, count)), each, elsewhere.rate)

    data = elsewhere.images or _opened(recipe.data)
    if isinstance(recipe, ClassifierRecipe):
        copies = planned_method(recipe.classifier, parse_levels(recipe.classifier.sigma, 0)).copies
        yield at_rate("weights", data, "::", recipe.classifier.epochs * copies)
        return
    each = _votes_of_certificate(recipe)
    if isinstance(recipe, RoundsRecipe):
        for step, inputs, images in _steps_of(recipe):
            yield at_rate(step.product, data, inputs, images)
        data = elsewhere.test_images or _opened(recipe.test)
    if recipe.certify.budget == "fixed":
        yield at_rate("certificates, fixed n", data, "::", each)
    adaptive = at_rate("certificates, adaptive", data, "::", round(ADAPTIVE * each))
    yield replace(adaptive, instead=recipe.certify.budget == "fixed")


def _votes_of_certificate(recipe: Recipe | RoundsRecipe) -> int:
    """Votes of an input with a fixed n: two stages, unless there is one network."""
    model = recipe.model if isinstance(recipe, Recipe) else None
    stages = 1 if model is not None and model.router is None and model.core is None else 2
    return stages * (recipe.certify.n0 + recipe.certify.n)


def _of_certify(recipe: Recipe) -> Iterator[Cost]:
    each = _votes_of_certificate(recipe)

    def measure(data: Dataset) -> float:
        model = build_model(recipe)
        check_certify(recipe.certify, model.kind)
        check_data(model, data)
        return _votes(model, data)

    yield _cost("certificates", _opened(recipe.data), "::", each, measure, recipe.engine.device)


def _of_classifier(recipe: ClassifierRecipe) -> Iterator[Cost]:
    settings, data = recipe.classifier, _opened(recipe.data)
    levels = parse_levels(settings.sigma, 0 if isinstance(data, str) else len(data.ids))
    method = planned_method(settings, levels)

    def measure(data: Dataset) -> float:
        method = build_method(settings, levels)
        trainee = build_trainee(settings, recipe.seed)
        images = _few_images(data, settings)
        return _training(trainee, images, levels, settings, method, settings.device or "cpu", recipe.seed)

    yield _cost("weights", data, "::", settings.epochs * method.copies, measure, settings.device)


def _copies(recipe: RoundsRecipe) -> int:
    """Noisy copies of each image in a step of the router's training."""
    method = build_objective(recipe.router, recipe.start.sigma_e, balanced=True).method
    return recipe.router.noise_copies if method is None else method.copies


def _steps_of(recipe: RoundsRecipe) -> Iterator[tuple[Step, str, int]]:
    """The steps of rounds, the inputs that each takes, and noisy images for each of these."""
    method = planned_method(recipe.finetune, OneOf(recipe.start.sigmas))
    settings = {
        Kind.LABEL: (recipe.label.inputs, recipe.label.n * len(recipe.start.sigmas)),
        Kind.ROUTER: (recipe.label.inputs, recipe.router.epochs * _copies(recipe)),
        Kind.ASSIGN: (recipe.assign.inputs, recipe.assign.n),
        Kind.FINETUNE: (recipe.assign.inputs, recipe.finetune.epochs * method.copies),
    }
    for step in plan(recipe):
        yield (step, *settings[step.kind])


def _of_rounds(recipe: RoundsRecipe) -> Iterator[Cost]:
    data, test = _opened(recipe.data), _opened(recipe.test)
    if not isinstance(data, str) and not isinstance(test, str):
        check_rounds(recipe, data, test)
    measured: dict[Kind, float] = {}
    for step, inputs, each in _steps_of(recipe):

        def measure(data: Dataset, kind: Kind = step.kind) -> float:
            if kind not in measured:
                measured[kind] = _rate(recipe, kind, data, test)
            return measured[kind]

        yield _cost(step.product, data, inputs, each, measure, recipe.engine.device)


def _opened(section: DataSection) -> Dataset | str:
    """The data, or a sentence on why they are not at hand."""
    try:
        return build_data(section)
    except DualrsError as error:
        return first_line(error)


def _cost(
    product: str,
    data: Dataset | str,
    inputs: str,
    each: int,
    measure: Callable[[Dataset], float],
    device: str | None,
) -> Cost:
    """A step whose data, networks or device are not at hand is part of the plan all the same; faults are refused."""
    if isinstance(data, str):
        return Cost(product, None, each, None, data)
    count = len(parse_inputs(inputs, len(data.ids)))
    try:
        open_device(device or "cpu")
    except BadSetting as error:
        return Cost(product, count, each, None, first_line(error))
    try:
        return Cost(product, count, each, measure(data))
    except (BadCheckpoint, BadRecipe, MissingExtra, Unreachable) as error:
        return Cost(product, count, each, None, first_line(error))


def _rate(recipe: RoundsRecipe, kind: Kind, data: Dataset, test: Dataset | str) -> float:
    """Noisy images a second in a step of this kind."""
    start, engine, network = recipe.start, recipe.engine, Networks()
    device = engine.device or "cpu"
    if kind is Kind.LABEL:
        classifier = network.classifier(start.classifier, start.experts)
        pool = Pool(classifier, start.sigmas, **engine.model_dump())
        check_data(pool, data, *([] if isinstance(test, str) else [test]))
        return _votes(pool, data)
    if kind is Kind.FINETUNE:
        trainee = network.going_on(Reference.parse(str(start.classifier)))
        images, levels = _few_images(data, recipe.finetune), OneOf(start.sigmas)
        method = build_method(recipe.finetune, levels)
        return _training(trainee, images, levels, recipe.finetune, method, device, recipe.seed)
    settings = recipe.router
    reference = Reference.parse(settings.network).behind(settings.denoiser)
    trainee = network.fresh(reference, settings.network_args, recipe.seed)
    _, begun = trainee.begin(len(start.sigmas), recipe.seed)
    if kind is Kind.ASSIGN:
        return _votes(RouterAlone(trainee.whole(begun), start.sigmas, start.sigma_e, **engine.model_dump()), data)
    objective = build_objective(settings, start.sigma_e, balanced=True)
    images = _few_images(data, settings)
    radii = torch.rand(len(images), len(start.sigmas))
    task = router_task(begun, Front(trainee.denoiser, device), images, radii, objective)
    copies = 1 if objective.method is None else objective.method.copies
    return _copies(recipe) * _steps(task, build_schedule(settings).of_copies(copies), device)


def _training(
    trainee: Trainee,
    images: TrainingImages,
    levels: Levels,
    settings: MethodSection,
    method: Method,
    device: str,
    seed: int,
) -> float:
    """Noisy images a second in the training of a classifier."""
    _, begun = trainee.begin(images.classes, seed)
    front = Front(trainee.denoiser, device)
    task = classifier_task(begun, front, images, levels, build_loss(settings.loss), method)
    rate = method.copies * _steps(task, build_schedule(settings).of_copies(method.copies), device)
    return rate / method.stretch(settings.epochs)


def _votes(model: SmoothedModel, data: Dataset) -> float:
    """Votes a second, all streams of the model alike."""
    first = data.image(0)
    model.engine.prepare(first)
    votes = 0
    plan = SamplingPlan(0, _BATCHES * model.engine.batch_size)

    def every_stream(tally: Tally) -> Wanted:
        yield {Stream(stage, Part.ESTIMATION, sigma): plan.n for stage, sigma in model.models}

    def report(progress: Progress) -> None:
        nonlocal votes
        votes = progress.votes

    began = time.perf_counter()
    collect(
        model.engine, [Input("one", first)], every_stream, plan, NoiseSource(Purpose.TRIAL, 0),
        finish=lambda input_id, tally, seconds: None, report=report,
    )  # fmt: skip
    return votes / (time.perf_counter() - began)


def _few_images(data: Dataset, settings: ScheduleSection) -> TrainingImages:
    return TrainingImages(data, range(min(_BATCHES * settings.batch_size, len(data.ids))))


def _steps(task: Task, schedule: Schedule, device: str) -> float:
    """Images a second in training, without their noisy copies; votes between epochs and the first step aside."""
    states: list[State] = []
    with tempfile.TemporaryDirectory() as folder:
        schedule = replace(schedule, epochs=1)
        fit(task, schedule, Path(folder) / "few.checkpoint", device=device, report=states.append)
    steps = [state for state in states if not state.doing]
    if len(steps) == 1:
        return steps[0].images_per_second
    return (steps[-1].step - steps[0].step) * schedule.batch_size / (steps[-1].seconds - steps[0].seconds)
