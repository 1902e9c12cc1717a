"""Large random sets of counts: hypothesis draws the shape and a seed, numpy draws thousands of inputs."""

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from dualrs.schemes import DualVotes
from dualrs.votes import SamplingPlan, Votes

ROWS = 1000
TWO_TO_SIX, THREE_TO_TEN = st.integers(2, 6), st.integers(3, 10)
RULES = ("paper", "paper-1:4", "nosplit", "fusion", "fusion-pair")

# An example is a thousand inputs, so a few examples are plenty, and none has a deadline.
crowded = settings(max_examples=20, deadline=None)


@dataclass(frozen=True)
class Crowd:
    """Votes of two stages on many inputs, the alpha to certify them at, and randomness for what is done to them."""

    votes: DualVotes
    alpha: float
    rng: np.random.Generator

    @property
    def rows(self):
        return np.arange(len(self.votes))

    @property
    def chosen(self):
        """Candidate A of each input, from the selection votes, ties by index."""
        return self.votes.router.selection.argmax(axis=1)

    @property
    def label(self):
        """Class y of each input."""
        return np.stack([e.selection for e in self.votes.experts])[self.chosen, self.rows].argmax(axis=1)


def _shares(rng, answers):
    """Probabilities of the answers, (rows, answers): from nearly unanimous to nearly uniform."""
    sharpness = 10 ** rng.uniform(-2, 1.5, size=(ROWS, 1))
    weight = rng.standard_gamma(np.broadcast_to(sharpness, (ROWS, answers))) + 1e-12
    return weight / weight.sum(axis=1, keepdims=True)


@st.composite
def crowds(draw, candidates=TWO_TO_SIX, classes=THREE_TO_TEN):
    """Random votes of a router and its experts, which agree with each other on part of the inputs."""
    k, c = draw(candidates), draw(classes)
    plan = SamplingPlan(n0=draw(st.sampled_from([1, 10, 100])), n=draw(st.sampled_from([1, 2, 15, 100, 1000, 100_000])))
    alpha = draw(st.sampled_from([1e-6, 0.001, 0.05, 0.1, 0.5]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    common = _shares(rng, c)
    experts = []
    for sigma in np.sort(rng.uniform(0.1, 1.0, size=k)):
        p = np.where(rng.random((ROWS, 1)) < 0.6, common, _shares(rng, c))
        experts.append(Votes(float(sigma), rng.multinomial(plan.n0, p), rng.multinomial(plan.n, p), plan))
    q = _shares(rng, k)
    sigma_e = float(draw(st.sampled_from([1.0, 2.0])))
    router = Votes(sigma_e, rng.multinomial(plan.n0, q), rng.multinomial(plan.n, q), plan)
    return Crowd(DualVotes(router, tuple(experts)), alpha, rng)


def with_estimation(votes, estimation):
    """The same votes with other estimation counts."""
    return replace(votes, estimation=estimation)


def move(rng, votes, source, target):
    """Take some of the estimation votes for `source` away, input by input, and give them to `target`."""
    rows = np.arange(len(votes))
    counts = votes.estimation.copy()
    held = counts[rows, source]
    amount = np.where(rng.random(len(votes)) < 0.5, np.minimum(1, held), rng.integers(0, held + 1))
    np.subtract.at(counts, (rows, source), amount)
    np.add.at(counts, (rows, target), amount)
    return with_estimation(votes, counts)


def another(rng, answer, answers):
    """A random answer of each input other than the given one."""
    return (answer + rng.integers(1, answers, size=len(answer))) % answers
