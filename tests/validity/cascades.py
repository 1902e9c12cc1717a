"""Cascades whose true radius is known: every stage reads one coordinate t, as in half_spaces.py."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from half_spaces import EPSILON, FAR, OTHER, N, Steps, Y, always, edge, half_space
from scipy.special import ndtri

from dualrs.votes import SamplingPlan, Votes

PLAN = SamplingPlan(n0=100, n=N)
NOBODY = -1  # the answer of a cascade without any majority


@dataclass(frozen=True)
class Cascade:
    """Stages with their sigmas, descending, and the radius within which the cascade keeps its answer."""

    stages: tuple[Steps, ...]
    sigmas: tuple[float, ...]
    radius: float
    classes: int = 3
    plan: SamplingPlan = PLAN

    def predictor(self, t):
        """The first class with more than half, stage by stage, at exact probabilities."""
        t = np.atleast_1d(np.asarray(t, dtype=float))
        answer = np.full(len(t), NOBODY)
        for stage, sigma in zip(self.stages, self.sigmas, strict=True):
            p = stage.probabilities(t, sigma, self.classes)
            answer = np.where((answer == NOBODY) & (p.max(axis=1) > 0.5), p.argmax(axis=1), answer)
        return answer

    @cached_property
    def label(self):
        return int(self.predictor(0.0)[0])

    @lru_cache(maxsize=8)  # noqa: B019 - problems are few, small and live as long as the tests
    def draw(self, trials, seed):
        """Votes of every trial, noise of its own for each stage, sigma ascending as a ledger may have it."""
        rng = np.random.default_rng(seed)
        found = []
        for stage, sigma in zip(self.stages, self.sigmas, strict=True):
            counts = [stage.count(rng.standard_normal((trials, k)), sigma, self.classes) for k in (self.plan.n0, N)]
            found.append(Votes(sigma, *counts, self.plan))
        return tuple(reversed(found))


def own_boundary(level, k=190):
    """The second stage answers, and its own boundary is nearest; the first has no majority anywhere near."""
    cut = float(0.5 * ndtri(edge(k, level)))
    return Cascade((_thirds(2.0), half_space(cut, Y, OTHER), always(OTHER)), (2.0, 0.5, 0.25), cut)


def passed_stage(level, k=170):
    """The second stage answers; nearest is where another class gets the majority of the first, which was passed."""
    cut = float(ndtri(edge(k, level)))  # class OTHER beyond it, with the rest halved between the two others
    middle = float(ndtri(edge(k, level) / 2))
    return Cascade((Steps((middle, cut), (0, Y, OTHER)), half_space(FAR * 0.5, Y, OTHER)), (1.0, 0.5), cut)


def passed_third(level, k=170):
    """As `passed_stage`, with a stage between that is passed too and costs nothing."""
    first, last = passed_stage(level, k).stages
    return Cascade((first, _thirds(0.75), last), (1.0, 0.75, 0.5), passed_stage(level, k).radius)


def coin_toss():
    """The first stage has half and the least bit for Y, the rest shared; below it another class is certain.

    To predict Y at all is an error, and so is to go down and claim the other class: each at the level of one bound.
    """
    quarter = float(ndtri(0.75))
    return Cascade((Steps((EPSILON, quarter), (Y, OTHER, 0)), always(OTHER)), (1.0, 0.5), EPSILON)


def late_coin_toss():
    """A stage before the coin toss that is nearly one itself: it may stop with a class it should not name."""
    below = float(ndtri(0.5 - 1 / np.sqrt(N) / 2))  # one standard deviation of the share below one half
    first = Steps((below, float(ndtri(0.75))), (Y, OTHER, 0))
    return Cascade((first, *coin_toss().stages), (2.0, 1.0, 0.5), EPSILON)


def nobody():
    """No stage has a majority, by the least bit; the cascade abstains, and any claim is an error."""
    nearly = Steps((-EPSILON, float(ndtri(0.75))), (Y, OTHER, 0))
    return Cascade((nearly, nearly, nearly), (1.0, 0.5, 0.25), 0.0)


def _thirds(sigma):
    """A stage without a majority for a distance of 0.43 sigma."""
    third = float(sigma * ndtri(2 / 3))
    return Steps((-third, third), (0, Y, OTHER))
