"""One-sided Clopper-Pearson bounds on a binomial probability, vectorised.

Enters: counts ``k`` out of ``n`` votes and the level of the bound. Leaves: a bound on the probability
behind the counts. These are the exact bounds of Section 3 (CERTIFY) of the paper, after Cohen et al. 2019.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainccinv, betaincinv

Floats = NDArray[np.float64]


def lower(k: ArrayLike, n: ArrayLike, level: ArrayLike) -> Floats:
    """Lower confidence bound ``L(k, n, level)`` on a probability of which ``k`` of ``n`` votes were seen.

    Guarantee: for k ~ Binomial(n, p), P[L(k, n, level) > p] <= level, over the votes, for every p.
    Assumes: n fixed before the votes; independent votes. No vote at all bounds by 0.
    """
    k, n = np.asarray(k, dtype=np.float64), np.asarray(n, dtype=np.float64)
    return np.where(k > 0, betaincinv(np.maximum(k, 1), n - k + 1, level), 0.0)


def upper(k: ArrayLike, n: ArrayLike, level: ArrayLike) -> Floats:
    """Upper confidence bound ``U(k, n, level)`` on a probability of which ``k`` of ``n`` votes were seen.

    Guarantee: for k ~ Binomial(n, p), P[U(k, n, level) < p] <= level, over the votes, for every p.
    Assumes: n fixed before the votes; independent votes. No vote at all bounds by 1.
    """
    k, n = np.asarray(k, dtype=np.float64), np.asarray(n, dtype=np.float64)
    return np.where(k < n, betainccinv(k + 1, np.maximum(n - k, 1), level), 1.0)
