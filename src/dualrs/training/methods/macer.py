"""MACER: cross-entropy of the mean answer, and a larger radius where that answer is right. No attack.

Zhai et al., "MACER: Attack-free and Scalable Robust Training via Maximizing Certified Radius", ICLR 2020.
"""

from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor

from dualrs.training.losses import log_softmax, mean_of_logs
from dualrs.training.methods.method import Exercise, Method, nearest, scaled

_LAMBDA_AND_DEFERRED = {0.25: (12.0, 0), 0.5: (4.0, 0), 1.0: (12.0, 51)}
_EDGE = 1e-7  # a probability nearer to 0 or 1 has no quantile in float32; its gap is above any margin, and has no loss


@dataclass(frozen=True)
class Macer(Method):
    """Weight lambda on the part of the ``margin`` (gamma) that the gap between quantiles lacks.

    The gap is that of the two largest means of softmax(``sharpness`` x logits) (beta). Lambda is 0 for the first
    ``deferred`` epochs.
    """

    name: ClassVar[str] = "macer"

    copies: int = 16
    radius_weight: float = 12.0
    sharpness: float = 16.0
    margin: float = 8.0
    deferred: int = 0

    @classmethod
    def at(cls, sigma: float, epochs: int) -> Self:
        """Lambda by sigma, and whether it waits."""
        weight, deferred = nearest(sigma, _LAMBDA_AND_DEFERRED)
        return cls(radius_weight=weight, deferred=scaled(deferred, epochs))

    def losses(self, exercise: Exercise) -> Tensor:
        """Cross-entropy of the mean answer + lambda sigma/2 (gamma - gap)."""
        logits = exercise.logits(exercise.clean + exercise.noise(self.copies))
        costs = exercise.cross_entropy(mean_of_logs(log_softmax(logits)))
        if exercise.memory.epoch < self.deferred:
            return costs
        return costs + self.radius_weight * self.lacking(logits, exercise.labels) * exercise.sigma / 2

    def lacking(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Gamma less the gap, where the mean answer is right and the gap at most gamma; else 0. Shape (inputs,)."""
        sharpened = log_softmax(self.sharpness * log_softmax(logits))  # the same as of logits, in float32 at least
        top = sharpened.exp().mean(dim=0).topk(2, dim=-1)
        quantiles = torch.special.ndtri(top.values.clamp(_EDGE, 1 - _EDGE))
        gap = quantiles[:, 0] - quantiles[:, 1]
        counts = (top.indices[:, 0] == labels) & (gap <= self.margin)
        return torch.where(counts, self.margin - gap, 0.0)
