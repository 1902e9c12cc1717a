"""Searching a ball around an image for one that is answered otherwise: uphill by gradients, or walking on votes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from dualrs.attacks.field import Field
from dualrs.errors import BadSetting
from dualrs.schemes.aim import Aim

_LAST = 0.25  # the share of the steps that see all copies


@dataclass(frozen=True)
class Effort:
    """How hard an attack tries.

    Gradients take ``steps`` of 2 radius / steps from each of ``restarts`` places, with ``copies`` noisy copies and in
    the end ``last_copies``. Where they vanish, ``walk`` steps are led by ``walk_votes`` hard votes each. ``votes`` are
    those by which the attack looks whether an answer changed, and ``verdict`` those by which it is judged.
    """

    steps: int = 20
    restarts: int = 2
    copies: int = 16
    last_copies: int = 128
    walk: int = 20
    walk_votes: int = 1_024
    votes: int = 200
    verdict: int = 1_000

    def __post_init__(self) -> None:
        if min(vars(self).values()) < 1:
            raise BadSetting(f"every number of an attack's effort must be at least 1, got {self}")


class Search:
    """A search with a field's networks."""

    def __init__(self, field: Field, effort: Effort, generator: Generator) -> None:
        self._field, self._effort, self._generator = field, effort, generator

    def found(self, image: Tensor, aims: Sequence[Aim], radius: float) -> Iterator[tuple[Aim, Tensor]]:
        """For each aim, where the search ended within a radius of an image; shape (restarts, channels, sides)."""
        for aim in aims:
            yield aim, self._climb(image, aim, radius)

    def _climb(self, image: Tensor, aim: Aim, radius: float, *, on_votes: bool = False) -> Tensor:
        effort, field = self._effort, self._field
        here = image.expand(effort.restarts, *image.shape)
        away = self._directions(here) * (radius / 2)
        away[0] = 0  # one begins at the image itself
        here = _within(image, here + away, radius)
        steps = effort.walk if on_votes else effort.steps
        for step in range(steps):
            if on_votes:
                slope = field.vote_slope(here, aim, effort.walk_votes)
            else:
                slope = field.slope(here, aim, effort.last_copies if step >= (1 - _LAST) * steps else effort.copies)
            flat = ~slope.flatten(1).norm(dim=1).gt(0) | ~slope.flatten(1).isfinite().all(dim=1)
            if flat.any() and not on_votes:
                return self._climb(image, aim, radius, on_votes=True)
            slope = torch.where(flat[:, None, None, None], self._directions(here), slope)
            here = _within(image, here + 2 * radius / steps * _unit(slope), radius)
        return here

    def _directions(self, like: Tensor) -> Tensor:
        return _unit(torch.randn(like.shape, generator=self._generator).to(like))


def _unit(change: Tensor) -> Tensor:
    length: Tensor = change.flatten(1).norm(dim=1).clamp_min(1e-30)
    return change / length[:, None, None, None]


def _within(image: Tensor, moved: Tensor, radius: float) -> Tensor:
    """Images within a radius of one image, and their pixels in [0, 1]."""
    change = moved - image
    length = change.flatten(1).norm(dim=1)[:, None, None, None]
    return torch.clamp(image + change * (radius / length.clamp_min(radius)), 0, 1)
