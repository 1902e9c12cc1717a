"""Gaussian: cross-entropy on one noisy copy of each image.

Cohen, Rosenfeld and Kolter, "Certified Adversarial Robustness via Randomized Smoothing", ICML 2019.
"""

from dataclasses import dataclass
from typing import ClassVar, Self

import torch.nn.functional as F
from torch import Tensor

from dualrs.training.losses import log_softmax
from dualrs.training.methods.method import Exercise, Method


@dataclass(frozen=True)
class Gaussian(Method):
    """Noise alone."""

    name: ClassVar[str] = "gaussian"

    copies: int = 1

    @classmethod
    def at(cls, sigma: float, epochs: int) -> Self:
        """Nothing depends on the sigma."""
        return cls()

    def losses(self, exercise: Exercise) -> Tensor:
        """Cross-entropy, averaged over the copies."""
        return exercise.cross_entropy(log_softmax(exercise.logits(exercise.clean + exercise.noise(self.copies)))).mean(
            0
        )

    def loss(self, exercise: Exercise) -> Tensor:
        """Torch's own mean for plain classes, which trainings of earlier versions took: a sum in another order."""
        if exercise.soft is not None or exercise.weights is not None:
            return super().loss(exercise)
        logits = exercise.logits(exercise.clean + exercise.noise(self.copies)).flatten(0, 1)
        return F.cross_entropy(logits, exercise.labels.repeat(self.copies))
