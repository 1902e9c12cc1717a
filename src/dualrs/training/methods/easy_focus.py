"""Easy-focus: give up images that are hopeless, draw those oftener that have large radii, and attack the noise.

Sun et al., "Average Certified Radius is a Poor Metric for Randomized Smoothing", 2025, who name no name for it. They
show that a larger mean radius is had by serving easy inputs at the cost of hard ones, and this is how.
"""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import torch
from scipy.special import ndtri
from torch import Generator, Tensor

from dualrs.errors import BadData, BadSetting
from dualrs.theory.bounds import lower
from dualrs.training.images import TrainingImages
from dualrs.training.losses import log_softmax
from dualrs.training.memory import Memory, Poll, Respond
from dualrs.training.methods.ascent import as_long_as, norms, steepest
from dualrs.training.methods.method import Exercise, Method, nearest, scaled
from dualrs.training.noise import Levels
from dualrs.training.pupil import standing_still

# From which epoch, below which share of votes an image is given up, length of a step, steps.
_BY_SIGMA = {0.25: (60, 0.5, 0.25, 3), 0.5: (70, 0.4, 0.25, 6), 1.0: (60, 0.4, 0.5, 4)}
_LEVEL = 0.1  # of the bound that a weight is made of
_LEAST = 0.75  # share of votes from which weights differ
_KEPT, _RIGHT = "kept", "right votes"


@dataclass(frozen=True)
class EasyFocus(Method):
    """Plain noise before epoch ``start``. From then on, ``steps`` of the length ``pace`` against each noise.

    Images with less than the share ``hopeless`` of ``first_votes`` right are given up at ``start``. The others are
    drawn in proportion to the radius that ``votes`` show, counted again every ``renewed`` epochs.
    """

    name: ClassVar[str] = "easy-focus"
    not_for_routers: ClassVar[str] = (
        "it gives up inputs and draws the others by how easy they are, which the weights of a router's inputs decide "
        "already (w_e)"
    )

    copies: int = 4
    start: int = 60
    hopeless: float = 0.5
    pace: float = 0.25
    steps: int = 3
    first_votes: int = 100
    votes: int = 16
    renewed: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(self.first_votes, self.votes, self.renewed) < 1:
            raise BadSetting(f"easy-focus counts votes, at least one, every epoch or more seldom; got {self}")
        if radius_weights(self.votes).min() <= 0:
            raise BadSetting(
                f"of {self.votes} votes three quarters do not show a radius, which easy-focus draws images by; take 16 "
                "or more"
            )

    @classmethod
    def at(cls, sigma: float, epochs: int) -> Self:
        """When, whom and how hard by sigma."""
        start, hopeless, pace, steps = nearest(sigma, _BY_SIGMA)
        return cls(
            start=scaled(start, epochs), hopeless=hopeless, pace=pace, steps=steps, renewed=max(1, scaled(10, epochs))
        )

    def memory(self, respond: Respond, images: TrainingImages, levels: Levels) -> Memory:
        """Which images are kept, and how many votes on them were right."""
        return _Focus(self, respond, images, levels)

    def stretch(self, epochs: int) -> float:
        """Steps are attacked from ``start`` on."""
        attacked = max(0, epochs - self.start) / epochs
        return 1 + self.steps * attacked if self.start else 1.0

    def losses(self, exercise: Exercise) -> Tensor:
        """Cross-entropy under noise, attacked from ``start`` on."""
        noise = exercise.noise(self.copies)
        if exercise.memory.epoch >= self.start:
            with standing_still(exercise.network):
                noise = self.worsened(exercise, noise)
        return exercise.cross_entropy(log_softmax(exercise.logits(exercise.clean + noise))).mean(0)

    def worsened(self, exercise: Exercise, noise: Tensor) -> Tensor:
        """Noise as long as this, the first on its way up that is answered wrongly, or the last."""
        length, moved, found = norms(noise), noise, noise
        wrong = torch.zeros(noise.shape[:2], dtype=torch.bool, device=noise.device)
        for _ in range(self.steps):
            answered = torch.zeros_like(wrong)

            def loss(at: Tensor, answered: Tensor = answered) -> Tensor:
                logits = exercise.logits(exercise.clean + at)
                answered.copy_(logits.argmax(-1) != exercise.labels)
                return exercise.cross_entropy(log_softmax(logits))

            up = steepest(exercise, loss, moved)
            wrong = wrong | answered
            found = torch.where(wrong[..., None, None, None], found, as_long_as(length, moved + self.pace * up))
            moved = found
        return found


class _Focus(Memory):
    """Draws images with replacement, by what votes said of them."""

    def __init__(self, settings: EasyFocus, respond: Respond, images: TrainingImages, levels: Levels) -> None:
        super().__init__()
        self._settings, self._respond, self._images, self._levels = settings, respond, images, levels

    def renew(self, poll: Poll) -> None:
        """Give images up once; count votes every few epochs."""
        settings, since = self._settings, self.epoch - self._settings.start
        if since == 0:
            kept = self._right(poll, settings.first_votes) >= settings.hopeless * settings.first_votes
            if not kept.any():
                raise BadData(
                    f"easy-focus would give up all images: not one of {self._images.name} has a share of "
                    f"{settings.hopeless:g} of its votes right at epoch {self.epoch}; train longer before that, or "
                    "with less noise"
                )
            self.known[_KEPT] = kept
        if since >= 0 and since % settings.renewed == 0:
            self.known[_RIGHT] = self._right(poll, settings.votes)

    def order(self, images: int, generator: Generator) -> Tensor:
        """As many as there are, with replacement, once votes were counted."""
        if _RIGHT not in self.known:
            return super().order(images, generator)
        weights = radius_weights(self._settings.votes)[self.known[_RIGHT].long()] * self.known[_KEPT]
        return torch.multinomial(weights, images, replacement=True, generator=generator)

    def _right(self, poll: Poll, count: int) -> Tensor:
        right = torch.zeros(len(self._images))
        for places, votes in poll.votes(self._respond, self._levels, count):
            right[places] = (votes == self._images.labels[places]).sum(0).float()
        return poll.gathered(right).to(torch.int16)


def radius_weights(votes: int) -> Tensor:
    """How often an image is drawn of which 0 to all votes are right: in proportion to a radius at sigma 1."""
    right = np.floor(votes * np.clip(np.arange(votes + 1) / votes, _LEAST, 1))
    return torch.from_numpy(ndtri(lower(right, votes, _LEVEL)))
