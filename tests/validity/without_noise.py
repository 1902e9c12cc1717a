"""Two-stage models and cascades in which some networks see no noise, and whose true radius is known.

As half_spaces.py: every network reads one coordinate t. One without noise answers by the interval of t itself and
states the distance to the nearest cut, which is the truth.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from half_spaces import COUPLINGS, FAR, OTHER, PLAN, Problem, Steps, Y, always, edge, half_space
from scipy.optimize import brentq
from scipy.special import ndtri

from dualrs.schemes import MixedVotes
from dualrs.schemes.backed import BackedVotes
from dualrs.votes import SamplingPlan, Stated, Votes

SAFE = SamplingPlan(100, PLAN.n)  # selection votes that hardly ever choose otherwise


def answers_at(steps, t, sigma, total):
    """The likeliest answer at the points t; without noise, the answer."""
    if sigma:
        return steps.probabilities(t, sigma, total).argmax(axis=1)
    return np.array(steps.answers)[np.searchsorted(steps.cuts, t, side="right")]


def stated(steps, trials, total, plan):
    """What a network without noise states at t = 0, in every trial."""
    answer = int(answers_at(steps, np.zeros(1), 0.0, total)[0])
    radius = min((abs(cut) for cut in steps.cuts), default=np.inf)
    return Stated(np.tile(np.eye(total, dtype=np.int64)[answer], (trials, 1)), np.full(trials, radius), plan)


def counted(steps, sigma, total, plan, noise):
    """Votes of a smoothed network on noise for each part."""
    return Votes(sigma, *(steps.count(noise[part], sigma, total) for part in (0, 1)), plan)


def drawn_noise(trials, plan, rng):
    return [rng.standard_normal((trials, size)) for size in (plan.n0, plan.n)]


@dataclass(frozen=True)
class Mixture(Problem):
    """A router and experts, at their sigmas or without noise at 0, and the radius within which G keeps its class."""

    def predictor(self, t):
        """G at the points t."""
        t = np.atleast_1d(np.asarray(t, dtype=float))
        routed = answers_at(self.router, t, self.sigma_e, len(self.experts))
        each = [answers_at(e, t, s, self.classes) for e, s in zip(self.experts, self.sigmas, strict=True)]
        return np.stack(each)[routed, np.arange(len(t))]

    def draw(self, trials, coupling, seed):
        """Votes of every trial; noise of the experts is their own, that of the router, or its negative."""
        rng = np.random.default_rng([seed, COUPLINGS.index(coupling)])
        shared = drawn_noise(trials, self.plan, rng)

        def part(steps, sigma, total):
            if not sigma:
                return stated(steps, trials, total, self.plan)
            own = drawn_noise(trials, self.plan, rng) if coupling == "independent" else shared
            sign = -1 if coupling == "antithetic" and total == self.classes else 1
            return counted(steps, sigma, total, self.plan, [sign * noise for noise in own])

        router = part(self.router, self.sigma_e, len(self.experts))
        experts = [part(e, s, self.classes) for e, s in zip(self.experts, self.sigmas, strict=True)]
        return MixedVotes(router, tuple(experts))


def router_leaves_for_the_core(level, k=190):
    """A smoothed expert is chosen; the router turns to the core, which disagrees: what limits it is the router."""
    cut = float(ndtri(edge(k, level)))
    return Mixture(half_space(cut, 1, 0), (always(OTHER), half_space(FAR * 0.5, Y, OTHER)), (0.0, 0.5), cut)


def core_agrees_longer(level, k=190):
    """The router turns to the core, which agrees up to its own boundary; the chosen expert's is the nearer one."""
    cut = float(0.5 * ndtri(edge(k, level)))
    later = half_space(0.5, 1, 0)
    return Mixture(later, (half_space(FAR, Y, OTHER), half_space(cut, Y, OTHER)), (0.0, 0.5), cut)


def core_is_chosen(level, k=190):
    """The core is chosen; the router turns to a smoothed expert that agrees only up to the truth."""
    cut = float(ndtri(edge(k, level)))
    experts = (half_space(FAR, Y, OTHER), half_space(cut, Y, OTHER))
    return Mixture(half_space(0.3, 0, 1), experts, (0.0, 1.0), cut, plan=SAFE)


def core_gives_way():
    """The core is chosen, and its own boundary is the truth: nothing here is left to chance."""
    return Mixture(half_space(FAR, 0, 1), (half_space(0.4, Y, OTHER), always(OTHER)), (0.0, 0.5), 0.4)


def certified_router(level, k=190):
    """ACE: the class of a smoothed expert changes first, the router's choice stands longer."""
    cut = float(0.5 * ndtri(edge(k, level)))
    experts = (half_space(cut, Y, OTHER), always(OTHER))
    return Mixture(half_space(FAR, 0, 1), experts, (0.5, 1.0), cut, sigma_e=0.0)


def certified_router_first():
    """ACE: the router's choice changes first, and the other expert disagrees."""
    experts = (half_space(FAR * 0.5, Y, OTHER), always(OTHER))
    return Mixture(half_space(0.25, 0, 1), experts, (0.5, 1.0), 0.25, sigma_e=0.0)


def certified_router_between_friends(level, k=180):
    """ACE: the router's choice changes early, and the other expert agrees up to the truth."""
    cut = float(ndtri(edge(k, level)))
    experts = (half_space(FAR * 0.5, Y, OTHER), half_space(cut, Y, OTHER))
    return Mixture(half_space(0.05, 0, 1), experts, (0.5, 1.0), cut, sigma_e=0.0)


@dataclass(frozen=True)
class Backing:
    """Smoothed stages, sigma descending, and a last one without noise; c = 1/2 everywhere."""

    stages: tuple[Steps, ...]
    sigmas: tuple[float, ...]
    core: Steps
    radius: float
    classes: int = 3
    plan: SamplingPlan = SAFE

    def predictor(self, t):
        """The first class with more than half, else that of the core."""
        t = np.atleast_1d(np.asarray(t, dtype=float))
        answer = np.full(len(t), -1)
        for stage, sigma in zip(self.stages, self.sigmas, strict=True):
            p = stage.probabilities(t, sigma, self.classes)
            answer = np.where((answer < 0) & (p.max(axis=1) > 0.5), p.argmax(axis=1), answer)
        return np.where(answer < 0, answers_at(self.core, t, 0.0, self.classes), answer)

    @cached_property
    def label(self):
        return int(self.predictor(0.0)[0])

    def draw(self, trials, coupling, seed):
        """Votes of every trial; noise of its own for each stage, one noise, or its negative at every other stage."""
        rng = np.random.default_rng([seed, COUPLINGS.index(coupling)])
        shared, found = drawn_noise(trials, self.plan, rng), []
        for number, (stage, sigma) in enumerate(zip(self.stages, self.sigmas, strict=True)):
            own = drawn_noise(trials, self.plan, rng) if coupling == "independent" else shared
            sign = -1 if coupling == "antithetic" and number % 2 else 1
            found.append(counted(stage, sigma, self.classes, self.plan, [sign * noise for noise in own]))
        return BackedVotes(tuple(found), stated(self.core, trials, self.classes, self.plan))


def stages_stop_where_the_core_gives_way(level, k=190):
    """Both smoothed stages stop answering Y at the truth, and so does the core: any of three may claim too much."""
    p = edge(k, level)
    first, second = (float(sigma * ndtri(p)) for sigma in (1.0, 0.5))
    radius = first  # the second is moved there by its sigma
    core = half_space(radius, Y, OTHER)
    stages = (half_space(first, Y, OTHER), half_space(second, Y, OTHER))
    return Backing(stages, (1.0, 0.5), core, radius)


def stage_before_the_core(level, k=170):
    """The core answers; nearest is where another class gets the majority of the only stage before it."""
    p = edge(k, level)
    cut, middle = float(ndtri(p)), float(ndtri(p / 2))  # OTHER beyond the cut, the rest halved between the others
    return Backing((Steps((middle, cut), (0, Y, OTHER)),), (1.0,), half_space(FAR, Y, OTHER), cut)


def first_of_two_stages(level, k=170):
    """The same, with a second stage between that agrees."""
    before = stage_before_the_core(level, k)
    return replace(before, stages=(*before.stages, half_space(FAR * 0.5, Y, OTHER)), sigmas=(1.0, 0.5))


def second_stage_before_the_core(level, k=170):
    """The same at the second stage, the last smoothed one."""
    p = edge(k, level)
    cut, middle = float(0.5 * ndtri(p)), float(0.5 * ndtri(p / 2))
    silent = Steps((-float(ndtri(2 / 3)), float(ndtri(2 / 3))), (0, Y, OTHER))
    second = Steps((middle, cut), (0, Y, OTHER))
    return Backing((silent, second), (1.0, 0.5), half_space(FAR, Y, OTHER), cut)


def stage_falls_silent(width=0.8):
    """The only smoothed stage says Y up to the truth, where it has no majority left, and the core answers otherwise."""
    stage = Steps((-width, width), (0, Y, OTHER))
    radius = brentq(lambda t: float(stage.probabilities(np.array([t]), 1.0, 3)[0, Y]) - 0.5, 0.0, 2.0)
    return Backing((stage,), (1.0,), always(OTHER), radius)
