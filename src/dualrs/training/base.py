"""The base networks as commands make them: from settings to a file of weights with its card.

A training that is done already is recognised by the sentence in its card, and not done again.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dualrs.data.classes import demand_fit, numbered_as
from dualrs.data.dataset import Dataset
from dualrs.errors import BadCheckpoint, BadSetting, first_line
from dualrs.models.architectures import DENOISERS
from dualrs.models.card import Architecture, Card
from dualrs.models.compiled import compile_parts, is_compilers
from dualrs.models.denoise import Preconditioned
from dualrs.models.weights import save_weights
from dualrs.training.classifier import PLAIN, Measured, classifier_task, measure
from dualrs.training.denoiser import denoiser_task, denoising_error
from dualrs.training.front import Front
from dualrs.training.images import TrainingImages
from dualrs.training.log import log_beside
from dualrs.training.loop import State, Task, fit
from dualrs.training.methods import Method
from dualrs.training.noise import Levels
from dualrs.training.own_loss import OwnLoss
from dualrs.training.processes import Processes, join
from dualrs.training.router import RouterObjective, router_task
from dualrs.training.schedule import Schedule
from dualrs.training.trainee import Trainee, fresh

_LICENCE = "not stated"  # whose network it is decides


@dataclass(frozen=True)
class Training:
    """What every training has: images and their noise, a schedule, where it runs, and where the result goes.

    ``test`` is what the result is measured on, ``recipe`` the command, for the card. With ``compile`` torch compiles
    the networks first. A training that was stopped goes on from ``out`` with the suffix .checkpoint; its log has the
    suffix .log.csv.
    """

    out: Path
    images: TrainingImages
    test: Dataset
    levels: Levels
    schedule: Schedule
    recipe: str = ""
    device: str | torch.device = "cpu"
    dtype: str | None = None
    compile: bool = False
    report: Callable[[State], None] = lambda state: None

    @property
    def card(self) -> Path:
        """Where the card goes."""
        return self.out.with_suffix(".json")

    @property
    def checkpoint(self) -> Path:
        """Where an unfinished training is kept."""
        return self.out.with_suffix(".checkpoint")


def train_denoiser(training: Training, architecture: Architecture) -> Card:
    """Train a denoiser, measure it and write it down; return its card."""
    architecture, denoiser = fresh(architecture, DENOISERS, training.schedule.seed)
    assert isinstance(denoiser, Preconditioned)
    test = training.test

    def scores() -> dict[str, float]:
        denoiser.cpu()
        return {f"{test.name} rmse sigma={s:g}": denoising_error(denoiser, test, s) for s in training.levels.typical}

    return _train(
        training,
        denoiser_task(denoiser, training.images, training.levels, device=training.device),
        architecture,
        "Denoiser: noisy images and their sigma in, clean estimate out",
        scores,
    )


def train_classifier(training: Training, trainee: Trainee, own: OwnLoss | None = None, method: Method = PLAIN) -> Card:
    """Train a classifier behind a denoiser or bare, by some method, measure it and write it down; return its card.

    ``own`` is a loss in place of cross-entropy. The batch size counts noisy images.
    """
    classes, names = training.images.classes, training.images.class_names
    architecture, network = trainee.begin(classes, training.schedule.seed)
    training = replace(training, test=numbered_as(training.test, names))
    if names:
        demand_fit(training.test, classes)  # now, and not when the training is over

    def scores() -> dict[str, float]:
        return {
            f"{training.test.name} accuracy sigma={s:g}": _measured(training, trainee.whole(network), s).accuracy
            for s in training.levels.typical
        }

    front = Front(trainee.denoiser, training.device, compile=training.compile)
    return _train(
        replace(training, schedule=training.schedule.of_copies(method.copies)),
        classifier_task(network, front, training.images, training.levels, own, method),
        architecture,
        f"Classifier of {architecture.arguments.get('classes', classes)} classes{trainee.place}",
        scores,
        classes=names,
    )


def train_router(
    training: Training, trainee: Trainee, radii: Tensor, sigmas: tuple[float, ...], objective: RouterObjective
) -> Card:
    """Train a router behind a denoiser or bare, measure how often it finds the best sigma, and write it down.

    ``radii`` have a column for each of ``sigmas``. The batch size counts images, or with a method noisy images.
    """
    method = objective.method
    architecture, network = trainee.begin(len(sigmas), training.schedule.seed)

    def scores() -> dict[str, float]:
        found = _measured(training, trainee.whole(network), objective.sigma_e)
        named = {f"names sigma {sigma:g}": share for sigma, share in zip(sigmas, found.answers, strict=True)}
        return {f"{training.test.name} best sigma found": found.accuracy} | named

    return _train(
        training if method is None else replace(training, schedule=training.schedule.of_copies(method.copies)),
        router_task(
            network,
            Front(trainee.denoiser, training.device, compile=training.compile),
            training.images,
            radii,
            objective,
        ),
        architecture,
        f"Router over sigmas {', '.join(f'{sigma:g}' for sigma in sigmas)}{trainee.place}",
        scores,
        sigmas=sigmas,
        sigma_e=objective.sigma_e,
    )


def _measured(training: Training, model: nn.Module, sigma: float) -> Measured:
    return measure(model, training.test, sigma, device=training.device, dtype=training.dtype)


def _train(
    training: Training,
    task: Task,
    architecture: Architecture,
    what: str,
    scores: Callable[[], dict[str, float]],
    **more: Any,
) -> Card:
    """Fit, measure and write down, ``more`` too, unless that was done before. Of several processes the first writes."""
    together = join(training.device)
    identity = task.identity(training.schedule)
    done = _is_done(training, identity)
    if together.main:
        _sweep(training)
    if not done:
        with _compiled(task.network, training.compile):
            seconds = fit(
                task, training.schedule, training.checkpoint,
                device=training.device, dtype=training.dtype, report=training.report,
            )  # fmt: skip
        if together.main:
            card = Card(
                what=f"{what}; trained at {training.levels}",
                architecture=architecture,
                data=training.images.name,
                recipe=training.recipe or str(training.schedule.settings),
                seed=training.schedule.seed,
                cost=f"{seconds / 60:.0f} min on {_where(training, together)}",
                scores={name: round(score, 4) for name, score in scores().items()},
                licence=_LICENCE,
                training=identity,
                **more,
            )
            training.card.unlink(missing_ok=True)  # it would vouch for weights that were deleted, not for these
            save_weights(task.network, card, training.out)
        together.wait()
    if together.main:  # last, so that whatever is cut off before can be done again
        training.checkpoint.unlink(missing_ok=True)
    return Card.read(training.card)


@contextmanager
def _compiled(network: nn.Module, wanted: bool) -> Iterator[None]:
    """Have torch compile the network in place; if it cannot, say so instead of training at another speed."""
    if not wanted:
        yield
        return
    compile_parts(network)
    try:
        with warnings.catch_warnings():
            # torch's compiler looks for gradients of the images that a method attacks, and complains to itself
            warnings.filterwarnings("ignore", "The .grad attribute of a Tensor that is not a leaf", UserWarning)
            yield
    except Exception as error:
        if not is_compilers(error):
            raise
        raise BadSetting(
            f"torch cannot compile this network here ({first_line(error)}); train it without compiling, which ends "
            "with the same weights up to rounding"
        ) from error


def _is_done(training: Training, identity: str) -> bool:
    """Whether weights and card of this training are there; those of another are refused."""
    if training.card.exists():
        found = Card.read(training.card).training
        if found == identity:
            return training.out.exists()
    elif training.out.exists() and not training.checkpoint.exists():
        found = ""
    else:
        return False  # with weights and a checkpoint, it was cut off before the card was written
    raise BadCheckpoint(
        f"{training.out} belongs to another training; give another name, or delete it and its card.\n"
        f"  there: {found or 'not recorded'}\n  here:  {identity}"
    )


def _sweep(training: Training) -> None:
    """Delete what a process that was killed in the middle of a write left beside the files of this training."""
    for path in (training.out, training.card, training.checkpoint, log_beside(training.checkpoint)):
        for left in path.parent.glob(f".{path.name}.[0-9]*"):
            left.unlink(missing_ok=True)


def _where(training: Training, together: Processes) -> str:
    threads = torch.get_num_threads()
    where = f"{threads} CPU thread{'s' * (threads > 1)}" if str(training.device) == "cpu" else str(training.device)
    return where if together.count == 1 else f"{together.count} x {where}"
