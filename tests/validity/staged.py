"""Cascades with thresholds and votes that pass, whose true radius is known: each stage reads one coordinate t.

As in half_spaces.py a stage answers by the interval in which t lies, so that its probabilities are known everywhere,
and the distance from the input (t = 0) to the nearest change of the cascade is the true radius. Problems are placed
where the bounds of one clause of rule `cascade` are all on their edges. Stages may vote on noise of their own, on the
same noise, on the negative of it, or on noise that an adversary has chosen so that never two of their bounds fail at
once, which is the worst there is; the votes of each stage are independent all the same.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import adaptive_trials
import numpy as np
from adaptive_trials import failure
from half_spaces import EPSILON, FAR, OTHER, N, Steps, Y, always
from half_spaces import edge as fixed_edge
from scipy.special import ndtri
from scipy.stats import binom

from dualrs.certificates import Certificates
from dualrs.certificates.cascade import cascade
from dualrs.theory.bounds import lower
from dualrs.theory.budget import ErrorBudget
from dualrs.theory.looks import shares
from dualrs.votes import SamplingPlan, Votes

CLASSES, PASS = 3, 3  # the last answer is a pass
NOBODY = -1  # the answer of a cascade in which no stage is sure
COUPLINGS = ("independent", "shared", "antithetic", "disjoint")
FIXED, LOOKS = SamplingPlan(100, N), SamplingPlan(100, 400, (100, 200, 400))
LOWER, UPPER = "lower", "upper"


@dataclass(frozen=True)
class Role:
    """What a stage does in a problem: which of its bounds is on its edge, where, and at which level."""

    kind: str
    probability: float
    level: float


@dataclass(frozen=True)
class Staged:
    """Stages with falling sigmas, their thresholds, and the radius within which the cascade keeps its answer.

    A threshold of None, at the last stage, is plain majority. ``roles`` are for the adversary.
    """

    stages: tuple[Steps, ...]
    sigmas: tuple[float, ...]
    thresholds: tuple[float | None, ...]
    radius: float
    roles: tuple[Role | None, ...] = ()
    plan: SamplingPlan = FIXED

    def predictor(self, t):
        """The class of the first stage at which one is above the threshold, at exact probabilities."""
        t = np.atleast_1d(np.asarray(t, dtype=float))
        answer = np.full(len(t), NOBODY)
        for stage, sigma, limit in zip(self.stages, self.sigmas, self.thresholds, strict=True):
            p = stage.probabilities(t, sigma, CLASSES + 1)[:, :CLASSES]
            sure = (p.max(axis=1) > limit) if limit is not None else np.ones(len(t), dtype=bool)
            answer = np.where((answer == NOBODY) & sure, p.argmax(axis=1), answer)
        return answer

    @cached_property
    def label(self):
        return int(self.predictor(0.0)[0])

    @lru_cache(maxsize=8)  # noqa: B019 - problems are few, small and live as long as the tests
    def draw(self, trials, coupling, seed):
        """Votes of every trial, the noisiest stage first, to the last look."""
        rng = np.random.default_rng([seed, COUPLINGS.index(coupling)])
        if coupling == "disjoint":
            return self._disjoint(trials, rng)
        counted = [[] for _ in self.stages]
        for size in (self.plan.n0, *np.diff(self.plan.looks, prepend=0)):
            noise = rng.standard_normal((trials, size))
            for m, stage in enumerate(self.stages):
                if coupling == "independent" and m and stage.cuts:
                    noise = rng.standard_normal((trials, size))
                sign = -1 if coupling == "antithetic" and m % 2 else 1
                counted[m].append(stage.count(sign * noise, self.sigmas[m], CLASSES + 1))
        return tuple(self._votes(m, parts) for m, parts in enumerate(counted))

    def _votes(self, m, parts):
        selection, *segments = parts
        total = np.sum(segments, axis=0)
        held = np.stack(segments, axis=1) if self.plan.adaptive else None
        return Votes(self.sigmas[m], selection, total, self.plan, held, passes=True)

    def _alone(self, m, trials, rng):
        p = self.stages[m].probabilities(np.zeros(1), self.sigmas[m], CLASSES + 1)[0]
        sizes = (self.plan.n0, *np.diff(self.plan.looks, prepend=0))
        return self._votes(m, [rng.multinomial(size, p / p.sum(), size=trials) for size in sizes])

    def _disjoint(self, trials, rng):
        """Each stage fails in an interval of its own of one uniform variable, and its votes are drawn given that.

        Their law is what it is without the others, as the length of the interval is the probability of failing.
        """
        chance, begin, found = rng.random(trials), 0.0, []
        for m, role in enumerate(self.roles):
            if role is None:
                found.append(self._alone(m, trials, rng))
                continue
            end = begin + failing(role, self.plan)
            fails, begin = (begin <= chance) & (chance < end), end
            pool = self._alone(m, int(1.6 * trials) + 1000, rng)
            failed = failed_rows(pool, role)
            order = np.empty(trials, dtype=np.int64)
            for kind in (True, False):
                order[fails == kind] = np.flatnonzero(failed == kind)[: (fails == kind).sum()]  # refuses too few
            found.append(taken(pool, order))
        assert begin <= 1
        return tuple(found)

    def certify(self, votes, alpha):
        """Rule `cascade` on votes of this problem."""
        return Certificates.conclude(cascade(votes, alpha, self.thresholds))


def taken(votes, rows):
    """Some rows of votes."""
    segments = None if votes.segments is None else votes.segments[rows]
    return Votes(votes.sigma, votes.selection[rows], votes.estimation[rows], votes.plan, segments, votes.passes)


def failed_rows(votes, role):
    """In which trials the bound of a stage fails."""
    answer = np.full(len(votes), Y)
    if role.kind == LOWER:
        return votes.lower(answer, role.level) > role.probability
    return votes.upper_of_others(answer, role.level) < role.probability


def failing(role, plan):
    """The exact probability that it does; an upper bound is a lower one on everything else."""
    p = role.probability if role.kind == LOWER else 1 - role.probability
    if plan.adaptive:
        return failure(p, role.level * shares(plan.looks))
    return float(
        binom.pmf(np.arange(plan.n + 1), plan.n, p)[lower(np.arange(plan.n + 1), plan.n, role.level) > p].sum()
    )


def edge(plan, level, near):
    """A probability near a given one at which a lower bound of this level fails about as often as it may."""
    if plan.adaptive:
        return adaptive_trials.edge(level, near, near + 0.06)
    return fixed_edge(round(near * plan.n), level)


# Problems. Every level is what the bound gets under the rule, or what a sabotaged twin gives it.


def shipped(alpha, stages):
    """The levels of the rule: (lower, upper) for each stage."""
    return [(float(b.lower), float(b.upper)) for b in ErrorBudget(alpha).cascade(stages)]


def _answering(limit, level, near, radius, plan, rest):
    """A stage that answers Y as far as ``radius``, its lower bound on the edge; beyond stands ``rest``."""
    p = edge(plan, level, near)
    sigma = radius / float(ndtri(p) - ndtri(limit))
    return Steps((float(sigma * ndtri(p)),), (Y, rest)), sigma, Role(LOWER, p, level)


def own_boundaries(levels, thresholds, rest=PASS, plan=FIXED, radius=0.5):
    """Every stage stops answering Y at the same distance, and says nothing beyond it: all r are the truth.

    With plain majority at the last stage its bounds have half the level each, and fail together.
    """
    made = []
    for m, ((level, _), limit) in enumerate(zip(levels, thresholds, strict=True)):
        last, apart = m == len(levels) - 1, 0.07 if plan.adaptive else 0.03  # so that sigmas fall
        near = (limit or 0.5) + 0.08 + apart * m
        level = level / 2 if last and limit is None else level
        made.append(_answering(limit or 0.5, level, near, radius, plan, OTHER if last else rest))
    stages, sigmas, roles = zip(*made, strict=True)
    return Staged(stages, sigmas, tuple(thresholds), radius, roles, plan)


def blocked(levels, thresholds, k, plan=FIXED, radius=0.5, rest=0):
    """Another class gets its share of stage k where the stages before it stop answering Y; all after it are sure.

    So N of stage k and the r of those before it are the truth. Below its boundary stage k is torn between Y and rest.
    """
    stages, sigmas, roles = [], [], []
    for m, ((low_, high), limit) in enumerate(zip(levels, thresholds, strict=True)):
        if m < k:
            stage, sigma, role = _answering(limit, low_, limit + 0.06 + 0.02 * m, radius, plan, PASS)
        elif m == k:
            q = 1 - edge(plan, high, 1 - limit + 0.08 + 0.03 * m if limit > 0.5 else 0.6 + 0.03 * m)
            sigma, role = radius / float(ndtri(limit) - ndtri(q)), Role(UPPER, q, high)
            cut = float(-sigma * ndtri(q))
            stage = Steps((float(sigma * ndtri((1 - q) / 2)), cut), (rest, Y, OTHER))
        else:
            sigma, role = sigmas[-1] * 0.9, None
            stage = Steps((radius + FAR * sigma,), (Y, OTHER))
        stages.append(stage)
        sigmas.append(sigma)
        roles.append(role)
    return Staged(tuple(stages), tuple(sigmas), tuple(thresholds), radius, tuple(roles), plan)


def pair_boundary(levels, plan=FIXED):
    """Votes pass until the last stage, where three classes meet and none has half; two of them tie at the truth."""
    level, sigma = levels[-1][0] / 2, 0.5
    first, second = sigma * ndtri(edge(plan, level, 0.5)), sigma * ndtri(edge(plan, level, 0.75))
    stages = [*[Steps((float(-FAR),), (0, PASS))] * (len(levels) - 1), Steps((first, second), (Y, 0, OTHER))]
    sigmas = tuple(1.0 - 0.1 * m for m in range(len(levels) - 1))
    radius = float((first + second) / 2)
    return Staged(tuple(stages), (*sigmas, sigma), (*[0.5] * (len(levels) - 1), None), radius, (), plan)


def disagreeing(levels, thresholds, plan=FIXED):
    """The first stage answers Y up to the truth, the second is sure of another class, the last of Y again."""
    limit = thresholds[0]
    stage, sigma, role = _answering(limit, levels[0][0], limit + 0.1, 0.5, plan, PASS)
    others = (always(OTHER), always(Y))[: len(levels) - 1]
    sigmas = (sigma, *(sigma * (0.9 - 0.1 * m) for m in range(len(others))))
    return Staged((stage, *others), sigmas, tuple(thresholds), 0.5, (role, *[None] * len(others)), plan)


def coin_toss(thresholds, below=OTHER, n0=10, looks=()):
    """The first stage has its threshold and the least bit for Y, and the rest for OTHER; those below are certain.

    To claim Y at all is an error, and so is to claim the class of those below.
    """
    limit = thresholds[0]
    plan = SamplingPlan(n0, looks[-1] if looks else N, looks)
    stages = (Steps((EPSILON + float(ndtri(limit)),), (Y, OTHER)), *[always(below)] * (len(thresholds) - 1))
    sigmas = tuple(1.0 - 0.2 * m for m in range(len(thresholds)))
    return Staged(stages, sigmas, tuple(thresholds), EPSILON, (), plan)


def nobody(thresholds, levels, n0=10, plan=FIXED):
    """No stage has a class above its threshold, by the least bit; the cascade abstains, and any claim is an error."""
    sigmas = tuple(1.0 - 0.2 * m for m in range(len(thresholds)))
    stages = tuple(Steps((float(s * ndtri(c)) - EPSILON,), (Y, PASS)) for s, c in zip(sigmas, thresholds, strict=True))
    roles = tuple(Role(LOWER, c, level) for c, (level, _) in zip(thresholds, levels, strict=True))
    return Staged(stages, sigmas, tuple(thresholds), 0.0, roles, SamplingPlan(n0, plan.n, plan.looks))
