"""Training a router, the paper's variance estimator: which sigma suits an image. Section 5.2.1 of the paper.

Enters: images, the radius of their true class at each candidate, a frozen denoiser or none. Leaves: a network whose
answers under noise of sigma_e are numbers of candidates.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Generator, Tensor, nn

from dualrs.errors import BadSetting
from dualrs.models.hardware import open_device
from dualrs.models.noisy import fingerprint
from dualrs.training.front import Front
from dualrs.training.images import TrainingImages
from dualrs.training.loop import Schedule, State, digest, fit
from dualrs.training.losses import Gate, balance_weights, radius_scale, router_loss
from dualrs.training.noise import add_noise


@dataclass(frozen=True)
class RouterObjective:
    """The loss and its noise; defaults are the paper's for CIFAR-10."""

    sigma_e: float = 1.0
    consistency_weight: float = 40.0
    entropy_weight: float = 0.5
    noise_copies: int = 2
    gate: Gate = "strong"
    balanced: bool = True
    hard: bool = False  # labels, for comparison

    def __post_init__(self) -> None:
        if not self.sigma_e > 0 or self.noise_copies < 1 or min(self.consistency_weight, self.entropy_weight) < 0:
            raise BadSetting(f"sigma_e and the noise copies must be positive, and no weight negative; got {self}")
        if self.gate not in ("strong", "weak", "none"):
            raise BadSetting(f"unknown consistency gate {self.gate!r}; choose one of strong, weak, none")


def fit_router(
    network: nn.Module,
    images: TrainingImages,
    radii: Tensor,
    objective: RouterObjective,
    schedule: Schedule,
    checkpoint: Path,
    *,
    denoiser: nn.Module | None = None,
    device: str | torch.device = "cpu",
    dtype: str | None = None,
    report: Callable[[State], None] = lambda state: None,
) -> float:
    """Train in place on images whose ``radii``, (images, candidates), are positive somewhere; return the seconds."""
    device = open_device(device)
    front = Front(denoiser, device)
    identity = f"router {fingerprint(network)} {front.name}, {images.name}, {objective}, radii {digest(radii)}"
    radii = radii.float()
    balance, scale = balance_weights(radii, objective.balanced), radius_scale(radii)
    sigma_e = objective.sigma_e

    def loss(indices: Tensor, generator: Generator) -> Tensor:
        clean = images.batch(indices, generator)
        copies = clean.repeat(objective.noise_copies, 1, 1, 1)
        noisy = add_noise(copies, torch.full((len(copies),), sigma_e), generator).to(device)
        logits = network(front(noisy, sigma_e)).view(objective.noise_copies, len(indices), -1)
        return router_loss(
            logits,
            radii[indices].to(device),
            balance[indices].to(device),
            consistency_weight=objective.consistency_weight,
            entropy_weight=objective.entropy_weight,
            gate=objective.gate,
            scale=scale,
            hard=objective.hard,
        )

    return fit(
        network, loss, len(images), schedule, checkpoint, about=identity, device=device, dtype=dtype, report=report
    )
