"""Training a classifier: on clean, on noisy or on denoised images, at sigmas that are fixed, drawn or per input.

Enters: images with labels, a frozen denoiser or none. Leaves: the task of a classifier that answers
after that denoiser, for `loop.fit`; and how often a network is right.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn

from dualrs.data.classes import demand_fit, numbered_as
from dualrs.data.dataset import Dataset
from dualrs.errors import BadModel, BadSetting, NonFiniteLogits
from dualrs.models.hardware import autocast, check_dtype, fastest_dtype, open_device
from dualrs.models.noisy import Wants, answering, class_names, fingerprint, logits_of
from dualrs.models.randomness import FromGenerator
from dualrs.training.front import Front
from dualrs.training.images import TrainingImages, plain_batches
from dualrs.training.loop import Task
from dualrs.training.methods import Exercise, Method
from dualrs.training.methods.gaussian import Gaussian
from dualrs.training.noise import Levels, add_noise
from dualrs.training.own_loss import OwnLoss
from dualrs.training.pupil import Pupil

PLAIN = Gaussian()


def classifier_task(
    network: nn.Module,
    front: Front,
    images: TrainingImages,
    levels: Levels,
    own: OwnLoss | None = None,
    method: Method = PLAIN,
) -> Task:
    """To tell classes, by some method, or by a loss of the user's ``own``, of logits and labels, under plain noise."""
    if own is not None and method != PLAIN:
        raise BadSetting(
            f"the loss {own.reference} takes the place of cross-entropy under plain noise, and {method.name} has a "
            "loss of its own; leave out one of them"
        )
    device, pupil = front.device, Pupil("classifier", network, front)
    about = f"classifier {fingerprint(network)} {front.name}, {images.name} {images.fingerprint}, {levels!r}"
    about += "" if own is None else f", {own.about}"
    about += "" if method == PLAIN else f", {method.about}"

    def respond(noisy: Tensor, sigma: Tensor) -> Tensor:
        logits = pupil(noisy, sigma)
        answers = logits.shape[1] if logits.ndim == 2 else 0
        if answers < images.classes or (images.class_names and answers > images.classes):
            raise BadModel(
                f"the classifier answers with shape {tuple(logits.shape)} to {len(noisy)} images, but {images.name} "
                f"has {images.classes} classes; give it one logit for each"
            )
        return logits

    memory = method.memory(respond, images, levels)

    def loss(indices: Tensor, generator: Generator) -> Tensor:
        clean = images.batch(indices, generator)
        sigma = levels.draw(indices, generator)
        labels = images.labels[indices].to(device)
        if own is not None:
            noisy = add_noise(clean, sigma, generator).to(device)
            return own(respond(noisy, sigma.to(device)), labels).mean()
        return method.loss(
            Exercise(network, respond, indices, clean.to(device), sigma.to(device), labels, generator, memory)
        )

    return Task(network, images, loss, about, memory)


@dataclass(frozen=True)
class Measured:
    """How a network does on one noisy copy of each image."""

    accuracy: float
    images_per_second: float
    answers: tuple[float, ...]  # how often it gives each


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
    told = Wants.of(model.to(device)).told(sigma, FromGenerator(generator, device))
    right, seconds, counts = 0, 0.0, torch.zeros(0, dtype=torch.long)
    dataset = numbered_as(dataset, class_names(model))
    for clean, labels in plain_batches(dataset):
        noisy = add_noise(clean, torch.full((len(clean),), sigma), generator).to(device)
        began = time.perf_counter()
        with autocast(device, dtype), answering("network", model, noisy):
            logits = logits_of(model(noisy, **told))
        demand_fit(dataset, logits.shape[1])
        if not torch.isfinite(logits).all():
            raise NonFiniteLogits(f"the network answers NaN or infinity at sigma {sigma:g}")
        answers = logits.argmax(1).cpu()
        counts = answers.bincount(minlength=logits.shape[1]) + (counts if len(counts) else 0)
        right += int((answers == labels).sum())
        seconds += time.perf_counter() - began
        report(len(labels))
    total = len(dataset.ids)
    return Measured(right / total, total / seconds, tuple((counts / total).tolist()))
