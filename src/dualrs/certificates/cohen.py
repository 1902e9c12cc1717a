"""Rule `cohen`: one model at one sigma (Cohen et al. 2019, CERTIFY)."""

import numpy as np

from dualrs.certificates.certificate import B, Radii
from dualrs.certificates.selection import top
from dualrs.theory.budget import ErrorBudget
from dualrs.theory.radius import gaussian_radius


def cohen(votes: B, alpha: float) -> Radii[B]:
    """Certify the class that the selection votes chose: ``sigma * Phi^-1(L(n_y, n, alpha))``.

    Guarantee: with probability >= 1 - alpha over the votes, no x closer than the radius to the input has a
    smoothed class other than the prediction.
    Assumes: votes on independent noise; estimation votes independent of selection votes; the plan fixed beforehand.
    """
    level = ErrorBudget(alpha).alpha
    y = top(votes)
    p_lower = votes.lower(y, level)
    return Radii(
        y,
        sigma_c=np.full(len(votes), votes.sigma),
        r_c=gaussian_radius(votes.sigma, p_lower),
        r_sigma=np.full(len(votes), np.inf),  # no router, nothing to lose
        rival=np.full(len(votes), np.nan),
        evidence=(votes,),
    )
