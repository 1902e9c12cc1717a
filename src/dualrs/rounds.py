"""Rounds of training: label, router, assign, fine-tune, label, router ... Sections 5.2 and 5.3 of the paper.

Enters: a recipe and a folder. Leaves: in that folder the product of every step, and a bundle of the last router and
classifier. A step whose product is there and matches is not done again, so that a run that was killed goes on where it
was; a product of other settings is refused.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from torch import nn

from dualrs.build import Networks, build_data, fresh_network, front_of, known_network, trained_reference
from dualrs.bundle import write_bundle
from dualrs.collect import Report
from dualrs.config import ModelSection, Recipe, RoundsRecipe
from dualrs.config.sections import ScheduleSection
from dualrs.data.dataset import Dataset
from dualrs.data.subsets import parse_inputs
from dualrs.errors import BadSetting
from dualrs.jobs import assign_dataset, label_dataset
from dualrs.smoothed import Pool, RouterAlone, SmoothedModel
from dualrs.training.assignment import read_assignment
from dualrs.training.base import Training, train_classifier, train_router
from dualrs.training.lessons import read_lessons
from dualrs.training.loop import Schedule, State
from dualrs.training.noise import OneOf
from dualrs.training.processes import alone
from dualrs.training.router import RouterObjective


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

    def collecting(self, step: Step, inputs: int) -> AbstractContextManager[Report]:
        """While votes are collected."""

    def training(self, step: Step) -> AbstractContextManager[Callable[[State], None]]:
        """While a network is trained."""


Spread = Callable[[SmoothedModel], AbstractContextManager[object]]


def plan(recipe: RoundsRecipe) -> list[Step]:
    """The steps of a recipe in order; their products are numbered by the round."""
    steps = []
    for number, trained in enumerate(recipe.rounds, 1):
        if trained == "router":
            steps += [Step(Kind.LABEL, f"{number}-labels.ledger"), Step(Kind.ROUTER, f"{number}-router.safetensors")]
        else:
            steps += [
                Step(Kind.ASSIGN, f"{number}-assigned.ledger"),
                Step(Kind.FINETUNE, f"{number}-classifier.safetensors"),
            ]
    return steps


@dataclass(frozen=True)
class Made:
    """What the rounds have so far: references to the classifier or experts, and to the router once there is one."""

    classifier: str | None
    experts: dict[float, str] | None
    router: str = ""
    votes: Path = Path()  # the ledger of labels or of assigned sigmas that was made last


class Rounds:
    """The steps of a recipe in a folder; while ``spread`` is open for a model, others may count its votes."""

    def __init__(
        self, recipe: RoundsRecipe, folder: Path, watch: Watch, *, command: str = "", spread: Spread = nullcontext
    ) -> None:
        self.recipe, self.folder, self.watch, self.command, self.spread = recipe, folder, watch, command, spread
        self.data: Dataset = build_data(recipe.data)
        self.test: Dataset = build_data(recipe.test)

    def run(self) -> Path:
        """Do what is not done yet; return the folder of the bundle."""
        if not alone():
            raise BadSetting(
                "rounds run in one process; train the step by itself (`accelerate launch -m dualrs train ...`, to the "
                "file that the rounds would make), and they go on from there"
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        start = self.recipe.start
        made = Made(start.classifier, start.experts)
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
        settings, engine = self.recipe.label, self.recipe.engine.model_dump()
        model = Pool(Networks().classifier(made.classifier, made.experts), self.recipe.start.sigmas, **engine)
        ledger = self.folder / step.product
        reuse = None if settings.reuse is None or made.router else Path(settings.reuse)  # later networks are new
        indices = self._places(settings.inputs)
        with self.watch.collecting(step, len(indices)) as report, self.spread(model):
            label_dataset(
                model, self.data, ledger, n=settings.n, alpha=settings.alpha, seed=self.recipe.seed, indices=indices,
                reuse=reuse, command=self.command, report=report,
            )  # fmt: skip
        return replace(made, votes=ledger)

    def _train_router(self, step: Step, made: Made) -> Made:
        settings, start = self.recipe.router, self.recipe.start
        lessons = read_lessons(made.votes, self.data, self._places(self.recipe.label.inputs))
        objective = RouterObjective(
            sigma_e=start.sigma_e,
            consistency_weight=settings.consistency_weight,
            entropy_weight=settings.entropy_weight,
            noise_copies=settings.noise_copies,
            gate=settings.gate,
            balanced=not lessons.experts if settings.balanced is None else settings.balanced,
            hard=settings.hard,
        )
        architecture, network = fresh_network(settings.network, settings.shape, self.recipe.seed)
        with self.watch.training(step) as report:
            training = Training(
                out=self.folder / step.product,
                images=lessons.images,
                test=lessons.held_out,
                levels=OneOf((start.sigma_e,)),
                schedule=self._schedule(settings),
                recipe=f"{self.command} # {step.product}",
                device=self._device,
                report=report,
            )
            denoiser = None if settings.behind is None else Networks()(settings.behind)
            card = train_router(training, architecture, lessons.radii, objective, denoiser, start=network)
        trained = trained_reference(card.architecture, training.out)
        return replace(made, router=trained if settings.behind is None else f"{settings.behind} | {trained}")

    def _assign(self, step: Step, made: Made) -> Made:
        settings, start = self.recipe.assign, self.recipe.start
        model = RouterAlone(Networks()(made.router), start.sigmas, start.sigma_e, **self.recipe.engine.model_dump())
        ledger = self.folder / step.product
        indices = self._places(settings.inputs)
        with self.watch.collecting(step, len(indices)) as report, self.spread(model):
            assign_dataset(
                model, self.data, ledger, n=settings.n, alpha=settings.alpha, seed=self.recipe.seed, indices=indices,
                command=self.command, report=report,
            )  # fmt: skip
        return replace(made, votes=ledger)

    def _fine_tune(self, step: Step, made: Made) -> Made:
        assert made.classifier is not None, "experts are not fine-tuned; checked by the recipe"
        front, reference = front_of(made.classifier)
        network = Networks()
        architecture, start = known_network(reference), network(reference)
        assignment = read_assignment(made.votes, self.data, self._places(self.recipe.assign.inputs))
        with self.watch.training(step) as report:
            training = Training(
                out=self.folder / step.product,
                images=assignment.images,
                test=self.test,
                levels=assignment.levels,
                schedule=self._schedule(self.recipe.finetune),
                recipe=f"{self.command} # {step.product}",
                device=self._device,
                report=report,
            )
            denoiser: nn.Module | None = None if front is None else network(front)
            train_classifier(training, architecture, denoiser, start=start)
        trained = trained_reference(architecture, training.out)
        return replace(made, classifier=trained if front is None else f"{front} | {trained}")

    def _bundle(self, made: Made) -> Path:
        recipe, folder = self.recipe, self.folder / "bundle"
        model = ModelSection(
            router=made.router,
            classifier=made.classifier,
            experts=made.experts,
            sigmas=recipe.start.sigmas,
            sigma_e=recipe.start.sigma_e,
        )
        settings = Recipe(
            title=recipe.title, model=model, data=recipe.test, certify=recipe.certify, engine=recipe.engine
        )  # fmt: skip
        write_bundle(folder, settings)
        return folder

    def _places(self, inputs: str) -> Sequence[int]:
        return parse_inputs(inputs, len(self.data.ids))

    def _schedule(self, settings: ScheduleSection) -> Schedule:
        return Schedule(
            settings.epochs,
            settings.batch_size,
            settings.rate,
            settings.weight_decay,
            self.recipe.seed,
            settings.halve_every,
        )

    @property
    def _device(self) -> str:
        return self.recipe.engine.device or "cpu"
