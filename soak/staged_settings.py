"""The settings of rule cascade: every problem of `staged`, in every way that votes may come, and its twins."""

from collections.abc import Iterator, Sequence
from unittest.mock import patch

import numpy as np
from numpy.random import Generator

from dualrs.certificates import Certificates
from dualrs.certificates.cascade import cascade
from dualrs.theory.budget import ErrorBudget, StageBounds
from dualrs.votes import Votes as Counted
from soak.edges import Spot
from soak.setting import FIXED, LOOKS, Errors, Setting, Votes, false_claims
from soak.staged import NOISES, STAGED, Levels, Staged
from soak.staged_stops import STAGED_STOPS, by_the_policy, selected_again
from soak.stops import fine, straddling

RULE = "cascade"
BEGINNING = "the first stage is a coin toss"
NO_ROLES = ("three classes at the last stage", BEGINNING)  # of which no bound is for the adversary to choose
ONCE, BETWEEN = "all stages stop at once", "a stage between is taken by another class"
DRIVEN = (ONCE, "all stages stop at once, the last by majority", BETWEEN, "stages that disagree", BEGINNING)
STEPS = 2001  # points at which the closed form of a radius is checked


def staged_settings(rng: Generator, most: int) -> Iterator[Setting]:
    """Every setting, with two to ``most`` stages."""
    for case in STAGED:
        for noise in NOISES[:3] if case in NO_ROLES else NOISES:
            for votes in (*FIXED, *LOOKS):
                for stop in STAGED_STOPS:
                    if (stop == "stopped where false" and votes is not LOOKS[0]) or (
                        stop != "to the end" and votes in FIXED
                    ):
                        continue
                    yield _staged(case, int(rng.integers(2, most + 1)), noise, votes, stop)
    for case in DRIVEN:
        for target in (straddling, fine):
            yield _driven(case, int(rng.integers(2, most + 1)), LOOKS[0], target.__name__)
        yield _driven(case, int(rng.integers(2, most + 1)), FIXED[0], "no")
    yield from _twins()


def _shares(stages: int) -> Levels:
    """The shares of alpha that the rule gives to its bounds."""
    return [(1 / stages, (stages - k) / stages) for k in range(stages)]


def _staged(case: str, stages: int, noise: str, votes: Votes, stop: str) -> Setting:
    def make() -> Errors:
        problem = _checked(case, votes, _shares(stages))

        def errors(trials: int, rng: Generator) -> int:
            drawn = problem.draw(votes.plan(problem.n0), noise, trials, rng)
            versions = STAGED_STOPS[stop](drawn, rng)
            found = [false_claims(_certified(v, problem, votes.alpha), problem) for v in versions]
            return int(np.logical_or.reduce(found).sum())

        return errors

    what = f"{case}, {stages} stages, noise {noise}, {votes.name}, {stop}"
    return Setting(RULE, what, votes.alpha, make, weight=0.5 if stop == "stopped where false" else 1.0)


def _driven(case: str, stages: int, votes: Votes, target: str) -> Setting:
    """What the library itself takes of the votes, stage by stage and look by look; milliseconds a trial."""

    def make() -> Errors:
        problem = _checked(case, votes, _shares(stages))
        wanted = (fine if target == "fine" else straddling)(problem.radius)

        def errors(trials: int, rng: Generator) -> int:
            drawn = problem.draw(votes.plan(problem.n0), "apart", trials, rng)
            taken = by_the_policy(drawn, problem.limits, votes.alpha, wanted).falling
            return int(false_claims(_certified(taken, problem, votes.alpha), problem).sum())

        return errors

    how = "only what is needed" if target == "no" else f"driven by the policy to a {target} target"
    return Setting(RULE, f"{case}, {stages} stages, noise apart, {votes.name}, {how}", votes.alpha, make, weight=0.01)


def _twins() -> Iterator[Setting]:
    third = 1 / 3
    yield _twin(ONCE, "lower bounds at 1.5 times their level", [(1.5 * a, b) for a, b in _shares(2)])
    yield _twin(ONCE, "every bound at alpha", [(1.0, 1.0)] * 2)
    yield _twin(ONCE, "every bound at alpha", [(1.0, 1.0)] * 5)
    yield _twin(BETWEEN, "upper bounds at alpha", [(third, 1.0)] * 3)
    yield _twin("no stage is sure", "every bound at alpha", [(1.0, 1.0)] * 4)
    yield _twin(BEGINNING, "the class selected again by estimation votes", _shares(2), again=True)


def _twin(case: str, what: str, levels: Levels, again: bool = False) -> Setting:
    """The rule with other levels than its own, or with the class selected by the votes that bound it."""
    votes = FIXED[0]

    def make() -> Errors:
        problem = _checked(case, votes, levels)
        bounds = tuple(StageBounds(*map(np.asarray, (a * votes.alpha, b * votes.alpha))) for a, b in levels)
        noise = NOISES[0] if case in NO_ROLES else NOISES[3]

        def errors(trials: int, rng: Generator) -> int:
            drawn = problem.draw(votes.plan(problem.n0), noise, trials, rng)
            read = [selected_again(v) for v in drawn] if again else drawn
            with patch.object(ErrorBudget, "cascade", lambda budget, stages: bounds):
                return int(false_claims(_certified(read, problem, votes.alpha), problem).sum())

        return errors

    return Setting(RULE, f"{case}, {len(levels)} stages, {what}", votes.alpha, make, twin=True)


def _certified(votes: Sequence[Counted], problem: Staged, alpha: float) -> Certificates:
    return Certificates.conclude(cascade(votes, alpha, problem.limits))


def _checked(case: str, votes: Votes, levels: Levels) -> Staged:
    """A problem, after a look at whether its radius is where the cascade first changes its answer."""
    problem = STAGED[case](Spot(votes.plan(), votes.alpha), levels)
    assert list(problem.sigmas) == sorted(set(problem.sigmas), reverse=True), "the sigmas do not fall"
    if problem.label >= 0:
        inside = np.linspace(-problem.radius, problem.radius, STEPS)[1:-1]
        outside = np.array([-problem.radius, problem.radius]) * (1 + 1e-9)
        assert (problem.predictor(inside) == problem.label).all(), "the radius is too large"
        assert (problem.predictor(outside) != problem.label).any(), "the radius is too small"
    return problem
