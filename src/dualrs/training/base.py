"""The base networks as commands make them: from settings to a file of weights with its card."""

from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from dualrs.data.dataset import Dataset
from dualrs.errors import BadSetting
from dualrs.models.architectures import CLASSIFIERS, DENOISERS, build, complete
from dualrs.models.card import Architecture, Card
from dualrs.models.denoise import Denoised, Preconditioned
from dualrs.models.weights import save_weights
from dualrs.training.classifier import fit_classifier, measure
from dualrs.training.denoiser import denoising_error, fit_denoiser
from dualrs.training.images import TrainingImages
from dualrs.training.loop import Schedule, State
from dualrs.training.noise import Levels, OneOf
from dualrs.training.router import RouterObjective, fit_router

_LICENCE = "Apache-2.0"


@dataclass(frozen=True)
class Training:
    """What every training has: images and their noise, a schedule, where it runs, and where the result goes.

    ``test`` is what the result is measured on, ``recipe`` the command, for the card. A training that was stopped goes
    on from ``out`` with the suffix .checkpoint.
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
    def checkpoint(self) -> Path:
        """Where an unfinished training is kept."""
        return self.out.with_suffix(".checkpoint")

    @property
    def sigmas(self) -> tuple[float, ...]:
        """Where to measure: at the sigmas of the training if they are few."""
        return self.levels.sigmas if isinstance(self.levels, OneOf) else (0.1, 0.25, 0.5, 1.0)


def train_denoiser(training: Training, architecture: Architecture) -> Card:
    """Train a denoiser, measure it and write it down; return its card."""
    architecture = _complete(architecture, DENOISERS)
    denoiser = _fresh(architecture, training.schedule.seed)
    assert isinstance(denoiser, Preconditioned)
    seconds = fit_denoiser(
        denoiser, training.images, training.levels, training.schedule, training.checkpoint,
        device=training.device, dtype=training.dtype, report=training.report,
    )  # fmt: skip
    denoiser.cpu()
    test = training.test
    return _save(
        training,
        denoiser,
        architecture,
        seconds,
        "Denoiser: noisy images and their sigma in, clean estimate out",
        {f"{test.name} rmse sigma={s:g}": denoising_error(denoiser, test, s) for s in training.sigmas},
    )


def train_classifier(training: Training, architecture: Architecture, denoiser: nn.Module | None = None) -> Card:
    """Train a classifier behind a denoiser or bare, measure it and write it down; return its card."""
    arguments = {"classes": training.images.classes} | architecture.arguments
    architecture = _complete(Architecture(network=architecture.network, arguments=arguments), CLASSIFIERS)
    network = _fresh(architecture, training.schedule.seed)
    device, dtype, test = training.device, training.dtype, training.test
    seconds = fit_classifier(
        network, training.images, training.levels, training.schedule, training.checkpoint,
        denoiser=denoiser, device=device, dtype=dtype, report=training.report,
    )  # fmt: skip
    whole = network if denoiser is None else Denoised(denoiser, network)
    return _save(
        training,
        network,
        architecture,
        seconds,
        f"Classifier of {arguments['classes']} classes{'' if denoiser is None else ' behind a denoiser'}",
        {
            f"{test.name} accuracy sigma={s:g}": measure(whole, test, s, device=device, dtype=dtype).accuracy
            for s in training.sigmas
        },
    )


def train_router(
    training: Training,
    architecture: Architecture,
    radii: Tensor,
    objective: RouterObjective,
    denoiser: nn.Module | None = None,
) -> Card:
    """Train a router behind a denoiser or bare, measure how often it finds the best sigma, and write it down."""
    arguments = {"classes": radii.shape[1]} | architecture.arguments
    architecture = _complete(Architecture(network=architecture.network, arguments=arguments), CLASSIFIERS)
    network = _fresh(architecture, training.schedule.seed)
    device, dtype, test = training.device, training.dtype, training.test
    seconds = fit_router(
        network, training.images, radii, objective, training.schedule, training.checkpoint,
        denoiser=denoiser, device=device, dtype=dtype, report=training.report,
    )  # fmt: skip
    whole = network if denoiser is None else Denoised(denoiser, network)
    found = measure(whole, test, objective.sigma_e, device=device, dtype=dtype)
    return _save(
        training,
        network,
        architecture,
        seconds,
        f"Router over {arguments['classes']} sigmas{'' if denoiser is None else ' behind a denoiser'}",
        {f"{test.name} best sigma found": found.accuracy},
    )


def _complete(architecture: Architecture, kinds: Collection[str]) -> Architecture:
    if architecture.network not in kinds:
        raise BadSetting(f"there is no network {architecture.network!r} for this; choose one of {', '.join(kinds)}")
    return complete(architecture)


def _fresh(architecture: Architecture, seed: int) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build(architecture)


def _save(
    training: Training,
    network: nn.Module,
    architecture: Architecture,
    seconds: float,
    what: str,
    scores: dict[str, float],
) -> Card:
    threads = torch.get_num_threads()
    where = f"{threads} CPU thread{'s' * (threads > 1)}" if str(training.device) == "cpu" else str(training.device)
    card = Card(
        what=f"{what}; trained at {training.levels}",
        architecture=architecture,
        data=training.images.name,
        recipe=training.recipe or str(asdict(training.schedule)),
        seed=training.schedule.seed,
        cost=f"{seconds / 60:.0f} min on {where}",
        scores={name: round(score, 4) for name, score in scores.items()},
        licence=_LICENCE,
    )
    return save_weights(network, card, training.out)
