"""Rule `multiscale`: a cascade of smoothed classifiers, the noisiest first (Jeong and Shin 2023), with sound levels.

The cascade answers the first class, sigma descending, that has more than half of the votes at its sigma; if there is
none, it abstains. A stage that was passed costs radius: closer than the answer of a later stage holds, no other class
may get its half there. docs/guarantees.md has the argument.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dualrs.certificates.certificate import STAGE, Outcome, Radii
from dualrs.certificates.selection import Indices, demand_one_look
from dualrs.errors import UnusableVotes
from dualrs.theory.bounds import Floats
from dualrs.theory.budget import ErrorBudget, StageBounds
from dualrs.theory.radius import gaussian_radius
from dualrs.votes import Votes


def multiscale(votes: Sequence[Votes], alpha: float) -> Radii[Votes]:
    """Certify the cascade over these sigmas, in whatever order they are given; ``sigma_c`` is where it stopped.

    With lo, hi the bounds of a stage's selected class: lo > 1/2 predicts, hi < 1/2 goes down, else abstains. Radius
    = min(own radius, over earlier stages j of -sigma_j * Phi^-1(U_j)), U_j for the largest count of another class.

    Guarantee: with probability >= 1 - alpha over the votes, no x closer than the radius has another answer of the
    cascade. Every one-sided bound is at alpha/2, whatever the number of stages and classes.
    Assumes: as `cohen`, for each stage; noise independent between stages, as that of two sigmas is (its address has
    the sigma in it). Stages that an input does not reach may be left unsampled. n fixed beforehand: where a stage may
    stop early, being passed no longer makes its false answers rare, and the argument for alpha/2 does not hold.
    """
    demand_one_look("multiscale", *votes)
    stages, levels = descending(votes), ErrorBudget(alpha).multiscale()
    stop = descend(stages, [levels] * len(stages))
    y = classes_at(stages, stop)
    reach = [-gaussian_radius(v.sigma, v.upper_of_others(y, levels.upper)) for v in stages]
    return conclude(stages, stop, levels, reach)


def descending(votes: Sequence[Votes]) -> list[Votes]:
    """The stages of a cascade: sigma descending."""
    if not votes:
        raise UnusableVotes("a cascade needs votes at one sigma at least")
    return sorted(votes, key=lambda v: -v.sigma)


def descend(stages: Sequence[Votes], levels: Sequence[StageBounds]) -> Indices:
    """The stage at which the cascade stops for each input: the first whose upper bound is not below 1/2, or the last.

    Whether it predicts there is for the lower bound to say.
    """
    stop = np.full(len(stages[0]), len(stages) - 1, dtype=np.int64)
    going = np.ones(len(stop), dtype=np.bool_)
    for number, (stage, level) in enumerate(zip(stages, levels, strict=True)):
        missing = going & ((stage.selection.sum(axis=1) == 0) | (stage.sampled == 0))
        if missing.any():
            row = int(np.flatnonzero(missing)[0])
            raise UnusableVotes(f"input {row} has no votes at sigma {stage.sigma:g}, which the cascade reaches")
        down = passed(stage, level.upper)
        stop[going & ~down] = number
        going &= down
    return stop


def passed(stage: Votes, level: Floats) -> NDArray[np.bool_]:
    """Which inputs a stage lets down to the next: its selected class has no majority; shape (inputs,)."""
    return np.asarray(stage.upper(np.asarray(stage.selection.argmax(axis=1)), level) < 0.5)


def classes_at(stages: Sequence[Votes], stop: Indices) -> Indices:
    """The class that the selection votes of each input's last stage chose."""
    return np.asarray(np.stack([v.selection.argmax(axis=1) for v in stages])[stop, np.arange(len(stop))])


def conclude(stages: Sequence[Votes], stop: Indices, levels: StageBounds, reach: Sequence[Floats]) -> Radii[Votes]:
    """Radii from where the cascade stopped and how far each stage, if it was passed, lets the answer reach."""
    rows, y = np.arange(len(stop)), classes_at(stages, stop)
    own = np.stack([gaussian_radius(v.sigma, v.lower(y, levels.lower)) for v in stages])
    number = np.arange(len(stages))[:, None]
    earlier = np.where(number < stop, np.stack(reach), np.inf)  # (stages, inputs)
    weakest = earlier.argmin(axis=0)
    sigmas = np.array([v.sigma for v in stages])
    return Radii(
        y,
        sigma_c=sigmas[stop],
        r_c=own[stop, rows],
        r_sigma=earlier[weakest, rows],
        rival=sigmas[weakest],
        evidence=stages,
        rivals=STAGE,
        doubt=Outcome.STAGE_UNDECIDED,
    )
