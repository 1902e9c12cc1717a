"""Cascades of two to five stages with thresholds and votes that pass, whose true radius is exact, for rule cascade.

Enters: a spot (plan and alpha), the levels that the rule gives to its bounds, and the number of stages. Leaves: a
problem at which the bounds of one clause of the rule are all on their edges, and its votes: on noise of their own, on
the same noise, on its negative, or on noise that an adversary has chosen so that never two of those bounds fail at
once. The votes of each stage are independent all the same.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dualrs.theory.bounds import Floats
from dualrs.theory.looks import shares
from dualrs.votes import SamplingPlan, Votes
from soak.edges import Spot, failure
from soak.half_spaces import Reader, Steps, always, draw_together, quantile
from soak.problems import EPSILON, FAR, OTHER, Y

CLASSES, PASS = 3, 3  # the last answer is a pass
NOBODY = -1  # the answer of a cascade in which no stage is sure
NOISES = ("apart", "shared", "antithetic", "never failing together")
LIMITS = (0.5, 0.6, 0.55, 0.5, 0.65)  # thresholds, where a problem has other ones than 1/2
RADIUS = 0.5

_POOLS = 60  # sets of trials that are drawn at most, for those to be found that fail or do not

Levels = Sequence[tuple[float, float]]  # of the lower and of the upper bound at each stage
Limits = tuple[float | None, ...]


@dataclass(frozen=True)
class Role:
    """Which bound of a stage is on its edge, at which probability and level."""

    is_lower: bool
    probability: float
    level: float

    def fails(self, votes: Votes) -> NDArray[np.bool_]:
        """In which trials it fails."""
        answer = np.full(len(votes), Y)
        if self.is_lower:
            return votes.lower(answer, self.level) > self.probability
        return votes.upper_of_others(answer, self.level) < self.probability

    def chance(self, plan: SamplingPlan) -> float:
        """The exact probability that it does; an upper bound is a lower one on everything else."""
        p = self.probability if self.is_lower else 1 - self.probability
        return _failure(p, plan.looks, self.level)


@cache
def _failure(p: float, looks: tuple[int, ...], level: float) -> float:
    return failure(p, looks, (level * shares(looks)).tolist())


@dataclass(frozen=True)
class Staged:
    """Stages with falling sigmas, their thresholds, and the radius within which the cascade keeps its answer."""

    stages: tuple[Steps, ...]
    sigmas: tuple[float, ...]
    limits: Limits  # None, at the last stage, is plain majority
    radius: float
    roles: tuple[Role | None, ...] = ()
    n0: int = 100

    def predictor(self, t: Floats) -> NDArray[np.int64]:
        """The class of the first stage at which one is above its threshold, at exact probabilities."""
        answer = np.full(len(t), NOBODY)
        for stage, sigma, limit in zip(self.stages, self.sigmas, self.limits, strict=True):
            p = stage.probabilities(t, sigma, CLASSES + 1)[:, :CLASSES]
            sure = p.max(axis=1) > (0.0 if limit is None else limit)
            answer = np.where((answer == NOBODY) & sure, p.argmax(axis=1), answer)
        return answer

    @cached_property
    def label(self) -> int:
        """The answer at the input."""
        return int(self.predictor(np.zeros(1))[0])

    def draw(self, plan: SamplingPlan, noise: str, trials: int, rng: Generator) -> list[Votes]:
        """Votes of every stage of every trial, the noisiest first."""
        if noise == NOISES[3]:
            return self._never_together(plan, trials, rng)
        signs = [-1 if noise == "antithetic" and m % 2 else 1 for m in range(len(self.stages))]
        readers = [Reader(*each) for each in zip(self.stages, self.sigmas, signs, strict=True)]
        groups = [[reader] for reader in readers] if noise == "apart" else [readers]
        found = [v for group in groups for v in draw_together(group, [CLASSES + 1] * len(group), plan, trials, rng)]
        return [replace(votes, passes=True) for votes in found]

    def _never_together(self, plan: SamplingPlan, trials: int, rng: Generator) -> list[Votes]:
        """Each stage fails in an interval of its own of one uniform variable, and its votes are drawn given that."""
        uniform, begin, found = rng.random(trials), 0.0, list[Votes]()
        for stage, sigma, role in zip(self.stages, self.sigmas, self.roles, strict=True):
            reader = Reader(stage, sigma)
            if role is None:
                found.append(_drawn(reader, plan, trials, rng))
                continue
            end = begin + role.chance(plan)
            found.append(_as_wanted(reader, role, (begin <= uniform) & (uniform < end), plan, rng))
            begin = end
        return found


def _drawn(reader: Reader, plan: SamplingPlan, trials: int, rng: Generator) -> Votes:
    """Votes of one stage on noise of its own."""
    return replace(draw_together([reader], [CLASSES + 1], plan, trials, rng)[0], passes=True)


def _as_wanted(reader: Reader, role: Role, wanted: NDArray[np.bool_], plan: SamplingPlan, rng: Generator) -> Votes:
    """Votes of one stage that fail where they are wanted to: the first such trials of as many as it takes."""
    pool = _drawn(reader, plan, len(wanted), rng)
    for _ in range(_POOLS):
        failed = role.fails(pool)
        kinds = [(wanted == kind, np.flatnonzero(failed == kind)) for kind in (True, False)]
        if all(where.sum() <= len(there) for where, there in kinds):
            break
        pool = _together(pool, _drawn(reader, plan, len(wanted), rng))
    else:
        raise AssertionError("a bound fails less often than was computed")
    rows = np.empty(len(wanted), dtype=np.int64)
    for where, there in kinds:
        rows[where] = there[: int(where.sum())]
    segments = None if pool.segments is None else pool.segments[rows]
    return replace(pool, selection=pool.selection[rows], estimation=pool.estimation[rows], segments=segments)


def _together(first: Votes, more: Votes) -> Votes:
    segments = None
    if first.segments is not None and more.segments is not None:
        segments = np.concatenate([first.segments, more.segments])
    selection = np.concatenate([first.selection, more.selection])
    return replace(
        first, selection=selection, estimation=np.concatenate([first.estimation, more.estimation]), segments=segments
    )


StagedMaker = Callable[[Spot, Levels], Staged]  # levels as shares of alpha


def _answering(spot: Spot, share: float, limit: float, near: float, rest: int) -> tuple[Steps, float, Role]:
    """A stage that answers Y as far as the truth, its lower bound on the edge; beyond stands ``rest``."""
    p = spot.edge(share, near)
    sigma = RADIUS / (quantile(p) - quantile(limit))
    return Steps((sigma * quantile(p),), (Y, rest)), sigma, Role(True, p, share * spot.alpha)


def own_boundaries(spot: Spot, levels: Levels, limits: Limits, rest: int = PASS) -> Staged:
    """Every stage stops answering Y at one distance, and says nothing beyond: all r are the truth."""
    made = []
    for m, (limit, (share, _)) in enumerate(zip(limits, levels, strict=True)):
        last = m == len(levels) - 1
        share = share / 2 if last and limit is None else share
        near = (limit or 0.5) + 0.08 + 0.045 * m  # so that sigmas fall
        made.append(_answering(spot, share, limit or 0.5, near, OTHER if last else rest))
    stages, sigmas, roles = zip(*made, strict=True)
    return Staged(stages, sigmas, limits, RADIUS, roles)


def blocked(spot: Spot, levels: Levels, limits: Limits, k: int) -> Staged:
    """Another class gets its share of stage k where those before it stop answering Y; those after it are sure of Y."""
    made: list[tuple[Steps, float, Role | None]] = []
    for m, (limit, (low, high)) in enumerate(zip(limits, levels, strict=True)):
        if m < k:
            made.append(_answering(spot, low, limit or 0.5, (limit or 0.5) + 0.1 + 0.045 * m, PASS))
        elif m == k:
            q = 1 - spot.edge(high, 0.62 + 0.05 * m)
            sigma = RADIUS / (quantile(limit or 0.5) - quantile(q))
            cuts = (sigma * quantile((1 - q) / 2), -sigma * quantile(q))
            made.append((Steps(cuts, (PASS, Y, OTHER)), sigma, Role(False, q, high * spot.alpha)))
        else:
            sigma = made[-1][1] * 0.9
            made.append((Steps((RADIUS + FAR * sigma,), (Y, OTHER)), sigma, None))
    stages, sigmas, roles = zip(*made, strict=True)
    return Staged(stages, sigmas, limits, RADIUS, roles)


def _plain(count: int, limits: Sequence[float] = (0.5,) * 5) -> Limits:
    """Thresholds, and plain majority at the last stage."""
    return (*limits[: count - 1], None)


def pair_boundary(spot: Spot, levels: Levels) -> Staged:
    """Votes pass until the last stage, where three classes meet and none has half; two of them tie at the truth."""
    share = levels[-1][0] / 2
    first, second = 0.5 * quantile(spot.edge(share, 0.5)), 0.5 * quantile(spot.edge(share, 0.75))
    early = tuple(1.0 - 0.1 * m for m in range(len(levels) - 1))
    stages = (*(Steps((-FAR,), (0, PASS)) for _ in early), Steps((first, second), (Y, 0, OTHER)))
    return Staged(stages, (*early, 0.5), _plain(len(levels)), (first + second) / 2)


def disagreeing(spot: Spot, levels: Levels) -> Staged:
    """The first stage answers Y up to the truth; those after it are sure of another class, and of Y again."""
    stage, sigma, role = _answering(spot, levels[0][0], 0.6, 0.7, PASS)
    others = tuple(always((OTHER, Y)[m % 2]) for m in range(len(levels) - 1))
    sigmas = tuple(sigma * (0.9 - 0.1 * m) for m in range(len(others)))
    return Staged(
        (stage, *others),
        (sigma, *sigmas),
        _plain(len(levels), LIMITS[1:2] * 5),
        RADIUS,
        (role,) + (None,) * len(others),
    )


def coin_toss(spot: Spot, levels: Levels) -> Staged:
    """The first stage has its threshold and the least bit for Y, the rest for OTHER, of which those below are sure."""
    limit, count = LIMITS[0], len(levels)
    stages = (Steps((EPSILON + quantile(limit),), (Y, OTHER)), *(always(OTHER) for _ in range(count - 1)))
    return Staged(stages, tuple(1.0 - 0.1 * m for m in range(count)), _plain(count), EPSILON, n0=10)


def nobody(spot: Spot, levels: Levels) -> Staged:
    """No stage has a class above its threshold, by the least bit; the cascade abstains, and any claim is an error."""
    limits = LIMITS[: len(levels)]
    sigmas = tuple(1.0 - 0.1 * m for m in range(len(levels)))
    stages = tuple(Steps((s * quantile(c) - EPSILON,), (Y, PASS)) for s, c in zip(sigmas, limits, strict=True))
    roles = tuple(Role(True, c, share * spot.alpha) for c, (share, _) in zip(limits, levels, strict=True))
    return Staged(stages, sigmas, limits, 0.0, roles, n0=10)


STAGED: dict[str, StagedMaker] = {
    "all stages stop at once": lambda spot, levels: own_boundaries(spot, levels, (0.5,) * len(levels)),
    "all stages stop at once, other thresholds": lambda spot, levels: own_boundaries(
        spot, levels, tuple(0.7 - 0.04 * m for m in range(len(levels))), OTHER
    ),
    "all stages stop at once, the last by majority": lambda spot, levels: own_boundaries(
        spot, levels, _plain(len(levels))
    ),
    "the first stage is taken by another class": lambda spot, levels: blocked(spot, levels, _plain(len(levels)), 0),
    "a stage between is taken by another class": lambda spot, levels: blocked(
        spot, levels, _plain(len(levels), (0.6, 0.5, 0.5, 0.5)), max(len(levels) - 2, 0)
    ),
    "three classes at the last stage": pair_boundary,
    "stages that disagree": disagreeing,
    "the first stage is a coin toss": coin_toss,
    "no stage is sure": nobody,
}
