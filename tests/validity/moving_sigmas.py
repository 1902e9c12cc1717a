"""Classifiers under a sigma that moves with the input, whose true radius is known.

Sigma goes by the level of g(x) = g(0) + t or g(0) - t, where t is the coordinate of x along a line: a function that
moves by no more than the image. The base classifier answers OTHER in a ball about a point of that line, or outside of
it: the very event that gains most of all, of equal probability at the input, on the way to some point of the line. So
G's probabilities on the line are non-central chi-squares, taken from scipy, and the nearest point of the line at which
G changes is a true counterexample; the problem is as hard as there are any.

Votes are binomial, as the answers to independent noise are.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from half_spaces import OTHER, N, Y
from scipy.stats import ncx2

from dualrs.schemes import LevelledVotes
from dualrs.theory.moving import moving_radius
from dualrs.votes import SamplingPlan, Votes

CLASSES = 3
PLAN = SamplingPlan(100, N)
END = 1e-7  # how far the input is from the end of its level


@dataclass(frozen=True)
class Moving:
    """A probability of Y at the input, and a sigma that rises (or falls) at a rate along the line."""

    p: float
    rate: float
    rises: bool
    step: float = 0.04
    dimensions: int = 3
    sigma: float = 0.5
    label: int = Y

    levels = 401
    level = 200  # of the input

    @cached_property
    def by_level(self):
        return tuple(self.sigma * np.exp(self.rate * self.step * (np.arange(self.levels) - self.level)))

    def level_at(self, t):
        """The input lies at the end of its level, from where others are nearest."""
        end = self.step * (1 - END) if self.rises else self.step * END
        moved = (end + (t if self.rises else -t)) / self.step
        return np.clip(self.level + np.floor(moved).astype(int), 0, self.levels - 1)

    @cached_property
    def target(self):
        """The point, and the sigma there, that the classifier is built against: where the bound from p ends."""
        sigmas = np.array(self.by_level)
        sigmas, place = (sigmas[self.level :], 0) if self.rises else (sigmas[: self.level + 1], self.level)
        found = moving_radius(
            sigmas, np.array([place]), np.array([self.p]), lambda away: (away - 1) * self.step, self.dimensions
        )
        return float(found.radius[0]), float(sigmas[found.level[0]])

    def probability(self, t):
        """Of Y at the points t of the line."""
        distance, other = self.target
        centre = distance * self.sigma**2 / (self.sigma**2 - other**2)
        share = 1 - self.p if other < self.sigma else self.p  # of the ball, at the input
        square = self.sigma**2 * ncx2.ppf(share, self.dimensions, (centre / self.sigma) ** 2)
        here = np.array(self.by_level)[self.level_at(t)]
        ball = ncx2.cdf(square / here**2, self.dimensions, ((centre - t) / here) ** 2)
        return 1 - ball if other < self.sigma else ball

    @cached_property
    def radius(self):
        """The nearest point of the line at which Y has no majority."""
        t = np.linspace(-2, 2, 400_001)
        lost = np.abs(t[self.probability(t) <= 0.5])
        return float(lost.min())

    def draw(self, trials, seed):
        rng = np.random.default_rng(seed)

        def counts(votes):
            made = np.zeros((trials, CLASSES), dtype=np.int64)
            made[:, Y] = rng.binomial(votes, self.p, trials)
            made[:, OTHER] = votes - made[:, Y]
            return made

        classifier = Votes(self.sigma, counts(PLAN.n0), counts(PLAN.n), PLAN)
        levels = np.zeros((trials, self.levels), dtype=np.int64)
        levels[:, self.level] = 1
        return LevelledVotes(levels, classifier, self.by_level, self.step, self.dimensions)
