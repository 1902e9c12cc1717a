"""Targets: how far the radius of an input is worth pursuing. Any target is sound, as stopping spends no alpha."""

import math
from dataclasses import dataclass
from typing import Protocol

from dualrs.errors import BadSetting
from dualrs.theory.radius import RADII


class Target(Protocol):
    """What a radius is wanted for. ``str`` of it is recorded with the run, because it decides votes."""

    def goal(self, have: float, can: float) -> float | None:
        """The radius to go for where one is certified and another is the most that more votes may show.

        None where more votes are not worth while.
        """


@dataclass(frozen=True)
class Grid:
    """Certified accuracy at some radii: nothing between two of them matters. Radius 0 wants any radius at all."""

    radii: tuple[float, ...] = RADII

    def __post_init__(self) -> None:
        radii = tuple(
            sorted({float(r) for r in self.radii})
        )  # one spelling, as the record decides what is the same run
        if not radii or not all(0 <= r < math.inf for r in radii):
            raise BadSetting(f"a target needs radii, none of them negative or infinite; got {list(self.radii)}")
        object.__setattr__(self, "radii", radii)

    def goal(self, have: float, can: float) -> float | None:
        """The largest radius of the grid that can be reached, unless it is certified already."""
        within = [r for r in self.radii if reaches(can, r)]
        return max(within) if within and not reaches(have, max(within)) else None

    def __str__(self) -> str:
        return f"radii {','.join(map(repr, self.radii))}"


@dataclass(frozen=True)
class Tolerance:
    """The radius itself, up to what is not worth more votes."""

    tolerance: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "tolerance", float(self.tolerance))
        if not 0 < self.tolerance < math.inf:
            raise BadSetting(f"the tolerance on a radius must be positive, got {self.tolerance}")

    def goal(self, have: float, can: float) -> float | None:
        """A radius within the tolerance of what can be reached."""
        return max(can - self.tolerance, 0.0) if can - max(have, 0.0) > self.tolerance else None

    def __str__(self) -> str:
        return f"tolerance {self.tolerance!r}"


def reaches(radius: float, goal: float) -> bool:
    """Whether a radius certifies at another one: a certificate is positive."""
    return radius > 0 and radius >= goal


def read_target(text: str) -> Target:
    """A target from its recorded form."""
    kind, _, numbers = text.partition(" ")
    no_target = BadSetting(f"{text!r} is no target; one is 'radii 0,0.25,0.5' or 'tolerance 0.01'")
    try:
        values = [float(number) for number in numbers.split(",")]
    except ValueError as bad:
        raise no_target from bad
    if kind == "radii":
        return Grid(tuple(values))
    if kind == "tolerance" and len(values) == 1:
        return Tolerance(values[0])
    raise no_target
