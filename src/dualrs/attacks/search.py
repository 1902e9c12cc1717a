"""Searching around an image for one that is answered otherwise: uphill by gradients, or walking on votes.

Every look sees fresh noisy copies. How many of them follow the aim is seen along with the gradient, so that a search
knows how near it is without a vote of its own.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Generator, Tensor

from dualrs.attacks.field import Field, Slope
from dualrs.attacks.linear import shortest
from dualrs.errors import BadSetting
from dualrs.schemes.aim import Aim, Floats

SHOWN = 0.57  # share of the votes that must follow every move of an aim: about what two thousand can show
PROMISING = 0.35  # share of a place's copies that must follow its aim for more to be spent on it
WORTH_A_VERDICT = 0.4  # share of the votes inside a radius
FINE = 4  # times the copies, in the end

_KEPT = 0.5  # of what earlier steps saw, so that its noise averages out
_SURE = 0.8  # share at which a search inside a radius need not go on
_FIRST_STEPS = 4  # that long ones are tried there before short ones
_HOPELESS = 0.05  # share below which, half-way through these, it is given up
_CLIPPED = 0.02  # share that few copies can tell from none
_AT_MOST = 2.0  # times its distance by which a search for a border may move away, or come closer, at once
_LAST_LOOKS = 3  # of a search for a border, with more copies


@dataclass(frozen=True)
class Effort:
    """How hard an attack tries, at most.

    A search inside a radius takes ``steps`` of 2 radius / steps, with ``copies`` noisy copies each and in the end four
    times as many, from ``restarts`` places; one for a border takes a quarter of them. Where gradients vanish, each step
    is led by ``walk_votes`` hard votes. ``votes`` are those by which the attack looks whether an answer changed, and
    ``verdict`` those by which it is judged.
    """

    steps: int = 20
    restarts: int = 2
    copies: int = 32
    walk_votes: int = 1_024
    votes: int = 256
    verdict: int = 2_048

    def __post_init__(self) -> None:
        if min(vars(self).values()) < 1:
            raise BadSetting(f"every number of an attack's effort must be at least 1, got {self}")


@dataclass(frozen=True, eq=False)
class Place:
    """Where a search came to: an image, and what its noisy copies said of the aim there.

    ``followed`` is how far they follow it, ``shares`` those of all answers at each move, and ``rise`` by how much the
    logarithm of the odds grows for each unit of the way from the attacked image.
    """

    aim: Aim
    image: Tensor
    followed: float
    shares: list[Floats]
    rise: float = 0.0

    def towards(self, rank: int) -> Aim | None:
        """The aim with each move aimed at the likeliest of its classes here, the last move at the one of a rank.

        None if there is no such class.
        """
        open_moves = [m for m in self.aim.moves if m.ways and m.aimed is None]
        if rank and (not open_moves or rank >= len(open_moves[-1].ways)):
            return None
        moves = [
            move._replace(aimed=move.strongest(shares)[rank if move is open_moves[-1] else 0])
            if move in open_moves
            else move
            for move, shares in zip(self.aim.moves, self.shares, strict=True)
        ]
        return self.aim._replace(moves=tuple(moves))


class Search:
    """Searches with a field's networks."""

    def __init__(self, field: Field, effort: Effort, generator: Generator) -> None:
        self._field, self._effort, self._generator = field, effort, generator

    def inside(self, image: Tensor, aim: Aim, radius: float, *, at_random: bool = False) -> Place:
        """A place within a radius near an aim; the search begins at the image, or away from it at random.

        A few long steps tell whether anything may come of it, and a quarter of the others whether it does; what is left
        then is left out if not.
        """
        start = _within(image, image + radius / 2 * self.direction(image), radius) if at_random else image
        path, steps = _Path(self, image, aim, start), self._effort.steps
        for number in range(_FIRST_STEPS + 1):
            path.look()
            if 2 * number >= _FIRST_STEPS and path.followed < _HOPELESS:
                return path.place
            if number < _FIRST_STEPS:
                path.step(2 * radius / _FIRST_STEPS, radius)
        if path.followed < PROMISING:
            return path.place
        for number in range(steps):
            path.step(2 * radius / steps, radius)
            path.look(FINE if 5 * number >= 4 * steps else 1)
            if path.followed > _SURE or (number == steps // 4 and path.followed < WORTH_A_VERDICT):
                break
        return path.place

    def border(
        self,
        image: Tensor,
        start: Place,
        radius: float,
        between: tuple[float, float],
        *,
        limit: float = math.inf,
        fine: bool = False,
    ) -> Place | None:
        """The nearest place found where an aim is reached, between two distances, from one at a radius on.

        None if it seems to be beyond a ``limit``, or if nothing leads to it.

        Each look tells the odds of the moves and how they grow. Taken to be straight, their borders have a nearest
        common point, to which the next look goes (Hasofer and Lind 1974, Rackwitz and Fiessler 1978). Smoothing makes
        borders so straight that few looks do. A fine search is for a place at the border: its looks have more copies.
        """
        path, change = _Path(self, image, start.aim, start.image), None
        for number in range(_LAST_LOOKS if fine else max(2, self._effort.steps // 4)):
            path.look(FINE if fine else 1)
            change = path.straight()
            there = radius * _AT_MOST if change is None else float(change.norm())
            if number and there > limit:
                return None
            radius = float(np.clip(np.clip(there, radius / _AT_MOST, radius * _AT_MOST), *between))
            path.go(change if there > 0 and change is not None else path.way, radius)
        return None if change is None else path.place

    def slope(self, here: Tensor, aim: Aim, times: int, *, on_votes: bool) -> Slope:
        """What is seen of an aim, by gradients of so many times the copies, or by votes alone."""
        if on_votes:
            return self._field.vote_slope(here, aim, self._effort.walk_votes)
        return self._field.slope(here, aim, times * self._effort.copies)

    def direction(self, like: Tensor) -> Tensor:
        """A random way, of length 1."""
        return _unit(torch.randn(like.shape, generator=self._generator).to(like))


class _Path:
    """A search under way: where it is, its way, and what it saw."""

    def __init__(self, search: Search, image: Tensor, aim: Aim, here: Tensor) -> None:
        self._search, self._image, self._aim, self._here = search, image, aim, here
        self._way = torch.zeros_like(image)
        self._seen: _Seen | None = None
        self._on_votes = False

    def look(self, times: int = 1) -> None:
        """See the way and the shares here; from where gradients vanish, it is walked on votes."""
        slope = self._search.slope(self._here, self._aim, times, on_votes=self._on_votes)
        if not self._on_votes and not _leads(slope.way):
            self._on_votes = True
            slope = self._search.slope(self._here, self._aim, times, on_votes=True)
        up = slope.way
        self._way = _KEPT * self._way + (_unit(up) if _leads(up) else self._search.direction(up))
        seen = _Seen.of(slope, self._here - self._image)
        self._seen = seen if self._seen is None else self._seen.beside(seen)

    def step(self, length: float, radius: float) -> None:
        """Go on, within a radius."""
        self._here = _within(self._image, self._here + length * _unit(self._way), radius)

    def go(self, way: Tensor, radius: float) -> None:
        """To a distance from the image, by a way."""
        self._here = torch.clamp(self._image + radius * _unit(way), 0, 1)

    def straight(self) -> Tensor | None:
        """The shortest change that reaches the aim, if odds go on as they were seen to; None if none does.

        There is none where the odds of a move do not change, unless it is followed anyway.
        """
        assert self._seen is not None, "looked before"
        stuck = [not up.any() for up in self._seen.up]
        if np.min(self._seen.followed, where=stuck, initial=1.0) < 1 / 2:
            return None
        return shortest(self._seen.up, self._seen.missing)

    @property
    def way(self) -> Tensor:
        """Where it is going."""
        return self._way

    @property
    def followed(self) -> float:
        """How far copies followed the aim lately: as far as the move that they follow least."""
        return 0.0 if self._seen is None else float(self._seen.followed.min())

    @property
    def place(self) -> Place:
        """Where it is."""
        assert self._seen is not None, "looked before"
        along = _unit(self._here - self._image)
        rises = [float((up * along).sum()) for up in self._seen.up]
        return Place(self._aim, self._here, self.followed, self._seen.shares, rises[int(self._seen.followed.argmin())])


@dataclass(frozen=True, eq=False)
class _Seen:
    """What looks saw of each move, later ones with more weight: taken to be straight, its border is up . d = missing.

    Soft votes tell how the odds change and hard ones how large they are: borders of soft votes lie elsewhere.
    """

    up: list[Tensor]
    missing: Floats
    followed: Floats
    shares: list[Floats]

    @classmethod
    def of(cls, slope: Slope, change: Tensor) -> "_Seen":
        """One look, at a change of the image."""
        there = np.array([float((up * change).sum()) for up in slope.up])
        odds = [log_odds(share) for share in np.clip(slope.followed, _CLIPPED, 1 - _CLIPPED)]
        return cls(slope.up, there - odds, slope.followed, slope.shares)

    def beside(self, later: "_Seen") -> "_Seen":
        """With what a later look saw."""
        return replace(
            later,
            up=[_KEPT * a + (1 - _KEPT) * b for a, b in zip(self.up, later.up, strict=True)],
            missing=_KEPT * self.missing + (1 - _KEPT) * later.missing,
            followed=_KEPT * self.followed + (1 - _KEPT) * later.followed,
        )


def log_odds(share: float) -> float:
    """The logarithm of the odds of a share."""
    return math.log(share / (1 - share))


def _leads(up: Tensor) -> bool:
    return bool(up.isfinite().all() and up.norm() > 0)


def _unit(change: Tensor) -> Tensor:
    length: Tensor = change.norm()
    return change / length.clamp_min(1e-30)


def _within(image: Tensor, moved: Tensor, radius: float) -> Tensor:
    """An image within a radius of another, its pixels in [0, 1]."""
    change = moved - image
    return torch.clamp(image + change * (radius / change.norm().clamp_min(radius)), 0, 1)
