"""Searching around an image for one that is answered otherwise: uphill by gradients, or walking on votes.

Every step sees fresh noisy copies. How many of them follow the aim is seen along with the gradient, so that a search
knows how near it is without a vote of its own.
"""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from dualrs.attacks.field import Field, Slope
from dualrs.errors import BadSetting
from dualrs.schemes.aim import Aim, Floats

_KEPT = 0.5  # of the way of earlier steps, so that their noise averages out
_MIXED = 0.5  # of the shares that earlier steps saw
_REACHED = 0.56  # share of the copies that must follow every move of an aim: about what a thousand votes can show
_SURE = 0.8  # share at which a search inside a radius need not go on
_HOPELESS = 0.05  # share below which, half-way, it need not either
_PACE, _FINE_PACE, _LAST_PACE = 0.4, 0.05, 0.02  # by which the border is overshot in the beginning, and in the end
_FINE = 4  # times the copies, in a fine search


@dataclass(frozen=True)
class Effort:
    """How hard an attack tries, at most.

    A search inside a radius takes ``steps`` of 2 radius / steps, with ``copies`` noisy copies each, from ``restarts``
    places; one for the border takes as many again. Where gradients vanish, each step is led by ``walk_votes`` hard
    votes. ``votes`` are those by which the attack looks whether an answer changed, and ``verdict`` those by which it
    is judged.
    """

    steps: int = 10
    restarts: int = 2
    copies: int = 16
    walk_votes: int = 1_024
    votes: int = 200
    verdict: int = 1_024

    def __post_init__(self) -> None:
        if min(vars(self).values()) < 1:
            raise BadSetting(f"every number of an attack's effort must be at least 1, got {self}")


@dataclass(frozen=True, eq=False)
class Place:
    """Where a search came to: an image, and how far its noisy copies follow the aim there."""

    aim: Aim
    image: Tensor
    followed: float


class Search:
    """Searches with a field's networks."""

    def __init__(self, field: Field, effort: Effort, generator: Generator) -> None:
        self._field, self._effort, self._generator = field, effort, generator

    def inside(self, image: Tensor, aim: Aim, radius: float, *, at_random: bool = False) -> Place:
        """A place within a radius near an aim; the search begins at the image, or away from it at random."""
        start = _within(image, image + radius / 2 * self.direction(image), radius) if at_random else image
        path, steps = _Path(self, image, aim, start), self._effort.steps
        for number in range(steps):
            path.look()
            if path.followed > _SURE or (2 * number >= steps and path.followed < _HOPELESS):
                break
            path.step(2 * radius / steps, radius)
        return path.place

    def border(
        self, image: Tensor, start: Place, radius: float, farthest: float, *, fine: bool = False
    ) -> Place | None:
        """The nearest place found where an aim is reached, from one at a radius on; None if none is near enough.

        The radius grows while the aim is not reached and shrinks while it is, by less each time that changes. A fine
        search is for a place at the border: it makes smaller steps, with more copies.
        """
        path, steps = _Path(self, image, start.aim, start.image, _FINE if fine else 1), 2 * self._effort.steps
        nearest, pace, was = None, _FINE_PACE if fine else _PACE, fine
        for number in range(steps):
            path.look()
            reached = path.followed > _REACHED
            nearest = path.place if reached else nearest
            pace, was = (pace if reached == was else pace / 2), reached
            radius = radius / (1 + pace) if reached else radius * (1 + pace)
            if pace < _LAST_PACE or radius > farthest:
                break
            path.step(4 * radius / steps * (1 - number / steps), radius, outwards=True)
        return nearest

    def slope(self, here: Tensor, aim: Aim, fine: int, *, on_votes: bool) -> Slope:
        """The way towards an aim, by gradients of so many times the copies, or by votes alone."""
        if on_votes:
            return self._field.vote_slope(here, aim, self._effort.walk_votes)
        return self._field.slope(here, aim, fine * self._effort.copies)

    def direction(self, like: Tensor) -> Tensor:
        """A random way, of length 1."""
        return _unit(torch.randn(like.shape, generator=self._generator).to(like))


class _Path:
    """A search under way: where it is, its way, and what it saw."""

    def __init__(self, search: Search, image: Tensor, aim: Aim, here: Tensor, fine: int = 1) -> None:
        self._search, self._image, self._aim, self._here, self._fine = search, image, aim, here, fine
        self._way = torch.zeros_like(image)
        self._followed: Floats | None = None
        self._on_votes = False

    def look(self) -> None:
        """See the way and the shares here; from where gradients vanish, it is walked on votes."""
        up, followed = self._search.slope(self._here, self._aim, self._fine, on_votes=self._on_votes)
        if not self._on_votes and not _leads(up):
            self._on_votes = True
            up, followed = self._search.slope(self._here, self._aim, self._fine, on_votes=True)
        self._way = _KEPT * self._way + (_unit(up) if _leads(up) else self._search.direction(up))
        before = followed if self._followed is None else self._followed
        self._followed = _MIXED * before + (1 - _MIXED) * followed

    def step(self, length: float, radius: float, *, outwards: bool = False) -> None:
        """Go on, within a radius or, outwards, up to it."""
        self._here = _within(self._image, self._here + length * _unit(self._way), radius, outwards=outwards)

    @property
    def followed(self) -> float:
        """How far copies followed the aim lately: as far as the move that they follow least."""
        return 0.0 if self._followed is None else float(self._followed.min())

    @property
    def place(self) -> Place:
        """Where it is."""
        return Place(self._aim, self._here, self.followed)


def _leads(up: Tensor) -> bool:
    return bool(up.isfinite().all() and up.norm() > 0)


def _unit(change: Tensor) -> Tensor:
    length: Tensor = change.norm()
    return change / length.clamp_min(1e-30)


def _within(image: Tensor, moved: Tensor, radius: float, *, outwards: bool = False) -> Tensor:
    """An image within a radius of another or, outwards, at the radius; its pixels in [0, 1]."""
    change = moved - image
    length = change.norm().clamp_min(1e-30 if outwards else radius)
    return torch.clamp(image + change * (radius / length), 0, 1)
