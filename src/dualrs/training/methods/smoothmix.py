"""SmoothMix: on the way from an image to an adversary without bounds, confidence has to fall to nothing.

Jeong et al., "SmoothMix: Training Confidence-calibrated Smoothed Classifiers for Certified Robustness", NeurIPS 2021.
"""

from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor

from dualrs.training.losses import log_softmax, mean_of_logs
from dualrs.training.methods.ascent import inside, steepest, within
from dualrs.training.methods.method import Exercise, Method, nearest, scaled
from dualrs.training.methods.smoothadv import smoothed_loss
from dualrs.training.pupil import standing_still

_PACE_AND_ONE_STEP = {0.25: (0.5, False), 0.5: (1.0, True), 1.0: (2.0, True)}


@dataclass(frozen=True)
class SmoothMix(Method):
    """Weight eta on the divergence from mixed targets, on images mixed with an adversary of ``steps`` steps.

    Each step has the length ``pace`` (alpha). With ``one_step`` the near side of the mixture is the adversary after
    one step, within a ball that grows to alpha over the first ``ramp`` epochs, as the weight does.
    """

    name: ClassVar[str] = "smoothmix"

    copies: int = 2
    steps: int = 4
    pace: float = 1.0
    one_step: bool = True
    mix_weight: float = 5.0
    ramp: int = 10

    @classmethod
    def at(cls, sigma: float, epochs: int) -> Self:
        """Pace and near side by sigma."""
        pace, one_step = nearest(sigma, _PACE_AND_ONE_STEP)
        return cls(pace=pace, one_step=one_step, ramp=scaled(10, epochs))

    def losses(self, exercise: Exercise) -> Tensor:
        """Cross-entropy on the near side + eta KL(mixed target || answer to the mixture) where that side is right."""
        noise, ramp = exercise.noise(self.copies), exercise.ramp(self.ramp)
        with standing_still(exercise.network):
            first, last = self.adversaries(exercise, noise)
        near = exercise.clean + (inside(exercise.clean, within(ramp * self.pace, first)) if self.one_step else 0)
        log_near = log_softmax(exercise.logits(near + noise))
        log_mean = mean_of_logs(log_near)
        share = exercise.uniform(len(near)) / 2
        along = share.view(-1, 1, 1, 1)
        mixture = (1 - along) * near + along * (exercise.clean + last)
        answers = log_mean.shape[-1]
        target = (1 - share)[:, None] * log_mean.exp() + share[:, None] / answers  # a gradient passes through it
        log_mixed = log_softmax(exercise.logits(mixture + noise))
        divergence = (target * (target.clamp(min=torch.finfo(target.dtype).tiny).log() - log_mixed)).sum(-1).mean(0)
        right = log_mean.argmax(-1) == exercise.labels
        return exercise.cross_entropy(log_near).mean(0) + self.mix_weight * ramp * right * divergence

    def adversaries(self, exercise: Exercise, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Perturbations that raise the loss of the mean answer: after one step, and after all."""
        moved = first = torch.zeros_like(exercise.clean)
        for step in range(self.steps):
            up = steepest(
                exercise, lambda at: smoothed_loss(exercise, exercise.logits(exercise.clean + at + noise)), moved
            )
            moved = inside(exercise.clean, moved + self.pace * up)
            first = moved if step == 0 else first
        return first, moved
