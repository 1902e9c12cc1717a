"""Consistency: cross-entropy, and a penalty where noisy copies of an image are answered differently.

Jeong and Shin, "Consistency Regularization for Certified Robustness of Smoothed Classifiers", NeurIPS 2020.
"""

from dataclasses import dataclass
from typing import ClassVar, Self

from torch import Tensor

from dualrs.training.losses import consistency, log_softmax
from dualrs.training.methods.method import Exercise, Method, nearest

_LAMBDA = {0.25: 20.0, 0.5: 10.0, 1.0: 10.0}


@dataclass(frozen=True)
class Consistency(Method):
    """Weight lambda on the divergence of copies from their mean, eta on the entropy of the mean."""

    name: ClassVar[str] = "consistency"

    copies: int = 2
    consistency_weight: float = 10.0
    entropy_weight: float = 0.5

    @classmethod
    def at(cls, sigma: float, epochs: int) -> Self:
        """Lambda by sigma."""
        return cls(consistency_weight=nearest(sigma, _LAMBDA))

    def losses(self, exercise: Exercise) -> Tensor:
        """Mean cross-entropy + lambda mean KL(mean || copy) + eta H(mean)."""
        logits = exercise.logits(exercise.clean + exercise.noise(self.copies))
        weights = {"consistency_weight": self.consistency_weight, "entropy_weight": self.entropy_weight}
        return exercise.cross_entropy(log_softmax(logits)).mean(0) + consistency(logits, **weights)
