"""Bootstrap: how far a difference in certified accuracy is a matter of which inputs were drawn.

Enters: which inputs each of two methods gets right. Leaves: an interval for the difference of their fractions. It is
about the choice of test inputs; the noise of the votes is the certificate's business.
"""

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 10_000
COVERAGE = 0.95
SEED = 0

Hits = NDArray[np.bool_]


def paired_intervals(ours: Hits, theirs: Hits) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower and upper ends of percentile intervals for mean(ours) - mean(theirs) over the inputs, row by row.

    Rows are radii, and each is drawn by itself, so that its interval is the same whatever the others are.
    """
    ends = [mean_interval(more) for more in ours.astype(np.float64) - theirs]
    low, high = np.array(ends, dtype=np.float64).reshape(-1, 2).T
    return low, high


def mean_interval(values: NDArray[np.float64]) -> tuple[float, float]:
    """The ends of a percentile interval for the mean of values, one for each input; of differences, a paired one.

    A resampled mean depends only on how many inputs of each kind, those of one value, were drawn, so these counts are
    drawn: the same law as drawing inputs one by one.
    """
    kinds, counts = np.unique(values, return_counts=True)
    drawn = np.random.default_rng(SEED).multinomial(len(values), counts / len(values), size=RESAMPLES)
    tail = (1 - COVERAGE) / 2
    low, high = np.quantile(drawn @ kinds / len(values), [tail, 1 - tail])
    return float(low), float(high)
