"""The base networks as commands make them: from settings to a file of weights with its card.

A training that is done already is recognised by the sentence in its card, and not done again.
"""

from collections.abc import Callable, Collection
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from dualrs.data.dataset import Dataset
from dualrs.errors import BadCheckpoint, BadModel, BadSetting
from dualrs.models.architectures import CLASSIFIERS, DENOISERS, build, complete
from dualrs.models.card import Architecture, Card
from dualrs.models.denoise import Denoised, Preconditioned
from dualrs.models.weights import save_weights
from dualrs.training.classifier import classifier_task, measure
from dualrs.training.denoiser import denoiser_task, denoising_error
from dualrs.training.images import TrainingImages
from dualrs.training.log import log_beside
from dualrs.training.loop import Schedule, State, Task, fit
from dualrs.training.noise import Levels
from dualrs.training.processes import Processes, join
from dualrs.training.router import RouterObjective, router_task

_LICENCE = "Apache-2.0"


@dataclass(frozen=True)
class Training:
    """What every training has: images and their noise, a schedule, where it runs, and where the result goes.

    ``test`` is what the result is measured on, ``recipe`` the command, for the card. A training that was stopped goes
    on from ``out`` with the suffix .checkpoint; its log has the suffix .log.csv.
    """

    out: Path
    images: TrainingImages
    test: Dataset
    levels: Levels
    schedule: Schedule
    recipe: str = ""
    device: str | torch.device = "cpu"
    dtype: str | None = None
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
    architecture = _complete(architecture, DENOISERS)
    denoiser = _fresh(architecture, training.schedule.seed)
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


def train_classifier(
    training: Training,
    architecture: Architecture,
    denoiser: nn.Module | None = None,
    *,
    start: nn.Module | None = None,
) -> Card:
    """Train a classifier behind a denoiser or bare, measure it and write it down; return its card.

    It goes on from a copy of ``start``, which ``architecture`` describes, or begins with random weights.
    """
    classes = training.images.classes
    architecture, network = _network(architecture, classes, start, training.schedule.seed)
    device, dtype, test = training.device, training.dtype, training.test
    whole = network if denoiser is None else Denoised(denoiser, network)

    def scores() -> dict[str, float]:
        return {
            f"{test.name} accuracy sigma={s:g}": measure(whole, test, s, device=device, dtype=dtype).accuracy
            for s in training.levels.typical
        }

    return _train(
        training,
        classifier_task(network, training.images, training.levels, denoiser=denoiser, device=device),
        architecture,
        f"Classifier of {architecture.arguments.get('classes', classes)} classes{_behind(denoiser)}",
        scores,
    )


def train_router(
    training: Training,
    architecture: Architecture,
    radii: Tensor,
    objective: RouterObjective,
    denoiser: nn.Module | None = None,
    *,
    start: nn.Module | None = None,
) -> Card:
    """Train a router behind a denoiser or bare, measure how often it finds the best sigma, and write it down.

    It goes on from a copy of ``start``, which ``architecture`` describes, or begins with random weights.
    """
    sigmas = radii.shape[1]
    architecture, network = _network(architecture, sigmas, start, training.schedule.seed)
    device, dtype, test = training.device, training.dtype, training.test
    whole = network if denoiser is None else Denoised(denoiser, network)

    def scores() -> dict[str, float]:
        found = measure(whole, test, objective.sigma_e, device=device, dtype=dtype)
        return {f"{test.name} best sigma found": found.accuracy}

    return _train(
        training,
        router_task(network, training.images, radii, objective, denoiser=denoiser, device=device),
        architecture,
        f"Router over {sigmas} sigmas{_behind(denoiser)}",
        scores,
    )


def _network(
    architecture: Architecture, classes: int, start: nn.Module | None, seed: int
) -> tuple[Architecture, nn.Module]:
    """An architecture with all its arguments, and a network of it; ``start`` may be one that dualrs cannot build."""
    if start is not None and architecture.network not in CLASSIFIERS:
        return architecture, deepcopy(start)
    arguments = {"classes": classes} | architecture.arguments
    architecture = _complete(Architecture(network=architecture.network, arguments=arguments), CLASSIFIERS)
    network = _fresh(architecture, seed)
    if start is not None:
        try:
            network.load_state_dict(start.state_dict())
        except RuntimeError as error:
            reason = " ".join(str(error).split())
            raise BadModel(f"the network to go on from is not a {architecture}: {reason[:300]}") from error
    return architecture, network


def _complete(architecture: Architecture, kinds: Collection[str]) -> Architecture:
    if architecture.network not in kinds:
        raise BadSetting(f"there is no network {architecture.network!r} for this; choose one of {', '.join(kinds)}")
    return complete(architecture)


def _fresh(architecture: Architecture, seed: int) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build(architecture)


def _behind(denoiser: nn.Module | None) -> str:
    return "" if denoiser is None else " behind a denoiser"


def _train(
    training: Training, task: Task, architecture: Architecture, what: str, scores: Callable[[], dict[str, float]]
) -> Card:
    """Fit, measure and write down, unless that was done before. Of several processes the first writes."""
    together = join(training.device)
    identity = task.identity(training.schedule)
    done = _is_done(training, identity)
    if together.main:
        _sweep(training)
    if not done:
        seconds = fit(
            task, training.schedule, training.checkpoint,
            device=training.device, dtype=training.dtype, report=training.report,
        )  # fmt: skip
        if together.main:
            card = Card(
                what=f"{what}; trained at {training.levels}",
                architecture=architecture,
                data=training.images.name,
                recipe=training.recipe or str(asdict(training.schedule)),
                seed=training.schedule.seed,
                cost=f"{seconds / 60:.0f} min on {_where(training, together)}",
                scores={name: round(score, 4) for name, score in scores().items()},
                licence=_LICENCE,
                training=identity,
            )
            training.card.unlink(missing_ok=True)  # it would vouch for weights that were deleted, not for these
            save_weights(task.network, card, training.out)
        together.wait()
    if together.main:  # last, so that whatever is cut off before can be done again
        training.checkpoint.unlink(missing_ok=True)
    return Card.read(training.card)


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
