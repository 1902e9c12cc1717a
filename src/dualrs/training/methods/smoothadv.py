"""SmoothAdv: cross-entropy on images that were moved to where the smoothed classifier does worse.

Salman et al., "Provably Robust Deep Learning via Adversarially Trained Smoothed Classifiers", NeurIPS 2019; the attack
"ddn" is of Rony et al., "Decoupling Direction and Norm", CVPR 2019.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import torch
from torch import Tensor

from dualrs.data.images import LEVELS
from dualrs.errors import BadSetting
from dualrs.training.losses import log_softmax, mean_of_logs
from dualrs.training.methods.ascent import as_long_as, inside, norms, steepest, within
from dualrs.training.methods.method import Exercise, Method, nearest, scaled
from dualrs.training.pupil import standing_still

_COPIES_AND_REACH = {0.25: (4, 1.0), 0.5: (8, 1.0), 1.0: (2, 2.0)}
_FASTEST, _SLOWEST = 1.0, 0.01  # steps of ddn
_NARROWER, _WIDER = 0.95, 1.05  # its norm, where the attack has worked and where not


@dataclass(frozen=True)
class SmoothAdv(Method):
    """``steps`` of an attack within ``reach`` (L2), which grows to that over the first ``ramp`` epochs."""

    name: ClassVar[str] = "smoothadv"

    copies: int = 4
    steps: int = 10
    reach: float = 1.0
    ramp: int = 10
    attack: Literal["pgd", "ddn"] = "pgd"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.steps < 1 or self.attack not in ("pgd", "ddn"):
            raise BadSetting(f"smoothadv takes steps of an attack, pgd or ddn; got {self.steps} of {self.attack!r}")

    @classmethod
    def at(cls, sigma: float, epochs: int) -> Self:
        """Copies and reach by sigma."""
        copies, reach = nearest(sigma, _COPIES_AND_REACH)
        return cls(copies=copies, reach=reach, ramp=scaled(10, epochs))

    def losses(self, exercise: Exercise) -> Tensor:
        """Cross-entropy on the moved images, under the noise that the attack saw."""
        noise, reach = exercise.noise(self.copies), self.reach * exercise.ramp(self.ramp)
        attack = self.pgd if self.attack == "pgd" else self.ddn
        with standing_still(exercise.network):
            moved = attack(exercise, noise, reach)
        return exercise.cross_entropy(log_softmax(exercise.logits(exercise.clean + moved + noise))).mean(0)

    def pgd(self, exercise: Exercise, noise: Tensor, reach: float) -> Tensor:
        """Perturbations of at most this norm that raise the loss of the mean answer."""
        moved = torch.zeros_like(exercise.clean)
        for _ in range(self.steps):
            up = steepest(
                exercise, lambda at: smoothed_loss(exercise, exercise.logits(exercise.clean + at + noise)), moved
            )
            moved = within(reach, inside(exercise.clean, moved + 2 * reach / self.steps * up))
        return moved

    def ddn(self, exercise: Exercise, noise: Tensor, reach: float) -> Tensor:
        """The smallest perturbations found that change the answer of most copies, cut to this norm; none is zero."""
        clean = exercise.clean
        moved, best = torch.zeros_like(clean), torch.zeros_like(clean)
        shortest, length = torch.full_like(norms(clean), math.inf), torch.full_like(norms(clean), reach)
        farthest = norms(torch.maximum(clean, 1 - clean))
        for step in range(self.steps):
            wrong = torch.zeros_like(exercise.labels, dtype=torch.bool)

            def loss(at: Tensor, wrong: Tensor = wrong) -> Tensor:
                logits = exercise.logits(clean + at + noise)
                wrong.copy_(logits.argmax(-1).mode(dim=0).values != exercise.labels)
                return smoothed_loss(exercise, logits)

            up = steepest(exercise, loss, moved)
            fooled = wrong.view(-1, 1, 1, 1)
            better = fooled & (norms(moved) < shortest)
            best, shortest = torch.where(better, moved, best), torch.where(better, norms(moved), shortest)
            length = torch.minimum(length * torch.where(fooled, _NARROWER, _WIDER), farthest)
            pace = _SLOWEST + (_FASTEST - _SLOWEST) * (1 + math.cos(math.pi * step / self.steps)) / 2
            moved = as_long_as(length, moved + pace * up)
            moved = ((clean + moved) * LEVELS).round().div(LEVELS).clamp(0, 1) - clean
        return within(reach, best)


def smoothed_loss(exercise: Exercise, logits: Tensor) -> Tensor:
    """Cross-entropy of the mean answer over the copies: -log mean softmax, in the domain of logarithms."""
    return exercise.cross_entropy(mean_of_logs(log_softmax(logits)))
