"""Cascades of two to five stages whose true radius is exact, for rule multiscale; every stage has noise of its own."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dualrs.theory.bounds import Floats
from dualrs.votes import SamplingPlan, Votes
from soak.edges import Spot
from soak.half_spaces import Steps, always, draw_alone, half_space, quantile
from soak.problems import EPSILON, FAR, OTHER, Y

NOBODY = -1  # the answer of a cascade without any majority
HALF = 0.5  # the share of alpha that every bound has


@dataclass(frozen=True)
class Cascade:
    """Stages with their sigmas, descending, and the radius within which the cascade keeps its answer."""

    stages: tuple[Steps, ...]
    sigmas: tuple[float, ...]
    radius: float
    n0: int = 100
    classes: int = 3

    def predictor(self, t: Floats) -> NDArray[np.int64]:
        """The first class with more than half, stage by stage, at exact probabilities."""
        answer = np.full(len(t), NOBODY)
        for stage, sigma in zip(self.stages, self.sigmas, strict=True):
            p = stage.probabilities(t, sigma, self.classes)
            answer = np.where((answer == NOBODY) & (p.max(axis=1) > 0.5), p.argmax(axis=1), answer)
        return answer

    @cached_property
    def label(self) -> int:
        """The answer at the input."""
        return int(self.predictor(np.zeros(1))[0])

    def draw(self, plan: SamplingPlan, trials: int, rng: Generator) -> list[Votes]:
        """Votes of every stage of every trial."""
        both = zip(self.stages, self.sigmas, strict=True)
        return [draw_alone(stage, sigma, self.classes, plan, trials, rng) for stage, sigma in both]


CascadeMaker = Callable[[Spot, int, float], Cascade]  # spot, number of stages, near which probability


def own_boundary(spot: Spot, stages: int, near: float) -> Cascade:
    """The last stage answers, and its own boundary is nearest; those before it have no majority anywhere near."""
    cut = 0.25 * quantile(spot.edge(HALF, near))
    sigmas = tuple(2.0 ** (stages - 3 - i) for i in range(stages - 1))
    return Cascade((*map(_thirds, sigmas), half_space(cut, Y, OTHER)), (*sigmas, 0.25), cut)


def passed_stage(spot: Spot, stages: int, near: float) -> Cascade:
    """Nearest is where another class gets the majority of the first stage, which was passed; others cost nothing."""
    p = spot.edge(HALF, near)
    cut, middle = quantile(p), quantile(p / 2)  # OTHER beyond the cut, the rest halved between the two others
    between = tuple(0.9 - 0.1 * i for i in range(stages - 2))
    models = (Steps((middle, cut), (0, Y, OTHER)), *map(_thirds, between), half_space(FAR / 2, Y, OTHER))
    return Cascade(models, (1.0, *between, 0.5), cut)


def coin_toss(spot: Spot, stages: int, near: float) -> Cascade:
    """The first stage has half and the least bit for Y, the rest shared; below it another class is certain.

    To predict Y at all is an error, and so is to go down and claim the other class: each at the level of one bound.
    """
    lower = (0.5, 0.4, 0.3, 0.2)[: stages - 1]
    models = (Steps((EPSILON, quantile(0.75)), (Y, OTHER, 0)), *(always(OTHER) for _ in lower))
    return Cascade(models, (1.0, *lower), EPSILON)


def late_coin_toss(spot: Spot, stages: int, near: float) -> Cascade:
    """Stages before the coin toss that are nearly one themselves: they may stop with a class they should not name."""
    below = quantile(0.5 - 1 / np.sqrt(spot.plan.n) / 2)  # one standard deviation of the share below one half
    early = tuple(1.5 + 0.5 * (stages - 3 - i) for i in range(stages - 2))
    first = [Steps((s * below, s * quantile(0.75)), (Y, OTHER, 0)) for s in early]
    last = coin_toss(spot, 2, near)
    return Cascade((*first, *last.stages), (*early, *last.sigmas), EPSILON)


def nobody(spot: Spot, stages: int, near: float) -> Cascade:
    """No stage has a majority, by the least bit; the cascade abstains, and any claim is an error."""
    sigmas = (1.0, 0.5, 0.25, 0.2, 0.15)[:stages]
    nearly = [Steps((-EPSILON, s * quantile(0.75)), (Y, OTHER, 0)) for s in sigmas]
    return Cascade(tuple(nearly), sigmas, 0.0)


def _thirds(sigma: float) -> Steps:
    """A stage without a majority for a distance of 0.43 sigma."""
    third = sigma * quantile(2 / 3)
    return Steps((-third, third), (0, Y, OTHER))


CASCADES: dict[str, CascadeMaker] = {
    "its own boundary is nearest": own_boundary,
    "a passed stage is nearest": passed_stage,
    "the first stage is a coin toss": coin_toss,
    "a later stage is a coin toss": late_coin_toss,
    "nobody has a majority": nobody,
}
