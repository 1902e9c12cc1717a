"""The error of rule `cascade` at small n, exactly: a sum over all outcomes of all stages, under the worst dependence.

At each stage a vote is for the class Y, for one other class, or a pass. What the rule makes of each outcome is read off
the rule itself. Given the truth R* an outcome of a stage either claims too much by itself (its r is above R*), or lets
later stages claim too much (only its N is), or stops any false claim. So a false claim is: outcomes of the second kind,
stage after stage, and then one of the first. Any dependence between stages is allowed, and the worst has those events
inside each other as far as their probabilities go.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln, ndtri, xlogy

from dualrs.certificates.cascade import cascade
from dualrs.theory.bounds import lower, upper
from dualrs.theory.budget import ErrorBudget, StageBounds
from dualrs.votes import SamplingPlan, Votes

Y, OTHER = 0, 1  # and 2 is a pass
HAIR = 1e-9  # inside a bound that may come out: then it fails
MANY = 10_000_000  # votes of a stage that stands in no one's way


@lru_cache
def outcomes(n):
    """All counts of n votes, shape (outcomes, 3)."""
    return np.array([(y, o, n - y - o) for y in range(n + 1) for o in range(n + 1 - y)])


def law(n, p, q):
    """Probability of each outcome."""
    counts, shares = outcomes(n), np.array([p, q, max(1 - p - q, 0.0)])
    return np.exp(gammaln(n + 1) + (xlogy(counts, shares) - gammaln(counts + 1)).sum(axis=1))


def stage(sigma, counts, n):
    """Votes with these counts, one row each; the selection is for Y."""
    counts = np.atleast_2d(counts)
    selection = np.tile([1, 0, 0], (len(counts), 1))
    return Votes(sigma, selection, counts, SamplingPlan(1, n), passes=True)


@dataclass(frozen=True)
class Rule:
    """Rule `cascade` with its levels, or with others in their place."""

    thresholds: tuple  # one for each stage; None for plain majority at the last
    alpha: float
    levels: tuple = ()  # of (lower, upper) at each stage, where they are sabotaged

    @property
    def stages(self):
        return len(self.thresholds)

    @property
    def spent(self):
        return [(float(b.lower), float(b.upper)) for b in ErrorBudget(self.alpha).cascade(self.stages)]

    def radius(self, stages):
        """What the rule claims."""
        with pytest.MonkeyPatch.context() as patch:
            if self.levels:
                bounds = tuple(StageBounds(np.asarray(a), np.asarray(b)) for a, b in self.levels)
                patch.setattr(ErrorBudget, "cascade", lambda budget, count: bounds)
            return np.maximum(cascade(stages, self.alpha, self.thresholds).radius, 0.0)

    def used(self):
        """The levels that it works with."""
        return list(self.levels) or self.spent

    def tables(self, n):
        """For each stage and outcome r and N at sigma 1, with other stages that stand in no one's way.

        All votes pass before it. After it nobody has voted, which leaves r; or all agree, which leaves N.
        """
        found = []
        for m in range(self.stages):
            rows = len(outcomes(n))

            def neutral(k, counts, m=m, rows=rows):
                return stage(1 + 0.001 * (m - k), np.tile(counts, (rows, 1)), MANY)

            here, last = stage(1.0, outcomes(n), n), self.stages - 1
            before = [neutral(k, [0, 0, MANY]) for k in range(m)]
            silent = [neutral(k, [0, 0, 0]) for k in range(m + 1, self.stages)]
            sure = [neutral(k, [MANY, 0, 0]) for k in range(m + 1, self.stages)]
            own = self.radius([*before, here, *silent])
            found.append((own, self.radius([*before, here, *sure]) if m < last else own))
        return found


@dataclass(frozen=True)
class Point:
    """True probabilities of Y and of the other class at each stage, and the sigmas."""

    p: tuple
    q: tuple
    sigmas: tuple

    def truth(self, thresholds):
        """The radius at the true probabilities, from its definition; 0 where nothing may be claimed."""
        best, reach = 0.0, np.inf
        for m, (p, q, sigma, c) in enumerate(zip(self.p, self.q, self.sigmas, thresholds, strict=True)):
            if c is None and m == len(self.p) - 1:
                own = sigma / 2 * (ndtri(p) - ndtri(q))
            else:
                own = sigma * (ndtri(p) - ndtri(c or 0.5))
            best = max(best, min(own, reach))
            reach = min(reach, sigma * (ndtri(c or 0.5) - ndtri(q)))
        return best


def worst_error(tables, point, thresholds, n):
    """The largest probability, over all dependences between stages, of a claim above the truth."""
    radius, total = point.truth(thresholds), 0.0
    for m in reversed(range(len(tables))):
        p = law(n, point.p[m], point.q[m])
        own, blocked = (point.sigmas[m] * table > radius for table in tables[m])
        total = p[own].sum() + (min(p[blocked & ~own].sum(), total) if m < len(tables) - 1 else 0.0)
    return float(total)


def false_claims(rule, point, n):
    """Whether each combination of outcomes of all stages claims too much, from the rule itself."""
    several = [range(len(outcomes(n)))] * rule.stages
    rows = np.array(list(product(*several)))
    stages = [stage(s, outcomes(n)[rows[:, m]], n) for m, s in enumerate(point.sigmas)]
    return (rule.radius(stages) > point.truth(rule.thresholds)).reshape([len(r) for r in several])


def worst_of(false, laws):
    """The same as `worst_error` from all combinations; checks that outcomes are of three kinds."""
    p, rest = laws[0], false.reshape(len(false), -1)
    if false.ndim == 1:
        return float(p[false].sum())
    own, never = rest.all(axis=1), ~rest.any(axis=1)
    between = ~own & ~never
    if not between.any():
        return float(p[own].sum())
    later = false[between][0]
    assert (false[between] == later).all()
    return float(p[own].sum() + min(p[between].sum(), worst_of(later, laws[1:])))


@lru_cache
def edges(n, level, kind):
    """The probabilities at which a bound fails exactly as often as its level allows, for every count."""
    if kind == "lower":
        return np.array([float(lower(k, n, level)) * (1 - HAIR) for k in range(1, n + 1)])
    return np.array([float(upper(k, n, level)) * (1 + HAIR) for k in range(n)])


NEVER = 1e-9  # as good as no probability


def placed_points(rule, n, count, rng):
    """Points at which one clause of the rule is the bottleneck, and each of its bounds is on its edge at the truth.

    Sigmas are what makes the radii equal, to 1. The theory asks nothing of their order, so it may be any.
    """
    found = []
    while len(found) < count:
        bottleneck = int(rng.integers(rule.stages))
        drawn = [_drawn(rule, m, bottleneck, n, rng) for m in range(rule.stages)]
        sigmas = [
            1 / margin if m <= bottleneck else rng.uniform(1, 20) / margin for m, (_, _, margin) in enumerate(drawn)
        ]
        if min(sigmas) < 0:
            continue
        p, q, _ = zip(*drawn, strict=True)
        found.append(Point(tuple(map(float, p)), tuple(map(float, q)), tuple(map(float, sigmas))))
    return found


def _drawn(rule, m, bottleneck, n, rng):
    """Probabilities of Y and of the other class at a stage, and the radius at sigma 1 that is to be the true one."""
    (a, b), limit, last = rule.used()[m], rule.thresholds[m] or 0.5, rule.stages - 1
    if m == bottleneck < last:
        high = edges(n, b, "upper")
        q = rng.choice(high[high < limit])
        p = rng.choice([NEVER, 1 - q, rng.uniform(0, 1 - q)])
        return p, q, ndtri(limit) - ndtri(q)
    if m == last and rule.thresholds[m] is None:
        q = rng.choice(edges(n, a / 2, "upper"))
        likely = edges(n, a / 2, "lower")
        likely = likely[(likely > q) & (likely <= 1 - q)]
        p = rng.choice(likely) if len(likely) else 1 - q
        return p, q, (ndtri(p) - ndtri(q)) / 2
    likely = edges(n, a, "lower")
    p = rng.choice(likely[likely > limit][:4] if rng.random() < 0.5 else likely[likely > limit])
    return p, rng.choice([NEVER, 1 - p, rng.uniform(0, 1 - p)]), ndtri(p) - ndtri(limit)


def random_points(stages, count, rng):
    """Points anywhere, with falling sigmas as the rule itself wants them."""
    found = []
    for _ in range(count):
        shares = rng.dirichlet([2, 0.5, 0.5], size=stages)
        sigmas = -np.sort(-rng.uniform(0.3, 3, size=stages))
        found.append(Point(tuple(shares[:, Y]), tuple(shares[:, OTHER]), tuple(sigmas)))
    return found
