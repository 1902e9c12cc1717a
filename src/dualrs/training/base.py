"""The base networks as commands make them: from settings to a file of weights with its card."""

from collections.abc import Callable, Collection
from dataclasses import asdict
from pathlib import Path

import torch
from torch import nn

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

_LICENCE = "Apache-2.0"


def train_denoiser(
    out: Path,
    architecture: Architecture,
    images: TrainingImages,
    test: Dataset,
    levels: Levels,
    schedule: Schedule,
    *,
    recipe: str = "",
    device: str | torch.device = "cpu",
    dtype: str | None = None,
    report: Callable[[State], None] = lambda state: None,
) -> Card:
    """Train a denoiser, measure it on ``test`` at its sigmas, and write it to ``out``; return its card.

    A training that was stopped goes on from ``out`` with the suffix .checkpoint.
    """
    architecture = _complete(architecture, DENOISERS)
    denoiser = _fresh(architecture, schedule.seed)
    assert isinstance(denoiser, Preconditioned)
    seconds = fit_denoiser(
        denoiser, images, levels, schedule, _checkpoint(out), device=device, dtype=dtype, report=report
    )
    denoiser.cpu()
    card = Card(
        what=f"Denoiser: noisy images and their sigma in, clean estimate out; trained at {levels}",
        architecture=architecture,
        data=images.name,
        recipe=recipe or str(asdict(schedule)),
        seed=schedule.seed,
        cost=_cost(seconds, device),
        scores={f"{test.name} rmse sigma={s:g}": round(denoising_error(denoiser, test, s), 4) for s in _sigmas(levels)},
        licence=_LICENCE,
    )
    return save_weights(denoiser, card, out)


def train_classifier(
    out: Path,
    architecture: Architecture,
    images: TrainingImages,
    test: Dataset,
    levels: Levels,
    schedule: Schedule,
    *,
    denoiser: nn.Module | None = None,
    recipe: str = "",
    device: str | torch.device = "cpu",
    dtype: str | None = None,
    report: Callable[[State], None] = lambda state: None,
) -> Card:
    """Train a classifier behind a denoiser or bare, measure it on ``test`` at its sigmas, write it to ``out``.

    Returns its card. A training that was stopped goes on from ``out`` with the suffix .checkpoint.
    """
    arguments = {"classes": images.classes} | architecture.arguments
    architecture = _complete(Architecture(network=architecture.network, arguments=arguments), CLASSIFIERS)
    network = _fresh(architecture, schedule.seed)
    seconds = fit_classifier(
        network, images, levels, schedule, _checkpoint(out),
        denoiser=denoiser, device=device, dtype=dtype, report=report,
    )  # fmt: skip
    whole = network if denoiser is None else Denoised(denoiser, network)
    place = "" if denoiser is None else " behind a denoiser"
    card = Card(
        what=f"Classifier of {images.classes} classes{place}; trained at {levels}",
        architecture=architecture,
        data=images.name,
        recipe=recipe or str(asdict(schedule)),
        seed=schedule.seed,
        cost=_cost(seconds, device),
        scores={
            f"{test.name} accuracy sigma={s:g}": round(measure(whole, test, s, device=device, dtype=dtype).accuracy, 4)
            for s in _sigmas(levels)
        },
        licence=_LICENCE,
    )
    return save_weights(network, card, out)


def _complete(architecture: Architecture, kinds: Collection[str]) -> Architecture:
    if architecture.network not in kinds:
        raise BadSetting(f"there is no network {architecture.network!r} for this; choose one of {', '.join(kinds)}")
    return complete(architecture)


def _fresh(architecture: Architecture, seed: int) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build(architecture)


def _sigmas(levels: Levels) -> tuple[float, ...]:
    """Where to measure: at the sigmas of the training if they are few."""
    return levels.sigmas if isinstance(levels, OneOf) else (0.1, 0.25, 0.5, 1.0)


def _checkpoint(out: Path) -> Path:
    return out.with_suffix(".checkpoint")


def _cost(seconds: float, device: str | torch.device) -> str:
    threads = torch.get_num_threads()
    where = f"{threads} CPU thread{'s' * (threads > 1)}" if str(device) == "cpu" else str(device)
    return f"{seconds / 60:.0f} min on {where}"
