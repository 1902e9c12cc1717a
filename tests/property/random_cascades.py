"""Large random sets of counts of a cascade: as `random_votes`, with votes that pass and thresholds."""

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st
from random_votes import ROWS, _shares

from dualrs.certificates import Certificates
from dualrs.certificates.cascade import cascade, chosen_class
from dualrs.votes import SamplingPlan, Votes


@dataclass(frozen=True)
class Cascaded:
    """Stages on many inputs, the noisiest first, their thresholds, alpha, and randomness for what is done to them."""

    stages: tuple[Votes, ...]
    thresholds: tuple[float | None, ...]
    alpha: float
    rng: np.random.Generator

    def certify(self, stages=None, alpha=None):
        return Certificates.conclude(cascade(stages or self.stages, alpha or self.alpha, self.thresholds))

    @property
    def label(self):
        return chosen_class(self.stages, self.thresholds)


@st.composite
def cascades(draw, passing=True, limits=True, fewest=3):
    """Random stages, which agree with each other on part of the inputs; some votes pass at some stages."""
    k, c = draw(st.integers(2, 5)), draw(st.integers(fewest, 8))
    n0, n = draw(st.sampled_from([1, 10, 100])), draw(st.sampled_from([15, 100, 1000, 100_000]))
    plan, alpha = SamplingPlan(n0, n), draw(st.sampled_from([1e-6, 0.001, 0.05, 0.15]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    common, stages = _shares(rng, c), []
    for sigma in -np.sort(-rng.uniform(0.1, 1.0, size=k)):
        p = np.where(rng.random((ROWS, 1)) < 0.6, common, _shares(rng, c))
        passes = passing and draw(st.booleans())
        if passes:
            share = rng.random((ROWS, 1)) * 0.8
            p = np.hstack([p * (1 - share), share])
        stages.append(Votes(float(sigma), rng.multinomial(n0, p), rng.multinomial(n, p), plan, passes=passes))
    some = st.sampled_from([None, 0.5, 0.6, 0.75, 0.9]) if limits else st.none()
    return Cascaded(tuple(stages), tuple(draw(some) for _ in range(k)), alpha, rng)


def unsampled(votes, gone):
    """Without the estimation votes of some inputs."""
    return replace(votes, estimation=votes.estimation * ~gone[:, None])
