"""Models whose true radius is exact, and their votes, drawn as counts.

Every network reads one coordinate t = <w, x> and answers by the interval in which it lies. Under Gaussian noise its
probabilities are differences of normal CDFs, so the composed predictor G is known at every t, and the distance from
the input (t = 0) to its nearest change is the true radius, in R^d as on the line.

Votes on the same noisy copies are a multinomial over the intervals of that noise between any two cuts: no noise is
drawn, so that a trial costs microseconds whatever the number of votes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from dualrs.schemes import DualVotes
from dualrs.theory.bounds import Floats
from dualrs.votes import Counts, SamplingPlan, Votes

# Whose noise the experts vote on: their own; the router's where they have its sigma, as the library shares it; the
# router's, all of them; the negative of it.
COUPLINGS = ("apart", "as shared", "shared", "antithetic")


@dataclass(frozen=True)
class Steps:
    """A base model: answer number i between cut i - 1 and cut i of the coordinate t."""

    cuts: tuple[float, ...]
    answers: tuple[int, ...]

    def probabilities(self, t: Floats, sigma: float, total: int) -> Floats:
        """Probability of each of ``total`` answers at the points t under noise of sigma: (points, total)."""
        out = np.zeros((len(t), total))
        for answer, (left, right) in zip(self.answers, pairwise([-np.inf, *self.cuts, np.inf]), strict=True):
            # Mirrored where both ends are above t, which keeps the digits of small probabilities.
            a, b = (left - t) / sigma, (right - t) / sigma
            out[:, answer] += np.where(a > 0, ndtr(-a) - ndtr(-b), ndtr(b) - ndtr(a))
        return out

    def answer(self, t: Floats) -> NDArray[np.int64]:
        """The answers at the points t, without noise."""
        return np.array(self.answers)[np.searchsorted(self.cuts, t, side="right")]


def always(answer: int) -> Steps:
    """A model that never changes its answer."""
    return Steps((), (answer,))


def half_space(cut: float, below: int, above: int) -> Steps:
    """A model with one boundary."""
    return Steps((cut,), (below, above))


@dataclass(frozen=True)
class Problem:
    """A router, its experts, and the radius within which G keeps its class, in closed form."""

    router: Steps
    experts: tuple[Steps, ...]
    sigmas: tuple[float, ...]
    radius: float
    n0: int = 40  # selection votes
    sigma_e: float = 1.0
    classes: int = 3

    def predictor(self, t: Floats) -> NDArray[np.int64]:
        """G at the points t, each model at its exact probabilities."""
        routed = self.router.probabilities(t, self.sigma_e, len(self.experts)).argmax(axis=1)
        by_expert = [e.probabilities(t, s, self.classes) for e, s in zip(self.experts, self.sigmas, strict=True)]
        return np.asarray(np.stack([p.argmax(axis=1) for p in by_expert])[routed, np.arange(len(t))])

    @cached_property
    def label(self) -> int:
        """G at the input."""
        return int(self.predictor(np.zeros(1))[0])

    def draw(self, plan: SamplingPlan, coupling: str, trials: int, rng: Generator) -> DualVotes:
        """Votes of every stream of every trial, each to its last look."""
        sigmas = (self.sigma_e, *self.sigmas)
        models = [Reader(m, s) for m, s in zip((self.router, *self.experts), sigmas, strict=True)]
        if coupling == "antithetic":
            models = [models[0], *(Reader(m.steps, m.sigma, -1) for m in models[1:])]
        if coupling in ("shared", "antithetic"):
            groups = [list(range(len(models)))]
        else:
            shared = [0] + [i for i, m in enumerate(models) if i and m.sigma == self.sigma_e and coupling != "apart"]
            groups = [shared, *([i] for i in range(1, len(models)) if i not in shared)]
        totals = [len(self.experts)] + [self.classes] * len(self.experts)
        found: dict[int, Votes] = {}
        for group in groups:
            votes = draw_together([models[i] for i in group], [totals[i] for i in group], plan, trials, rng)
            found |= dict(zip(group, votes, strict=True))
        router, *experts = (found[i] for i in range(len(models)))
        return DualVotes(router, tuple(experts))


@dataclass(frozen=True)
class Reader:
    """A model that reads noise of its sigma, or the negative of it; what votes are drawn for."""

    steps: Steps
    sigma: float
    sign: int = 1


def draw_alone(steps: Steps, sigma: float, answers: int, plan: SamplingPlan, trials: int, rng: Generator) -> Votes:
    """Votes of one model on noise of its own."""
    return draw_together([Reader(steps, sigma)], [answers], plan, trials, rng)[0]


def draw_together(
    readers: Sequence[Reader], answers: Sequence[int], plan: SamplingPlan, trials: int, rng: Generator
) -> list[Votes]:
    """Votes of several models on the same copies, a row for each trial."""
    cuts = np.unique([r.sign * cut / r.sigma for r in readers for cut in r.steps.cuts])
    cells = np.diff(ndtr(cuts), prepend=0.0, append=1.0)  # the noise is standard normal
    ends = np.concatenate([[cuts[0] - 1 if len(cuts) else 0.0], cuts, [cuts[-1] + 1 if len(cuts) else 0.0]])
    inside = (ends[:-1] + ends[1:]) / 2
    tables = []  # cell -> answer, as a 0/1 matrix
    for reader, total in zip(readers, answers, strict=True):
        said = reader.steps.answer(reader.sign * inside * reader.sigma)
        tables.append(np.eye(total, dtype=np.int64)[said])
    sizes = (plan.n0, *np.diff(plan.looks, prepend=0).tolist())
    drawn = [rng.multinomial(size, cells / cells.sum(), size=trials) for size in sizes]
    return [
        _votes(reader.sigma, [d @ table for d in drawn], plan) for reader, table in zip(readers, tables, strict=True)
    ]


def _votes(sigma: float, parts: Sequence[Counts], plan: SamplingPlan) -> Votes:
    selection, *segments = parts
    estimation = np.sum(segments, axis=0)
    return Votes(sigma, selection, estimation, plan, np.stack(segments, axis=1) if plan.adaptive else None)


def searched_radius(problem: Problem, reach: float = 4.0, steps: int = 8001) -> float:
    """The distance to the nearest change of G by a search to either side: a check of the closed form."""
    found = []
    for side in (1, -1):
        t = side * np.linspace(0, reach, steps)
        changed = np.flatnonzero(problem.predictor(t) != problem.label)
        if len(changed):
            inside, outside = float(t[changed[0] - 1]), float(t[changed[0]])
            for _ in range(60):
                middle = (inside + outside) / 2
                same = problem.predictor(np.array([middle]))[0] == problem.label
                inside, outside = (middle, outside) if same else (inside, middle)
            found.append(abs(outside))
    return min(found)


def quantile(p: float) -> float:
    """How many standard deviations of noise have this probability below them."""
    return float(ndtri(p))
