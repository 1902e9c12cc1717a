"""Training a denoiser: the mean squared error of its clean estimate, weighed alike at every sigma.

Enters: images and a range of sigmas. Leaves: the task of a denoiser (anything with ``estimate``, see
`Preconditioned`), for `loop.fit`; and how far off a denoiser is.
"""

import math

import torch
from torch import Generator, Tensor, nn

from dualrs.data.dataset import Dataset
from dualrs.models.denoise import Preconditioned, residual_spread
from dualrs.models.noisy import fingerprint
from dualrs.training.images import TrainingImages, plain_batches
from dualrs.training.loop import Task
from dualrs.training.noise import Levels, add_noise
from dualrs.training.processes import join


def denoiser_task(
    denoiser: Preconditioned, images: TrainingImages, levels: Levels, *, device: str | torch.device = "cpu"
) -> Task:
    """To estimate the clean images."""
    device = join(device).device
    about = f"denoiser {fingerprint(denoiser)}, {images.name} {images.fingerprint}, {levels!r}"

    def loss(indices: Tensor, generator: Generator) -> Tensor:
        clean = images.batch(indices, generator)
        sigma = levels.draw(indices, generator)
        noisy = add_noise(clean, sigma, generator).to(device)
        clean, sigma = clean.to(device), sigma.to(device)
        error = (denoiser.estimate(noisy, sigma) - clean) / residual_spread(sigma, clean)
        return error.square().mean()

    return Task(denoiser, images, loss, about)


@torch.inference_mode()
def denoising_error(denoiser: nn.Module, dataset: Dataset, sigma: float, *, seed: int = 0) -> float:
    """Root mean squared error of the clean estimate over a dataset at one sigma, in [0, 1] units."""
    generator = Generator().manual_seed(seed)
    total, count = 0.0, 0
    for clean, _ in plain_batches(dataset):
        noisy = add_noise(clean, torch.full((len(clean),), sigma), generator)
        total += float((denoiser(noisy, sigma) - clean).double().square().sum())
        count += clean.numel()
    return math.sqrt(total / count)
