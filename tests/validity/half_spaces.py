"""Two-stage models whose true radius is known: every network reads one coordinate t = <w, x> and nothing else.

A base model is a half-space, or several parallel ones: it answers by the interval in which t lies. Under
Gaussian noise its probabilities are differences of normal CDFs, so G is known at every t, and the distance
from the input (t = 0) to the nearest change of G is the true radius, in R^d as on the line.

Votes are simulated as they arise: noise is drawn, the base models answer, the answers are counted. A trial is
a row, so that one call of a rule judges all trials.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np
from scipy.special import ndtr, ndtri

from dualrs.schemes import DualVotes
from dualrs.theory.bounds import lower
from dualrs.votes import SamplingPlan, Votes

# Of all n from 100 to 300 the one at which a fair coin is taken for a loaded one most nearly as often as the
# levels 0.1, 0.08 and 0.05 allow: 0.0997, 0.0800 and 0.0495. Elsewhere discreteness would blunt the tests.
N = 268

PLAN = SamplingPlan(n0=40, n=N)
COUPLINGS = ("independent", "shared", "antithetic")


@dataclass(frozen=True)
class Steps:
    """A base model: answer number i between cut i - 1 and cut i of the coordinate t."""

    cuts: tuple[float, ...]
    answers: tuple[int, ...]

    def probabilities(self, t, sigma, total):
        """Probability of each of `total` answers at the points t under noise of sigma: (points, total)."""
        edges = [-np.inf, *self.cuts, np.inf]
        out = np.zeros((len(t), total))
        for answer, (left, right) in zip(self.answers, pairwise(edges), strict=True):
            # mirrored where both ends are above t, which keeps the digits of small probabilities
            a, b = (left - t) / sigma, (right - t) / sigma
            out[:, answer] += np.where(a > 0, ndtr(-a) - ndtr(-b), ndtr(b) - ndtr(a))
        return out

    def count(self, noise, sigma, total):
        """Answers at t = 0 under standard normal noise (trials, votes), counted: (trials, total)."""
        below = [np.count_nonzero(noise < cut / sigma, axis=1) for cut in self.cuts]
        edges = [np.zeros(len(noise), dtype=np.int64), *below, np.full(len(noise), noise.shape[1])]
        out = np.zeros((len(noise), total), dtype=np.int64)
        for answer, (left, right) in zip(self.answers, pairwise(edges), strict=True):
            out[:, answer] += right - left
        return out


def always(answer):
    return Steps((), (answer,))


def half_space(cut, below, above):
    return Steps((cut,), (below, above))


@dataclass(frozen=True)
class Problem:
    """A router, its experts, and the radius within which G keeps its class, in closed form."""

    router: Steps
    experts: tuple[Steps, ...]
    sigmas: tuple[float, ...]
    radius: float
    sigma_e: float = 1.0
    classes: int = 3
    plan: SamplingPlan = PLAN

    def predictor(self, t):
        """G at the points t, each model at its exact probabilities."""
        t = np.atleast_1d(np.asarray(t, dtype=float))
        routed = self.router.probabilities(t, self.sigma_e, len(self.experts)).argmax(axis=1)
        answers = np.stack(
            [e.probabilities(t, s, self.classes).argmax(axis=1) for e, s in zip(self.experts, self.sigmas, strict=True)]
        )
        return answers[routed, np.arange(len(t))]

    @cached_property
    def label(self):
        """G at the input."""
        return int(self.predictor(0.0)[0])

    def searched_radius(self, reach=3.0, steps=6001):
        """The distance to the nearest change of G by a search to either side: a check of `radius`."""
        found = []
        for side in (1, -1):
            t = side * np.linspace(0, reach, steps)
            changed = np.flatnonzero(self.predictor(t) != self.label)
            if len(changed):
                inside, outside = t[changed[0] - 1], t[changed[0]]
                for _ in range(60):
                    middle = (inside + outside) / 2
                    same = self.predictor(middle)[0] == self.label
                    inside, outside = (middle, outside) if same else (inside, middle)
                found.append(abs(outside))
        return min(found)

    @lru_cache(maxsize=8)  # noqa: B019 - problems are few, small and live as long as the tests
    def draw(self, trials, coupling, seed):
        """Votes of every trial. Noise of the experts: their own, that of the router, or its negative."""
        rng = np.random.default_rng([seed, COUPLINGS.index(coupling)])
        counts = {}
        for part, size in (("selection", self.plan.n0), ("estimation", self.plan.n)):
            noise = rng.standard_normal((trials, size))
            counts["router", part] = self.router.count(noise, self.sigma_e, len(self.experts))
            if coupling == "antithetic":
                noise = -noise
            for i, (expert, sigma) in enumerate(zip(self.experts, self.sigmas, strict=True)):
                if coupling == "independent" and expert.cuts:  # who never changes its answer needs no noise
                    noise = rng.standard_normal((trials, size))
                counts[i, part] = expert.count(noise, sigma, self.classes)

        def votes(key, sigma):
            return Votes(sigma, counts[key, "selection"], counts[key, "estimation"], self.plan)

        return DualVotes(votes("router", self.sigma_e), tuple(votes(i, s) for i, s in enumerate(self.sigmas)))


def edge(k, level):
    """A probability at which the lower bound from N votes fails as often as `level` allows.

    At p = L(k, N, level), k votes or more have probability `level`; just below p they make the bound exceed it.
    """
    return float(lower(k, N, level)) * (1 - 1e-9)


Y, OTHER = 1, 2  # G(x) at the input, and the class of those who disagree; class 0 stands idle
FAR = 3.0  # standard deviations to a boundary that plays no role
EPSILON = 1e-6  # a margin as good as none


def class_boundary(level, k=190):
    """The chosen expert's own boundary is nearest: the bottleneck is r_A, as sharp as its level allows."""
    sigma = 0.5
    cut = float(sigma * ndtri(edge(k, level)))
    return Problem(half_space(FAR, 0, 1), (half_space(cut, Y, OTHER), always(OTHER)), (sigma, 1.0), cut)


def routing_boundary(level, candidates=2, k=190):
    """The router's boundary is nearest, and beyond it an expert answers that disagrees.

    More than two candidates: one takes all votes that the chosen one does not get, so that U_j = 1 - L_A.
    """
    cut = float(ndtri(edge(k, level)))
    experts = (half_space(FAR * 0.5, Y, OTHER), always(OTHER), always(OTHER))
    return Problem(half_space(cut, 0, 1), experts[:candidates], (0.5, 1.0, 0.75)[:candidates], cut)


def equal_boundaries(level, k=190):
    """Router and chosen expert have the same sigma and change at the same distance.

    On shared noise they cast the same votes and fail together; on antithetic noise they hardly ever do.
    """
    cut = float(ndtri(edge(k, level)))
    return Problem(half_space(cut, 0, 1), (half_space(cut, Y, OTHER), always(OTHER)), (1.0, 0.5), cut)


def rival_boundary(router_level, expert_level, candidates, k=180):
    """The router turns to a rival exactly where the rival's expert stops agreeing: r_j = E_j = the true radius.

    Either of the two failing makes a false certificate. The rival's sigma is what puts both on their edge.
    Probabilities not far above one half make the failures on antithetic noise nearly disjoint.
    """
    cut = float(ndtri(edge(k, router_level)))
    p_rival = next(p for p in (edge(j, expert_level) for j in range(N // 2, N)) if ndtri(p) >= cut)
    sigma_rival = float(cut / ndtri(p_rival))  # at most sigma_e
    experts = (half_space(FAR * 0.5, Y, OTHER), half_space(cut, Y, OTHER), always(OTHER))
    sigmas = (0.5, sigma_rival, 0.75)
    return Problem(half_space(cut, 0, 1), experts[:candidates], sigmas[:candidates], cut, plan=SamplingPlan(100, N))


def no_majority(expert_level, k=172):
    """Three candidates, none of which has half of the router's votes; the rule of the paper has nothing to say.

    The router answers A, B, C in this order along t. A and C tie half way between the cuts, before B is ahead.
    Expert B agrees, expert C agrees only up to that tie: r_C = E_C = the true radius.
    """
    cut = float(ndtri(edge(k, expert_level)))
    first = -0.1
    router = Steps((first, 2 * cut - first), (0, 1, 2))
    experts = (half_space(FAR * 0.25, Y, OTHER), half_space(FAR * 0.5, Y, OTHER), half_space(cut, Y, OTHER))
    return Problem(router, experts, (0.25, 0.5, 1.0), cut, plan=SamplingPlan(100, N))


def three_way_tie(level, k=50):
    """All three candidates tie at the boundary, where rival C meets its equal share: both forms of E_C are exact.

    q_C is the edge of its upper bound at `level`; expert C disagrees throughout, and expert B agrees.
    """
    second = float(ndtri(edge(N - k, level)))
    first = second - 2 * float(ndtri(2 / 3))
    experts = (half_space(FAR * 0.25, Y, OTHER), half_space(FAR * 0.5, Y, OTHER), always(OTHER))
    return Problem(Steps((first, second), (0, 1, 2)), experts, (0.25, 0.5, 1.0), (first + second) / 2)


def friendly_coin_toss(expert_level, k=180):
    """The router is at a coin toss, and the experts agree up to the boundary of one of them."""
    cut = float(ndtri(edge(k, expert_level)))
    experts = (half_space(FAR * 0.5, Y, OTHER), half_space(cut, Y, OTHER))
    return Problem(half_space(EPSILON, 0, 1), experts, (0.5, 1.0), cut, plan=SamplingPlan(10, N))


def hostile_coin_toss():
    """The router is at a coin toss between experts that disagree: nothing can be claimed."""
    experts = (always(Y), always(OTHER))
    return Problem(half_space(EPSILON, 0, 1), experts, (0.5, 1.0), EPSILON, plan=SamplingPlan(10, N))


def class_coin_toss():
    """The router is sure, and its expert is at a coin toss between two classes: nothing can be claimed."""
    experts = (half_space(EPSILON, Y, OTHER), always(OTHER))
    return Problem(half_space(FAR, 0, 1), experts, (0.5, 1.0), EPSILON, plan=SamplingPlan(10, N))


def three_tied_classes():
    """The router is sure, and its expert has three classes of equal probability, but for the least bit."""
    third = 0.5 * float(ndtri(2 / 3)) + EPSILON
    experts = (Steps((-third, third), (0, Y, OTHER)), always(OTHER))
    return Problem(half_space(FAR, 0, 1), experts, (0.5, 1.0), _tie(third, 0.5), plan=SamplingPlan(10, N))


def three_tied_candidates():
    """The router has three candidates of equal probability, but for the least bit; only one expert says Y."""
    third = float(ndtri(2 / 3)) + EPSILON
    experts = (always(Y), always(OTHER), always(OTHER))
    router = Steps((-third, third), (1, 0, 2))
    return Problem(router, experts, (0.25, 0.5, 1.0), _tie(third, 1.0), plan=SamplingPlan(10, N))


def _tie(third, sigma):
    """Distance at which the middle slab of half-width `third` is overtaken by the half-space next to it.

    So close to 0 all is linear: the half-space gains by the density at its cut, and the slab, being centred,
    loses nothing to first order.
    """
    a = third / sigma
    ahead = (2 * ndtr(a) - 1) - ndtr(-a)
    density = np.exp(-a * a / 2) / np.sqrt(2 * np.pi) / sigma
    return float(ahead / density)
