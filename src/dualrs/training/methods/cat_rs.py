"""CAT-RS: as many copies as the network can bear are learnt, and only sure inputs are trained against attacked noise.

Jeong, Kim and Shin, "Confidence-aware Training of Smoothed Classifiers for Certified Robustness", AAAI 2023.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dualrs.errors import BadModel, BadSetting
from dualrs.models.noisy import answering, class_names, fingerprint, logits_of, takes_sigma
from dualrs.training.images import TrainingImages
from dualrs.training.losses import log_softmax
from dualrs.training.memory import Memory, Poll, Respond
from dualrs.training.methods.ascent import steepest, within
from dualrs.training.methods.method import Exercise, Method, nearest
from dualrs.training.noise import Levels, OneOf
from dualrs.training.pupil import standing_still

_LAMBDA = {0.25: 0.5, 0.5: 1.0, 1.0: 2.0}
_SHARES = "teacher's votes"


@dataclass(frozen=True)
class CatRS(Method):
    """Weight lambda on the worst divergence from a teacher's votes under noise attacked in ``steps`` within ``reach``.

    The ``teacher`` is a classifier that was trained with plain noise, by default of sigma 0.25, at which it votes on
    every training image before the first epoch. A router needs none: its soft labels are the votes.
    """

    name: ClassVar[str] = "cat-rs"

    copies: int = 4
    steps: int = 4
    reach: float = 1.0
    worst_weight: float = 1.0
    teacher_votes: int = 100
    teacher_sigma: float = 0.25
    teacher: nn.Module | None = field(default=None, repr=False)

    @classmethod
    def at(cls, sigma: float, epochs: int) -> Self:
        """Lambda by sigma."""
        return cls(worst_weight=nearest(sigma, _LAMBDA))

    @property
    def about(self) -> str:
        """The teacher too."""
        return super().about + ("" if self.teacher is None else f" taught by {fingerprint(self.teacher)}")

    def check_teacher(self, given: bool) -> None:
        """There is one, and it votes."""
        if not given:
            raise BadSetting(
                "cat-rs needs a teacher, a classifier trained with plain noise: train one (--method gaussian --sigma "
                "0.25) and name it, --teacher FILE or teacher in the recipe"
            )
        if self.teacher_votes < 1:
            raise BadSetting("cat-rs needs at least one vote of its teacher on each image")

    def memory(self, respond: Respond, images: TrainingImages, levels: Levels) -> Memory:
        """The votes of the teacher."""
        self.check_teacher(self.teacher is not None)
        assert self.teacher is not None, "refused before"
        named = class_names(self.teacher)
        if named and images.class_names and tuple(named) != tuple(images.class_names):
            raise BadModel(f"the teacher's classes are not those of {images.name}, in this order; give another teacher")
        return _Taught(self, images)

    def losses(self, exercise: Exercise) -> Tensor:
        """Mean of the K smallest cross-entropies + lambda max KL(votes || answer under attacked noise) where K = m.

        K is binomial, with as much chance as copies are answered rightly, and at least 1.
        """
        noise = exercise.noise(self.copies)
        logits = exercise.logits(exercise.clean + noise)
        answers = logits.shape[-1]
        votes = exercise.soft if exercise.soft is not None else self._votes(exercise, answers)
        with standing_still(exercise.network):
            attacked = self.worsened(exercise, noise, votes)
        costs = exercise.cross_entropy(log_softmax(logits)).sort(dim=0).values
        right = (logits.argmax(-1) == exercise.labels).float().mean(0)
        learnt = (exercise.uniform(self.copies, len(right)) < right).sum(0).clamp(min=1)
        rank = torch.arange(self.copies, device=costs.device)[:, None]
        worst = divergence(votes, exercise.logits(exercise.clean + attacked)).amax(0)
        return torch.where(rank < learnt, costs, 0.0).mean(0) + self.worst_weight * (learnt == self.copies) * worst

    def worsened(self, exercise: Exercise, noise: Tensor, votes: Tensor) -> Tensor:
        """Noise near this one that raises each divergence, and has the same mean and mean square."""
        moved = noise
        for _ in range(self.steps):
            up = steepest(exercise, lambda at: divergence(votes, exercise.logits(exercise.clean + at)), moved)
            moved = noise + within(self.reach, moved + 2 * self.reach / self.steps * up - noise)
            centred = moved - _mean(moved)
            moved = _mean(noise) + centred * _size(noise) / _size(moved).clamp(min=1e-12)
        return moved

    def _votes(self, exercise: Exercise, answers: int) -> Tensor:
        counts = exercise.memory.known[_SHARES][exercise.indices].float()
        shares = (counts / counts.sum(-1, keepdim=True)).to(exercise.clean.device)
        return F.pad(shares, (0, answers - shares.shape[-1]))


def divergence(votes: Tensor, logits: Tensor) -> Tensor:
    """KL(votes || answer) of each copy, (copies, inputs)."""
    negative_entropy: Tensor = -torch.special.entr(votes).sum(-1)
    return negative_entropy - (votes * log_softmax(logits)).sum(-1)


def _mean(noise: Tensor) -> Tensor:
    return noise.mean(dim=(-3, -2, -1), keepdim=True)


def _size(noise: Tensor) -> Tensor:
    return noise.square().mean(dim=(-3, -2, -1), keepdim=True).sqrt()


class _Taught(Memory):
    """The votes of a teacher on every image."""

    def __init__(self, settings: CatRS, images: TrainingImages) -> None:
        super().__init__()
        self._settings, self._images = settings, images

    def renew(self, poll: Poll) -> None:
        """Count them once."""
        if _SHARES in self.known:
            return
        settings, classes = self._settings, self._images.classes
        assert settings.teacher is not None, "refused before"
        teacher = settings.teacher.to(poll.together.device).eval()
        told = takes_sigma(teacher)

        def respond(noisy: Tensor, sigma: Tensor) -> Tensor:
            with answering("teacher", teacher, noisy):
                logits: Tensor = logits_of(teacher(noisy, sigma=sigma) if told else teacher(noisy))
            return logits

        counts = torch.zeros(len(self._images), classes)
        for places, votes in poll.votes(respond, OneOf((settings.teacher_sigma,)), settings.teacher_votes):
            if int(votes.max()) >= classes:
                raise BadModel(
                    f"the teacher names class {int(votes.max())}, and {self._images.name} has {classes}; give one of "
                    "these images' classes"
                )
            counts[places] = F.one_hot(votes, classes).sum(0).float()
        self.known[_SHARES] = poll.gathered(counts).to(torch.int16)
