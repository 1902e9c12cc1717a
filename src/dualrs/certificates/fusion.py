"""Rule `fusion`: a change of routing costs radius only where the other expert may answer another class.

Let r_i be a radius within which expert i answers y (the class of the chosen expert A), and E_j one within
which the router cannot answer j. Closer than ``min(r_A, min over j != A of max(r_j, E_j))`` the two-stage
prediction is y: whatever the router answers there is A or some j, and its expert says y. That holds as well where an
expert, or the router, sees no noise and states its radius; then that is r_i if its class is y, else minus infinity.
"""

import numpy as np
from numpy.typing import NDArray

from dualrs.certificates.certificate import B, Radii
from dualrs.certificates.selection import Indices, TwoStages, answer_radius, candidate_and_class
from dualrs.errors import UnusableVotes
from dualrs.theory.bounds import Floats
from dualrs.theory.budget import ErrorBudget, FusionLevels, pair_level
from dualrs.theory.radius import exclusion_radius, gaussian_radius, pair_radius
from dualrs.votes import Bounds, Stated


def fusion(votes: TwoStages[B], alpha: float, pair: bool = False) -> Radii[B]:
    """Certify G(x) = y through agreement of the experts or exclusion by the router, candidate by candidate.

    Guarantee: with probability >= 1 - alpha over the votes, no x closer than the radius has G(x) other than
    the prediction. Given the selection votes the radius at the true probabilities has one fixed bottleneck,
    r_A or one j; claiming more needs a failure of r_A (alpha), or of one of r_j (alpha/2), L_A, U_j (alpha/4
    each).
    Assumes: as `cohen`, for each stage; any dependence between stages and experts is allowed. An expert
    without votes counts as never agreeing, so it may be left unsampled for any reason. ``pair`` replaces the
    form of every r_i by the pair bound; it must be fixed before the estimation votes, as the rule itself.
    """
    chosen, y = candidate_and_class(votes)
    levels = ErrorBudget(alpha).fusion(len(votes.experts))
    rows = np.arange(len(votes))
    is_chosen = np.arange(len(votes.experts))[:, None] == chosen  # (candidates, inputs)

    agreement = np.stack(
        [
            _agreement_radius(e, y, np.where(is_chosen[i], levels.chosen, levels.other), pair)
            for i, e in enumerate(votes.experts)
        ]
    )
    exclusion = _exclusion_radii(votes.router, chosen, levels)
    per_rival = np.where(is_chosen, np.inf, np.maximum(agreement, exclusion))
    weakest = per_rival.argmin(axis=0)
    return Radii(
        y,
        sigma_c=np.array(votes.sigmas)[chosen],
        r_c=agreement[chosen, rows],
        r_sigma=per_rival[weakest, rows],
        rival=np.array(votes.sigmas)[weakest],
        evidence=(votes.router, *votes.experts),
    )


def helpful_experts(votes: TwoStages[Bounds], alpha: float, pair: bool = False) -> NDArray[np.bool_]:
    """Which experts, not sampled so far, could raise the radius of `fusion`; shape (candidates, inputs).

    Expert j matters where E_j < r_A and r_A > 0. Leaving the others out is sound and loses nothing.
    """
    unsampled = np.stack([e.sampled == 0 for e in votes.experts])
    if not unsampled.any():
        return unsampled
    chosen, y = candidate_and_class(votes)
    levels = ErrorBudget(alpha).fusion(len(votes.experts))
    exclusion = _exclusion_radii(votes.router, chosen, levels)
    agreement = np.stack([_agreement_radius(e, y, np.asarray(levels.chosen), pair) for e in votes.experts])
    r_chosen = agreement[chosen, np.arange(len(votes))]
    return np.asarray(unsampled & (exclusion < r_chosen) & (r_chosen > 0))


def _agreement_radius(expert: Bounds, y: Indices, level: Floats, pair: bool) -> Floats:
    """A radius within which this expert answers ``y``; -inf where it has no votes."""
    if not pair or isinstance(expert, Stated):
        return answer_radius(expert, y, level)
    if expert.answers < 3:
        raise UnusableVotes("the pair bound needs more than two classes; use rule fusion")
    each = pair_level(level)
    return pair_radius(expert.sigma, expert.lower(y, each), expert.upper_of_others(y, each))


def _exclusion_radii(router: Bounds, chosen: Indices, levels: FusionLevels) -> Floats:
    """E_j: a radius within which the router cannot answer j; shape (candidates, inputs)."""
    candidates = router.answers
    if isinstance(router, Stated):  # within its radius it answers the chosen one alone
        return np.broadcast_to(router.stays(chosen), (candidates, len(router)))
    p_chosen = router.lower(chosen, levels.router_lower)
    if candidates == 2:  # the rival is excluded as long as the chosen one keeps its majority
        return np.broadcast_to(gaussian_radius(router.sigma, p_chosen), (2, len(router)))
    rivals = (np.full(len(router), j) for j in range(candidates))
    q_rival = np.stack([router.upper(j, levels.router_upper) for j in rivals])
    return np.maximum(pair_radius(router.sigma, p_chosen, q_rival), exclusion_radius(router.sigma, q_rival, candidates))
