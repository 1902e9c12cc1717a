"""What a training method is, and what it works on.

Enters: an exercise, which is a batch of clean images with their sigmas, what is right, and the network. Leaves: one
number to minimise. A method is a frozen dataclass whose fields are its settings, so that its printed form identifies a
training; `METHODS` of this folder registers it.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar, Self, TypeVar

import torch
from torch import Generator, Tensor, nn

from dualrs.errors import BadSetting
from dualrs.training.images import TrainingImages
from dualrs.training.memory import Memory, Respond
from dualrs.training.noise import Levels

FIELD = 150  # epochs that the field trains on CIFAR-10; moments in a training scale with its length

_Held = TypeVar("_Held")


@dataclass(frozen=True)
class Exercise:
    """A batch as a method sees it. What it draws at random comes from ``generator`` alone.

    What is right is a class, ``labels``, or for routers a distribution, ``soft``, of which ``labels`` is the most
    probable. ``weights`` say how much each input counts; alike if there are none.
    """

    network: nn.Module
    respond: Respond
    indices: Tensor
    clean: Tensor  # (inputs, channels, height, width), in [0, 1]
    sigma: Tensor  # (inputs,)
    labels: Tensor
    generator: Generator
    memory: Memory
    soft: Tensor | None = None
    weights: Tensor | None = None

    def noise(self, copies: int) -> Tensor:
        """Noise of each image's own sigma, (copies, inputs, channels, height, width)."""
        return self.normal(copies, *self.clean.shape) * self.sigma.view(-1, 1, 1, 1)

    def normal(self, *shape: int) -> Tensor:
        """Standard normal numbers."""
        return torch.randn(shape, generator=self.generator).to(self.clean.device)

    def uniform(self, *shape: int) -> Tensor:
        """Numbers between 0 and 1."""
        return torch.rand(shape, generator=self.generator).to(self.clean.device)

    def logits(self, noisy: Tensor) -> Tensor:
        """Of noisy copies, (copies, inputs, ...): (copies, inputs, answers)."""
        copies, inputs = noisy.shape[:2]
        return self.respond(noisy.flatten(0, 1), self.sigma.repeat(copies)).view(copies, inputs, -1)

    def cross_entropy(self, log_answers: Tensor) -> Tensor:
        """Of logarithms of probabilities, (..., inputs, answers), with what is right: (..., inputs)."""
        if self.soft is not None:
            return -(self.soft * log_answers).sum(dim=-1)
        right = self.labels.expand(log_answers.shape[:-1])
        return -log_answers.gather(-1, right.unsqueeze(-1)).squeeze(-1)

    def mean(self, losses: Tensor) -> Tensor:
        """Of one loss for each input."""
        return (losses if self.weights is None else self.weights * losses).mean()

    def ramp(self, epochs: int) -> float:
        """The share of its strength that an attack has by now, if it takes so many epochs to all of it."""
        return min(1.0, (self.memory.epoch + 1) / epochs) if epochs else 1.0


@dataclass(frozen=True)
class Method(ABC):
    """A way to train: how many noisy copies it takes of each image, and its loss on a batch."""

    name: ClassVar[str]
    not_for_routers: ClassVar[str] = ""  # why

    copies: int

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, int | float) and not (math.isfinite(value) and value >= 0):
                raise BadSetting(f"{self.name}: {f.name} is a number from 0 up, got {value!r}")
        if self.copies < 1:
            raise BadSetting(f"{self.name} takes at least one noisy copy of each image, got {self.copies}")

    @classmethod
    @abstractmethod
    def at(cls, sigma: float, epochs: int) -> Self:
        """The settings that were published for CIFAR-10 at the nearest sigma, scaled to so many epochs."""

    @abstractmethod
    def losses(self, exercise: Exercise) -> Tensor:
        """One loss for each input."""

    def loss(self, exercise: Exercise) -> Tensor:
        """Their mean."""
        return exercise.mean(self.losses(exercise))

    def memory(self, respond: Respond, images: TrainingImages, levels: Levels) -> Memory:
        """What a training of a classifier by this method remembers between epochs."""
        return Memory()

    def check_teacher(self, given: bool) -> None:
        """Refuse a teacher where there is none, and a classifier without one where it needs one."""
        if given:
            raise BadSetting(f"{self.name} has no teacher; leave it out")

    def stretch(self, epochs: int) -> float:
        """How much longer the mean step of a training is than a step of its first epoch, in images that pass."""
        return 1.0

    @property
    def about(self) -> str:
        """What tells it from others."""
        return f"method {self!r}"


def nearest(sigma: float, published: Mapping[float, _Held]) -> _Held:
    """What was published at the sigma nearest to this one, by their ratio."""
    return published[min(published, key=lambda known: abs(math.log(known / max(sigma, 1e-3))))]


def scaled(epoch: int, epochs: int) -> int:
    """A moment in a training of so many epochs that comes as early as this one in a training of the field's length."""
    return round(epoch * epochs / FIELD)
