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
    """Lower and upper ends of percentile intervals for mean(ours) - mean(theirs) over the last axis, the inputs.

    Inputs are drawn again in pairs. A resampled difference depends only on how many inputs of each kind (ours alone,
    theirs alone, no difference) were drawn, so these counts are drawn: the same law as drawing inputs one by one.
    """
    inputs = ours.shape[-1]
    better, worse = (ours & ~theirs).sum(axis=-1), (theirs & ~ours).sum(axis=-1)
    kinds = np.stack([better, worse, inputs - better - worse], axis=-1) / inputs
    drawn = np.random.default_rng(SEED).multinomial(inputs, kinds, size=(RESAMPLES, *better.shape))
    tail = (1 - COVERAGE) / 2
    low, high = np.quantile((drawn[..., 0] - drawn[..., 1]) / inputs, [tail, 1 - tail], axis=0)
    return low, high


def mean_interval(values: NDArray[np.float64]) -> tuple[float, float]:
    """The ends of a percentile interval for the mean of values, one for each input; of differences, a paired one.

    As above: only how many inputs of each kind are drawn matters, and here a kind is a value.
    """
    kinds, counts = np.unique(values, return_counts=True)
    drawn = np.random.default_rng(SEED).multinomial(len(values), counts / len(values), size=RESAMPLES)
    tail = (1 - COVERAGE) / 2
    low, high = np.quantile(drawn @ kinds / len(values), [tail, 1 - tail])
    return float(low), float(high)
