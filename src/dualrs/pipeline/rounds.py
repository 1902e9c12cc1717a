"""Rounds of training: label, router, assign, fine-tune, label, router ... Sections 5.2 and 5.3 of the paper.

Enters: a recipe and a folder. Leaves: in that folder the product of every step, and a bundle of the last router and
classifier. A step whose product is there and matches is not done again, so that a run that was killed goes on where it
was; a product of other settings is refused.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Protocol

from dualrs.config import ModelSection, Recipe, RoundsRecipe
from dualrs.config.sections import AssignSection, ScheduleSection
from dualrs.data.dataset import Dataset
from dualrs.data.subsets import parse_inputs
from dualrs.errors import BadSetting
from dualrs.jobs import assign_dataset, label_dataset
from dualrs.models.hardware import best_device
from dualrs.models.reference import Reference
from dualrs.pipeline.build import build_data, build_loss, build_method, build_objective, build_schedule
from dualrs.pipeline.bundle import write_bundle
from dualrs.pipeline.check import check_rounds
from dualrs.pipeline.networks import Networks, trained_reference
from dualrs.sampling.collect import Report
from dualrs.smoothed import Pool, RouterAlone, SmoothedModel
from dualrs.training.assignment import read_assignment
from dualrs.training.base import Training, train_classifier, train_router
from dualrs.training.images import TrainingImages
from dualrs.training.lessons import read_lessons
from dualrs.training.loop import State
from dualrs.training.noise import Levels, OneOf
from dualrs.training.processes import alone
from dualrs.training.trainee import Trainee


class Kind(StrEnum):
    """What a step does."""

    LABEL = "label"
    ROUTER = "train router"
    ASSIGN = "assign"
    FINETUNE = "fine-tune"


@dataclass(frozen=True)
class Step:
    """One step, and the name of what it leaves in the folder."""

    kind: Kind
    product: str


class Watch(Protocol):
    """Shows how the steps get on."""

    def collecting(self, step: Step, inputs: int, model: SmoothedModel) -> AbstractContextManager[Report]:
        """While votes of a model are collected; others may count them."""

    def training(self, step: Step) -> AbstractContextManager[Callable[[State], None]]:
        """While a network is trained."""


_STEPS = {
    "router": (Step(Kind.LABEL, "labels.ledger"), Step(Kind.ROUTER, "router.safetensors")),
    "classifier": (Step(Kind.ASSIGN, "assigned.ledger"), Step(Kind.FINETUNE, "classifier.safetensors")),
}


def plan(recipe: RoundsRecipe) -> list[Step]:
    """The steps of a recipe in order; their products are numbered by the round."""
    rounds = enumerate(recipe.rounds, 1)
    return [replace(step, product=f"{n}-{step.product}") for n, trained in rounds for step in _STEPS[trained]]


@dataclass(frozen=True)
class Made:
    """What the rounds have so far: references to the classifier, unless there are experts, and to the router."""

    classifier: str | None
    router: str = ""
    votes: Path = Path()  # the ledger of labels or of assigned sigmas that was made last


class Rounds:
    """The steps of a recipe in a folder, shown as they are done.

    ``device`` takes the place of the recipe's; networks are trained on a GPU if neither says where.
    """

    def __init__(
        self, recipe: RoundsRecipe, folder: Path, watch: Watch, *, command: str = "", device: str | None = None
    ) -> None:
        self.recipe, self.folder, self.watch, self.command = recipe, folder, watch, command
        self.device = device or recipe.engine.device
        self.engine = recipe.engine.model_dump() | {"device": self.device}
        self.data: Dataset = build_data(recipe.data)
        self.test: Dataset = build_data(recipe.test)
        check_rounds(recipe, self.data, self.test)

    def run(self) -> Path:
        """Do what is not done yet; return the folder of the bundle."""
        if not alone():
            raise BadSetting(
                "rounds run in one process; train the step by itself (`accelerate launch -m dualrs train ...`, to the "
                "file that the rounds would make), and they go on from there"
            )
        self._fresh_router()  # what it needs is there, and not missed after the labels
        self.folder.mkdir(parents=True, exist_ok=True)
        made = Made(self.recipe.start.classifier)
        do = {
            Kind.LABEL: self._label,
            Kind.ROUTER: self._train_router,
            Kind.ASSIGN: self._assign,
            Kind.FINETUNE: self._fine_tune,
        }
        for step in plan(self.recipe):
            made = do[step.kind](step, made)
        return self._bundle(made)

    def _label(self, step: Step, made: Made) -> Made:
        settings, start = self.recipe.label, self.recipe.start
        classifier = Networks().classifier(made.classifier, start.experts)
        model = Pool(classifier, start.sigmas, **self.engine)
        reuse = None if settings.reuse is None or made.router else Path(settings.reuse)  # later networks are new
        return replace(made, votes=self._collect(step, settings, model, partial(label_dataset, reuse=reuse)))

    def _train_router(self, step: Step, made: Made) -> Made:
        settings, sigma_e = self.recipe.router, self.recipe.start.sigma_e
        lessons = read_lessons(made.votes, self.data, self._places(self.recipe.label.inputs))
        balanced = not lessons.experts if settings.balanced is None else settings.balanced
        objective = build_objective(settings, sigma_e, balanced)
        reference, trainee = self._fresh_router()
        with self._training(step, settings, lessons.images, lessons.held_out, OneOf((sigma_e,))) as training:
            card = train_router(training, trainee, lessons.radii, lessons.sigmas, objective)
        trained = trained_reference(card.architecture, training.out).behind(reference.front)
        return replace(made, router=str(trained))

    def _fresh_router(self) -> tuple[Reference, Trainee]:
        settings = self.recipe.router
        reference = Reference.parse(settings.network).behind(settings.denoiser)
        return reference, Networks().fresh(reference, settings.network_args, self.recipe.seed)

    def _assign(self, step: Step, made: Made) -> Made:
        settings, start = self.recipe.assign, self.recipe.start
        model = RouterAlone(Networks()(made.router), start.sigmas, start.sigma_e, **self.engine)
        return replace(made, votes=self._collect(step, settings, model, assign_dataset))

    def _fine_tune(self, step: Step, made: Made) -> Made:
        assert made.classifier is not None, "experts are not fine-tuned; checked by the recipe"
        reference = Reference.parse(made.classifier)
        trainee = Networks().going_on(reference)
        taught = read_assignment(
            made.votes, self.data, self._places(self.recipe.assign.inputs), classes=trainee.classes
        )
        with self._training(step, self.recipe.finetune, taught.images, self.test, taught.levels) as training:
            method = build_method(self.recipe.finetune, taught.levels)
            card = train_classifier(training, trainee, build_loss(self.recipe.finetune.loss), method)
        trained = trained_reference(card.architecture, training.out).behind(reference.front)
        return replace(made, classifier=str(trained))

    def _bundle(self, made: Made) -> Path:
        recipe, folder = self.recipe, self.folder / "bundle"
        trained = {"router": made.router, "classifier": made.classifier}
        model = ModelSection(**recipe.start.model_dump() | trained)
        write_bundle(
            folder,
            Recipe(title=recipe.title, model=model, data=recipe.test, certify=recipe.certify, engine=recipe.engine),
        )
        return folder

    def _places(self, inputs: str) -> Sequence[int]:
        return parse_inputs(inputs, len(self.data.ids))

    def _collect(self, step: Step, settings: AssignSection, model: SmoothedModel, job: Callable[..., object]) -> Path:
        """The ledger, once it has all votes."""
        ledger, indices = self.folder / step.product, self._places(settings.inputs)
        with self.watch.collecting(step, len(indices), model) as report:
            job(
                model, self.data, ledger, n=settings.n, alpha=settings.alpha, seed=self.recipe.seed, indices=indices,
                command=self.command, report=report,
            )  # fmt: skip
        return ledger

    @contextmanager
    def _training(
        self, step: Step, settings: ScheduleSection, images: TrainingImages, test: Dataset, levels: Levels
    ) -> Iterator[Training]:
        """A training that is shown as long as it is in use."""
        with self.watch.training(step) as report:
            yield Training(
                out=self.folder / step.product,
                images=images,
                test=test,
                levels=levels,
                schedule=build_schedule(settings, self.recipe.seed),
                recipe=f"{self.command} # {step.product}",
                device=self.device or best_device(),
                compile=self.recipe.engine.compile,
                report=report,
            )
