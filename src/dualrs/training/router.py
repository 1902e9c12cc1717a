"""Training a router, the paper's variance estimator: which sigma suits an image. Section 5.2.1 of the paper.

Enters: images, the radius of their true class at each candidate, a frozen denoiser or none. Leaves: the task of
a network whose answers under noise of sigma_e are numbers of candidates, for `loop.fit`.
"""

from dataclasses import dataclass, field, fields

import torch
from torch import Generator, Tensor, nn

from dualrs.errors import BadSetting
from dualrs.models.noisy import fingerprint
from dualrs.training.checkpoint import digest
from dualrs.training.front import Front
from dualrs.training.images import TrainingImages
from dualrs.training.loop import Task
from dualrs.training.losses import Gate, balance_weights, hard_labels, radius_scale, router_loss, soft_labels
from dualrs.training.memory import Memory
from dualrs.training.methods import Exercise, Method
from dualrs.training.noise import add_noise
from dualrs.training.own_loss import OwnLoss
from dualrs.training.pupil import Pupil

_OF_OUR_LOSS = ("consistency_weight", "entropy_weight", "gate", "hard")
_OF_THE_PAPER = ("consistency_weight", "entropy_weight", "gate", "noise_copies")


@dataclass(frozen=True)
class RouterObjective:
    """The loss and its noise; defaults are the paper's for CIFAR-10.

    ``own`` takes logits, (copies, inputs, candidates), and radii, (inputs, candidates), in place of the paper's terms.
    A ``method`` of `methods` takes their place too: the labels, soft unless ``hard``, are then what it trains for.
    """

    sigma_e: float = 1.0
    consistency_weight: float = 40.0
    entropy_weight: float = 0.5
    noise_copies: int = 2
    gate: Gate = "strong"
    balanced: bool = True
    hard: bool = False  # labels, for comparison
    own: OwnLoss | None = field(default=None, repr=False)
    method: Method | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.sigma_e > 0 or self.noise_copies < 1 or min(self.consistency_weight, self.entropy_weight) < 0:
            raise BadSetting(f"sigma_e and the noise copies must be positive, and no weight negative; got {self}")
        if self.gate not in ("strong", "weak", "none"):
            raise BadSetting(f"unknown consistency gate {self.gate!r}; choose one of strong, weak, none")
        replaced = [f.name for f in fields(self) if f.name in _OF_OUR_LOSS and getattr(self, f.name) != f.default]
        if self.own is not None and replaced:
            raise BadSetting(f"the loss {self.own.reference} takes the place of {', '.join(replaced)}; leave them out")
        if self.method is not None:
            self._check_method(self.method)

    def _check_method(self, method: Method) -> None:
        if method.not_for_routers:
            raise BadSetting(f"a router cannot be trained by {method.name}: {method.not_for_routers}; choose another")
        if self.own is not None:
            raise BadSetting(f"{method.name} and the loss {self.own.reference} are two losses; leave out one of them")
        replaced = [f.name for f in fields(self) if f.name in _OF_THE_PAPER and getattr(self, f.name) != f.default]
        if replaced:
            raise BadSetting(
                f"{', '.join(replaced)} belong to the paper's own loss, and {method.name} has settings of its own "
                "(method_args); leave them out"
            )


def router_task(
    network: nn.Module, front: Front, images: TrainingImages, radii: Tensor, objective: RouterObjective
) -> Task:
    """To find the best sigma of images whose ``radii``, (images, candidates), are positive somewhere."""
    device = front.device
    about = (
        f"router {fingerprint(network)} {front.name}, {images.name} {images.fingerprint}, {objective}, "
        f"radii {digest(radii)}{'' if objective.own is None else f', {objective.own.about}'}"
        f"{'' if objective.method is None else f', {objective.method.about}'}"
    )
    pupil = Pupil("router", network, front)
    radii = radii.float()
    balance, scale = balance_weights(radii, objective.balanced), radius_scale(radii)
    labelled = hard_labels if objective.hard else soft_labels
    sigma_e, method, memory = objective.sigma_e, objective.method, Memory()

    def loss(indices: Tensor, generator: Generator) -> Tensor:
        clean = images.batch(indices, generator)
        known, weights = radii[indices].to(device), balance[indices].to(device)
        if method is not None:
            sigma, best = torch.full((len(indices),), sigma_e, device=device), known.argmax(dim=1)
            return method.loss(
                Exercise(
                    network, pupil, indices, clean.to(device), sigma, best, generator, memory, labelled(known), weights
                )
            )
        copies = clean.repeat(objective.noise_copies, 1, 1, 1)
        noisy = add_noise(copies, torch.full((len(copies),), sigma_e), generator).to(device)
        logits = pupil(noisy, sigma_e).view(objective.noise_copies, len(indices), -1)
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

    return Task(network, images, loss, about, memory)
