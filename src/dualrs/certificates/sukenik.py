"""Rule `sukenik`: a sigma for every input, which changes slowly from one to the next (Sukenik et al. 2022).

Sigma goes by the level of the input, a whole number that a known function of the image gives without noise. From one
level to the next but k an image has to move by k steps, because the function behind it moves by no more than the image.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dualrs.certificates.certificate import Radii
from dualrs.certificates.selection import top
from dualrs.errors import BadSetting
from dualrs.theory.budget import ErrorBudget
from dualrs.theory.moving import moving_radius
from dualrs.theory.radius import gaussian_radius
from dualrs.votes import Votes

ROUNDING = 1e-9  # of the function behind a level, and far more than doubles err by


class Levelled(Protocol):
    """Class votes of each input under the sigma of its level."""

    @property
    def classifier(self) -> Votes:
        """Class votes, every row under its own sigma."""

    @property
    def level(self) -> NDArray[np.int64]:
        """The level of each input, from 0 on; shape (inputs,)."""

    @property
    def by_level(self) -> tuple[float, ...]:
        """The sigma of each level."""

    @property
    def step(self) -> float:
        """How far an image has to move, at least, from the lower end of a level to the next; 0 if that is not known."""

    @property
    def dimensions(self) -> int:
        """How many numbers an image is."""


def sukenik(votes: Levelled, alpha: float) -> Radii[Votes]:
    """Certify the class that the selection votes chose, wherever sigma may be another.

    A level that is k away is no closer than k - 1 steps, as the input may be at the end of its own.

    Guarantee: with probability >= 1 - alpha over the votes, every x closer than the radius gives the prediction more
    than half of the mass under the sigma of x's own level: one bound, at the whole alpha, and arithmetic
    (`moving_radius`).
    Assumes: as `cohen`; a level that moves by no more than the image does.
    """
    if votes.step <= 0:
        raise BadSetting("rule sukenik needs a sigma of which it is known how fast it changes, as one by neighbours")
    y = top(votes.classifier)
    p_lower = votes.classifier.lower(y, ErrorBudget(alpha).alpha)
    by_level = np.array(votes.by_level)
    sigma_c = by_level[votes.level]
    moved = moving_radius(
        by_level, votes.level, p_lower, lambda away: (away - 1) * votes.step - ROUNDING, votes.dimensions
    )
    ended = moved.level >= 0
    return Radii(
        y,
        sigma_c=sigma_c,
        r_c=gaussian_radius(sigma_c, p_lower),
        r_sigma=np.where(ended, moved.radius, np.inf),
        rival=np.where(ended, by_level[moved.level], np.nan),
        evidence=(votes.classifier,),
    )
