"""Training a classifier: on clean, on noisy or on denoised images, at sigmas that are fixed, drawn or per input.

Enters: images with labels, a frozen denoiser or none. Leaves: the classifier, trained to answer after that denoiser.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from dualrs.data.dataset import Dataset
from dualrs.errors import NonFiniteLogits
from dualrs.models.hardware import autocast, check_dtype, fastest_dtype, open_device
from dualrs.models.noisy import fingerprint, takes_sigma
from dualrs.training.front import Front
from dualrs.training.images import TrainingImages, plain_batches
from dualrs.training.loop import Schedule, State, fit
from dualrs.training.noise import Levels, add_noise


def fit_classifier(
    network: nn.Module,
    images: TrainingImages,
    levels: Levels,
    schedule: Schedule,
    checkpoint: Path,
    *,
    denoiser: nn.Module | None = None,
    device: str | torch.device = "cpu",
    dtype: str | None = None,
    report: Callable[[State], None] = lambda state: None,
) -> float:
    """Train in place by cross-entropy; return the seconds it took. Clean images (sigma 0) bypass the denoiser."""
    device = open_device(device)
    front = Front(denoiser, device)
    identity = f"classifier {fingerprint(network)} {front.name}, {images.name}, {levels!r}"
    told = takes_sigma(network)

    def loss(indices: Tensor, generator: Generator) -> Tensor:
        clean = images.batch(indices, generator)
        sigma = levels.draw(indices, generator)
        noisy, sigma = add_noise(clean, sigma, generator).to(device), sigma.to(device)
        seen = front(noisy, sigma)
        logits = network(seen, sigma=sigma) if told else network(seen)
        return F.cross_entropy(logits, images.labels[indices].to(device))

    return fit(
        network, loss, len(images), schedule, checkpoint, about=identity, device=device, dtype=dtype, report=report
    )


@dataclass(frozen=True)
class Measured:
    """How a network does on one noisy copy of each image."""

    accuracy: float
    images_per_second: float


@torch.inference_mode()
def measure(
    model: nn.Module,
    dataset: Dataset,
    sigma: float,
    *,
    seed: int = 0,
    device: str | torch.device = "cpu",
    dtype: str | None = None,
    report: Callable[[int], None] = lambda images: None,
) -> Measured:
    """Accuracy of ``model`` (images, with or without sigma -> logits) at one sigma, and its speed without the noise.

    ``report`` is told the number of images after each batch.
    """
    device = open_device(device)
    dtype = check_dtype(dtype or fastest_dtype(device))
    generator = Generator().manual_seed(seed)
    told = takes_sigma(model.to(device))
    right, seconds = 0, 0.0
    for clean, labels in plain_batches(dataset):
        noisy = add_noise(clean, torch.full((len(clean),), sigma), generator).to(device)
        began = time.perf_counter()
        with autocast(device, dtype):
            logits = model(noisy, sigma=sigma) if told else model(noisy)
        if not torch.isfinite(logits).all():
            raise NonFiniteLogits(f"the network answers NaN or infinity at sigma {sigma:g}")
        right += int((logits.argmax(1).cpu() == labels).sum())
        seconds += time.perf_counter() - began
        report(len(labels))
    return Measured(right / len(dataset.ids), len(dataset.ids) / seconds)
