"""Large random sets of counts that were gathered under looks: as `random_votes`, segment by segment."""

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st
from random_votes import ROWS, THREE_TO_TEN, TWO_TO_SIX
from random_votes import _shares as shares_of_answers

from dualrs.schemes import DualVotes
from dualrs.votes import SamplingPlan, Votes

LOOKS = st.sampled_from([(100, 200), (100, 200, 400, 800), (100, 300, 450), (100, 200, 400, 800, 1600, 2500)])


@dataclass(frozen=True)
class Crowd:
    """Votes of two stages on many inputs, each stream sampled to its last look; as in `random_votes`."""

    votes: DualVotes
    alpha: float
    rng: np.random.Generator

    @property
    def plan(self):
        return self.votes.router.plan

    def stopped(self):
        """The same votes, every stream of every input cut off at a random look, the first at least."""
        return DualVotes(self._cut(self.votes.router), tuple(map(self._cut, self.votes.experts)))

    def _cut(self, votes):
        return cut(votes, self.rng.integers(1, len(self.plan.looks) + 1, size=len(votes)))


def cut(votes, looks):
    """Votes up to a number of looks, one for each input."""
    reached = np.arange(len(votes.plan.looks)) < looks[:, None]
    segments = votes.segments * reached[:, :, None]
    return replace(votes, estimation=segments.sum(axis=1), segments=segments)


def drawn(rng, sigma, p, plan):
    """Votes of one model at the probabilities p (inputs, answers)."""
    sizes = np.diff(plan.looks, prepend=0)
    segments = np.stack([rng.multinomial(size, p) for size in sizes], axis=1)
    return Votes(sigma, rng.multinomial(plan.n0, p), segments.sum(axis=1), plan, segments)


@st.composite
def crowds_under_looks(draw, candidates=TWO_TO_SIX, classes=THREE_TO_TEN):
    """Random votes of a router and its experts, which agree with each other on part of the inputs."""
    k, c = draw(candidates), draw(classes)
    looks = draw(LOOKS)
    plan = SamplingPlan(draw(st.sampled_from([1, 10, 100])), looks[-1], looks)
    alpha = draw(st.sampled_from([1e-6, 0.001, 0.05, 0.1, 0.5]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    common = shares_of_answers(rng, c)
    experts = []
    for sigma in np.sort(rng.uniform(0.1, 1.0, size=k)):
        p = np.where(rng.random((ROWS, 1)) < 0.6, common, shares_of_answers(rng, c))
        experts.append(drawn(rng, float(sigma), p, plan))
    router = drawn(rng, float(draw(st.sampled_from([1.0, 2.0]))), shares_of_answers(rng, k), plan)
    return Crowd(DualVotes(router, tuple(experts)), alpha, rng)
