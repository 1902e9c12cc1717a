"""Problems of known radius, sampled under looks: their edges, their votes, and how trials are stopped or driven.

As `half_spaces`, a trial is a row and votes are simulated as they arise. Here they come in segments, from each look to
the next, and the probabilities lie where the bounds of all looks together fail most often.
"""

from dataclasses import replace
from functools import lru_cache

import numpy as np
from half_spaces import EPSILON, FAR, OTHER, Problem, Steps, Y, always, half_space
from scipy.special import ndtri
from scipy.stats import binom

from dualrs.policy import Grid, Tolerance
from dualrs.schemes import Dual, DualVotes, Single
from dualrs.theory.bounds import lower
from dualrs.theory.looks import shares
from dualrs.votes import SamplingPlan, Stage, Tally, Unit, Votes

LOOKS = (100, 200, 400)
N = LOOKS[-1]
PLAN = SamplingPlan(40, N, LOOKS)
FEW = SamplingPlan(10, N, LOOKS)  # selection votes, where they had better be wrong often
TRIALS = 10_000  # rejects from 1.15 alpha on; 1.25 alpha is caught with probability 0.999

# Noise of the expert at the router's sigma: its own, the router's, or the negative of that. Others have their own.
COUPLINGS = ("apart", "shared", "antithetic")


# Where a bound fails most often


def failure(p, levels):
    """Exact probability that the lower bound fails at some look: the law of the count, less what has failed before."""
    alive, before, lost = np.ones(1), 0, 0.0
    for n, level in zip(LOOKS, levels, strict=True):
        alive = np.convolve(alive, binom.pmf(np.arange(n - before + 1), n - before, p))
        before = n
        failed = lower(np.arange(n + 1), n, level) > p
        lost += alive[failed].sum()
        alive = np.where(failed, 0.0, alive)
    return lost


@lru_cache
def edge(level, least=0.6, most=0.8):
    """A probability at which a bound of this level fails as often as can be; 0.82 to 0.87 of the level.

    Just inside a bound of the last look, whose share is the largest, from a count between ``least`` and ``most`` of all
    votes. Discreteness leaves the early looks what it will.
    """
    spent = level * shares(LOOKS)
    inside = (float(lower(k, N, spent[-1])) * (1 - 1e-9) for k in range(int(least * N), int(most * N)))
    return max(inside, key=lambda p: failure(p, spent))


def sharp(level):
    """A rate of errors that tells: what one bound at its edge has, but for chance and the counts that there are."""
    return 0.88 * failure(edge(level), level * shares(LOOKS))


# Problems


def class_boundary(p, at_sigma_e=True):
    """The chosen expert's own boundary is nearest: the bottleneck is r_A. At the router's sigma, it may share noise."""
    sigma, other = (1.0, 0.5) if at_sigma_e else (0.5, 1.0)
    cut = float(sigma * ndtri(p))
    return Problem(half_space(FAR, 0, 1), (half_space(cut, Y, OTHER), always(OTHER)), (sigma, other), cut, plan=PLAN)


def routing_boundary(p, candidates=2):
    """The router's boundary is nearest, and beyond it stands an expert that disagrees."""
    cut = float(ndtri(p))
    experts = (half_space(FAR * 0.5, Y, OTHER), always(OTHER), always(OTHER))
    sigmas = (0.5, 1.0, 0.75)
    return Problem(half_space(cut, 0, 1), experts[:candidates], sigmas[:candidates], cut, plan=PLAN)


def equal_boundaries(p):
    """Router and chosen expert have the same sigma and change at the same distance; on shared noise, vote for vote."""
    cut = float(ndtri(p))
    experts = (half_space(cut, Y, OTHER), always(OTHER))
    return Problem(half_space(cut, 0, 1), experts, (1.0, 0.5), cut, plan=PLAN)


def rival_boundary(p, candidates=2):
    """The router turns to the expert at its own sigma exactly where that one stops agreeing: r_j = E_j = the truth."""
    cut = float(ndtri(p))
    experts = (half_space(FAR * 0.5, Y, OTHER), half_space(cut, Y, OTHER), always(OTHER))
    sigmas = (0.5, 1.0, 0.75)
    return Problem(half_space(cut, 0, 1), experts[:candidates], sigmas[:candidates], cut, plan=PLAN)


def no_majority(p):
    """Three candidates without a majority; A and C tie where expert C, at the router's sigma, stops agreeing.

    p must be below 0.63, or B would be ahead by then.
    """
    cut, first = float(ndtri(p)), -0.1
    router = Steps((first, 2 * cut - first), (0, 1, 2))
    experts = (half_space(FAR * 0.25, Y, OTHER), half_space(FAR * 0.5, Y, OTHER), half_space(cut, Y, OTHER))
    return Problem(router, experts, (0.25, 0.5, 1.0), cut, plan=PLAN)


def three_way_tie(p):
    """All three candidates tie at the boundary. q_C = 1 - p is on the edge of its upper bound; expert C disagrees.

    p must exceed 2/3, or C would be the most probable.
    """
    second = float(ndtri(p))
    first = second - 2 * float(ndtri(2 / 3))
    experts = (half_space(FAR * 0.25, Y, OTHER), half_space(FAR * 0.5, Y, OTHER), always(OTHER))
    router = Steps((first, second), (0, 1, 2))
    return Problem(router, experts, (0.25, 0.5, 1.0), (first + second) / 2, plan=PLAN)


def friendly_coin_toss(p):
    """The router is at a coin toss, and the experts agree up to the boundary of the one at its sigma."""
    cut = float(ndtri(p))
    experts = (half_space(FAR * 0.5, Y, OTHER), half_space(cut, Y, OTHER))
    return Problem(half_space(EPSILON, 0, 1), experts, (0.5, 1.0), cut, plan=FEW)


def hostile_coin_toss():
    """The router is at a coin toss between experts that disagree: nothing can be claimed."""
    experts = (always(Y), always(OTHER))
    return Problem(half_space(EPSILON, 0, 1), experts, (1.0, 0.5), EPSILON, plan=FEW)


def class_coin_toss():
    """The router is sure, and its expert, at its own sigma, is at a coin toss: nothing can be claimed."""
    experts = (half_space(EPSILON, Y, OTHER), always(OTHER))
    return Problem(half_space(FAR, 0, 1), experts, (1.0, 0.5), EPSILON, plan=FEW)


# Votes


@lru_cache(maxsize=6)
def draw(problem, coupling, seed, trials=TRIALS):
    """Votes of every trial, each stream to its last look."""
    rng = np.random.default_rng([seed, COUPLINGS.index(coupling)])
    plan, models = problem.plan, ("router", *range(len(problem.experts)))
    counted = {model: [] for model in models}
    for size in (plan.n0, *np.diff(plan.looks, prepend=0)):
        noise = rng.standard_normal((trials, size))
        counted["router"].append(problem.router.count(noise, problem.sigma_e, len(problem.experts)))
        for i, (expert, sigma) in enumerate(zip(problem.experts, problem.sigmas, strict=True)):
            if sigma == problem.sigma_e and coupling != "apart":
                own = noise if coupling == "shared" else -noise
            else:  # who never changes its answer needs no noise
                own = rng.standard_normal((trials, size)) if expert.cuts else noise
            counted[i].append(expert.count(own, sigma, problem.classes))

    def votes(model, sigma):
        selection, *segments = counted[model]
        return Votes(sigma, selection, np.sum(segments, axis=0), plan, np.stack(segments, axis=1))

    return DualVotes(votes("router", problem.sigma_e), tuple(votes(i, s) for i, s in enumerate(problem.sigmas)))


def each(change, votes):
    """A change of the votes of every model."""
    if isinstance(votes, Votes):
        return change(votes)
    return DualVotes(change(votes.router), tuple(map(change, votes.experts)))


def cut_at(votes, looks):
    """The votes of one model up to a number of looks, the same for all inputs or one for each."""
    reached = np.arange(len(votes.plan.looks)) < np.reshape(looks, (-1, 1))
    segments = votes.segments * reached[:, :, None]
    return replace(votes, estimation=segments.sum(axis=1), segments=segments)


def stopped_at_random(votes, seed):
    """Every stream of every trial cut off at a look of its own, drawn without a look at the votes."""
    rng = np.random.default_rng(seed)
    return each(lambda v: cut_at(v, rng.integers(1, len(LOOKS) + 1, size=len(v))), votes)


# One trial, driven by a policy


def streams_of(problem, one_sigma=False):
    if one_sigma:
        return Single(problem.sigmas[:1], problem.classes)
    return Dual(problem.sigmas, problem.classes, problem.sigma_e)


def drive(policy, votes, row):
    """What a policy takes of the votes of one trial, as a tally."""
    if isinstance(votes, Votes):
        models = {(Stage.CLASS, votes.sigma): votes}
    else:
        models = {(Stage.ROUTER, votes.router.sigma): votes.router} | {(Stage.CLASS, e.sigma): e for e in votes.experts}
    tally = Tally()
    for wanted in policy(tally):
        for stream, upto in wanted.items():
            model = models[stream.stage, stream.sigma]
            steps = model.plan.steps(stream.part)
            counts = model.segments[row] if len(steps) > 1 else model.selection[row][None]
            for start, stop, given in zip((0, *steps), steps, counts, strict=False):
                if stop <= upto:
                    tally.add(Unit("x", stream, start, stop), given[None])
    return tally


def straddling(problem):
    """A grid with a point a hair beyond the truth, which it is an error to reach, among others on either side."""
    return Grid((0.0, 0.6 * problem.radius, problem.radius * (1 + 1e-9), 1.5 * problem.radius))


def fine(problem):
    """A tolerance so small that every look may still add something."""
    return Tolerance(0.05 * problem.radius)
