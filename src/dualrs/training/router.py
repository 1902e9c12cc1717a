"""Training a router, the paper's variance estimator: which sigma suits an image. Section 5.2.1 of the paper.

Enters: images, the radius of their true class at each candidate, a frozen denoiser or none. Leaves: the task of
a network whose answers under noise of sigma_e are numbers of candidates, for `loop.fit`.
"""

from dataclasses import dataclass, field, fields

import torch
from torch import Generator, Tensor, nn

from dualrs.errors import BadSetting
from dualrs.models.noisy import answering, fingerprint, logits_of, takes_sigma
from dualrs.training.front import Front
from dualrs.training.images import TrainingImages
from dualrs.training.loop import Task, digest
from dualrs.training.losses import Gate, balance_weights, radius_scale, router_loss
from dualrs.training.noise import add_noise
from dualrs.training.own_loss import OwnLoss

_OF_OUR_LOSS = ("consistency_weight", "entropy_weight", "gate", "hard")


@dataclass(frozen=True)
class RouterObjective:
    """The loss and its noise; defaults are the paper's for CIFAR-10.

    ``own`` takes logits, (copies, inputs, candidates), and radii, (inputs, candidates), in place of the paper's terms.
    """

    sigma_e: float = 1.0
    consistency_weight: float = 40.0
    entropy_weight: float = 0.5
    noise_copies: int = 2
    gate: Gate = "strong"
    balanced: bool = True
    hard: bool = False  # labels, for comparison
    own: OwnLoss | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.sigma_e > 0 or self.noise_copies < 1 or min(self.consistency_weight, self.entropy_weight) < 0:
            raise BadSetting(f"sigma_e and the noise copies must be positive, and no weight negative; got {self}")
        if self.gate not in ("strong", "weak", "none"):
            raise BadSetting(f"unknown consistency gate {self.gate!r}; choose one of strong, weak, none")
        replaced = [f.name for f in fields(self) if f.name in _OF_OUR_LOSS and getattr(self, f.name) != f.default]
        if self.own is not None and replaced:
            raise BadSetting(f"the loss {self.own.reference} takes the place of {', '.join(replaced)}; leave them out")


def router_task(
    network: nn.Module, front: Front, images: TrainingImages, radii: Tensor, objective: RouterObjective
) -> Task:
    """To find the best sigma of images whose ``radii``, (images, candidates), are positive somewhere."""
    device = front.device
    about = (
        f"router {fingerprint(network)} {front.name}, {images.name} {images.fingerprint}, {objective}, "
        f"radii {digest(radii)}{'' if objective.own is None else f', {objective.own.about}'}"
    )
    told = takes_sigma(network)
    radii = radii.float()
    balance, scale = balance_weights(radii, objective.balanced), radius_scale(radii)
    sigma_e = objective.sigma_e

    def loss(indices: Tensor, generator: Generator) -> Tensor:
        clean = images.batch(indices, generator)
        copies = clean.repeat(objective.noise_copies, 1, 1, 1)
        noisy = add_noise(copies, torch.full((len(copies),), sigma_e), generator).to(device)
        seen = front(noisy, sigma_e)
        with answering("router", network, seen):
            logits = logits_of(network(seen, sigma=sigma_e) if told else network(seen))
        logits = logits.view(objective.noise_copies, len(indices), -1)
        known, weights = radii[indices].to(device), balance[indices].to(device)
        if objective.own is not None:
            return (weights * objective.own(logits, known)).mean()
        return router_loss(
            logits,
            known,
            weights,
            consistency_weight=objective.consistency_weight,
            entropy_weight=objective.entropy_weight,
            gate=objective.gate,
            scale=scale,
            hard=objective.hard,
        )

    return Task(network, images, loss, about)
