"""Rules `paper` and `nosplit`: certify the routing, certify the class, take the smaller radius (Theorem 2)."""

import numpy as np

from dualrs.certificates.certificate import B, Radii
from dualrs.certificates.selection import TwoStages, answer_radius, candidate_and_class
from dualrs.errors import BadSetting
from dualrs.theory.budget import ErrorBudget, StageLevels


def paper(votes: TwoStages[B], alpha: float, split: tuple[float, float] = (1, 1)) -> Radii[B]:
    """The rule of the paper: alpha is shared between class and router as ``split``, radius = min of the two.

    Guarantee: with probability >= 1 - alpha over the votes, no x closer than the radius has G(x) other than
    the prediction; union bound over the two stages.
    Assumes: as `cohen`, for each stage; any dependence between the stages is allowed.
    """
    levels = ErrorBudget(alpha).split(*split)
    if min(levels) <= 0:
        raise BadSetting(
            f"each stage of rule paper needs a positive share of alpha, got the split {split[0]}:{split[1]}"
        )
    return _smaller_of_two(votes, levels)


def nosplit(votes: TwoStages[B], alpha: float) -> Radii[B]:
    """As `paper` with both stages at the full alpha.

    Guarantee: with probability >= 1 - alpha over the votes, no x closer than the radius has G(x) other than
    the prediction. Given the selection votes, the radius at the true probabilities is one fixed number with one
    fixed bottleneck; to claim more, the bound of that very stage has to fail, which happens with probability
    <= alpha.
    Assumes: as `cohen`, for each stage; any dependence between the stages is allowed.
    """
    return _smaller_of_two(votes, ErrorBudget(alpha).nosplit())


def _smaller_of_two(votes: TwoStages[B], levels: StageLevels) -> Radii[B]:
    chosen, y = candidate_and_class(votes)
    rows = np.arange(len(votes))
    sigma_c = np.array(votes.sigmas)[chosen]
    r_class = np.stack([answer_radius(e, y, levels.classifier) for e in votes.experts])
    return Radii(
        y,
        sigma_c=sigma_c,
        r_c=r_class[chosen, rows],
        r_sigma=answer_radius(votes.router, chosen, levels.router),
        rival=np.full(len(votes), np.nan),
        evidence=(votes.router, *votes.experts),
    )
