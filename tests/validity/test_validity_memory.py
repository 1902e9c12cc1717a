"""Predictors with a memory keep their word about what comes later, and say nothing about what came before.

The memory of classes makes a claim without probability: every later input within a certified radius gets the class.
The predictor is built here from its definition, and asked. The memory of sigmas is `cohen` within regions of one sigma:
event, probability and false alarm as in test_validity_rules.py. Twins without the rule that balls of different marks
must not overlap are caught.
"""

import numpy as np
import pytest
from half_spaces import OTHER, N, Y, edge
from scipy.special import ndtr, ndtri
from verdict import ALPHA, Verdict

import dualrs.certificates.memory as memory
from dualrs.certificates import ABSTAIN, Certificates
from dualrs.certificates.memory import Balls, allocate, remember
from dualrs.votes import SamplingPlan, Votes

PLAN = SamplingPlan(100, N)


def apart(points):
    return lambda place: np.linalg.norm(points[:place] - points[place], axis=1)


def claims(prediction, radius):
    """What a rule without memory says of some inputs."""
    count, prediction = len(radius), np.asarray(prediction)
    certified = (prediction != ABSTAIN) & (radius > 0)
    return Certificates(
        np.where(certified, prediction, ABSTAIN), np.where(certified, radius, 0.0), np.full(count, 0.5), radius, radius,
        np.full(count, "class"), np.where(certified, "certified", "class undecided"),
    )  # fmt: skip


class Careless(Balls):
    """Balls of any marks may overlap."""

    def room(self, far, mark):
        return np.inf


def broken_promises(points, prediction, radius):
    """How many certificates a later input contradicts: one within the radius that gets another class."""
    found = remember(claims(prediction, radius), apart(points))
    broken = 0
    for place in np.flatnonzero(~found.abstained):
        near = np.linalg.norm(points[place + 1 :] - points[place], axis=1) < found.radius[place]
        broken += bool((found.prediction[place + 1 :][near] != found.prediction[place]).any())
    return broken


def crowds(seed, inputs=120):
    """Inputs close to one another, with classes at random and radii that overlap at random."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(0, 1, (inputs, 2))
    return points, rng.integers(-1, 3, inputs), rng.uniform(-0.05, 0.2, inputs)


@pytest.mark.parametrize("seed", range(20))
def test_memory_of_classes_keeps_every_promise(seed):
    """No probability: none may be broken, whatever the radii are."""
    assert broken_promises(*crowds(seed)) == 0


def test_twin_without_the_rule_of_balls_breaks_promises(monkeypatch):
    monkeypatch.setattr(memory, "Balls", Careless)
    assert sum(broken_promises(*crowds(seed)) for seed in range(20)) > 20


def test_whoever_asks_first_decides():
    """The attack before the image, and the image before the attack: one pair of inputs, each class certified once.

    The classifier is a half-space, the image 0.1 on its right side, the attack 0.1 on the other. Each has a sigma of
    its own, and at a large one the radius that holds for that sigma alone is 0.3, across the boundary.
    """
    image, attack = np.array([0.1, 0.0]), np.array([-0.1, 0.0])
    sides, radius = {0.1: Y, -0.1: OTHER}, np.array([0.3, 0.3])
    answers = {}
    for name, order in {"image first": (image, attack), "attack first": (attack, image)}.items():
        points = np.stack(order)
        found = remember(claims([sides[float(x[0])] for x in points], radius), apart(points))
        assert not found.abstained.any()
        assert len(set(found.prediction)) == 1, "the second gets the class of the first, with a certificate"
        answers[name] = int(found.prediction[0])
    assert answers == {"image first": Y, "attack first": OTHER}


def test_any_radius_would_be_certified():
    """It is the memory that makes the claim true: a radius of a hundred is kept like any other."""
    points = np.random.default_rng(0).uniform(0, 1, (50, 2))
    found = remember(claims(np.arange(50) % 3, np.full(50, 100.0)), apart(points))
    assert set(found.prediction) == {0}
    assert found.radius.min() > 98


# Balls of one sigma


def votes_of(p, inputs, sigma, rng):
    """Votes on some inputs, with the probability of Y on each, or on all."""

    def counts(total):
        made = np.zeros((inputs, 3), dtype=np.int64)
        made[:, Y] = rng.binomial(total, p, inputs)
        made[:, OTHER] = total - made[:, Y]
        return made

    return Votes(sigma, counts(PLAN.n0), counts(PLAN.n), PLAN)


def overclaimed(trials=200):
    """How often the certificate of an input reaches into the ball of an earlier one, where sigma is another.

    The first is sure at sigma 1, the second at 0.25 alone: at sigma 1 it is a coin toss, and so are images close to it,
    so that its true radius ends at the ball of the first, 0.1 away.
    """
    rng = np.random.default_rng(0)
    gap, ball = 0.1, float(ndtri(ALPHA ** (1 / N)))  # of votes that all agree
    points = np.array([[0.0, 0.0], [ball + gap, 0.0]])
    errors = 0
    for _ in range(trials):
        shares = {0.25: (0.5, 0.95), 1.0: (1.0, 0.5)}  # of Y on both inputs
        experts = [votes_of(np.array(p), 2, sigma, rng) for sigma, p in shares.items()]
        found = allocate(experts, ALPHA, apart(points))
        assert found.sigma_c.tolist() == [1.0, 0.25]
        errors += found.prediction[1] == Y and found.radius[1] > gap + 1e-9
    return Verdict(int(errors), trials)


def test_balls_of_one_sigma_do_not_reach_into_others(monkeypatch):
    """And those of the twin, which may overlap, do."""
    assert overclaimed().errors == 0
    monkeypatch.setattr(memory, "Balls", Careless)
    assert overclaimed().rejected


def test_balls_of_one_sigma_err_no_more_often_than_alpha():
    """An input alone: its own half-space is the nearest change, and the level of its bound is used up."""
    rng = np.random.default_rng(1)
    share, trials = edge(190, ALPHA), 2_000
    experts = [votes_of(float(ndtr(0.5 * ndtri(share))), trials, 1.0, rng), votes_of(share, trials, 0.5, rng)]
    truth = 0.5 * float(ndtri(share))  # the same half-space at both sigmas
    far_away = np.arange(trials)[:, None] * np.array([[100.0, 0.0]])
    found = allocate(experts, ALPHA, apart(far_away))
    false = ~found.abstained & ((found.prediction != Y) | (found.radius > truth))
    verdict = Verdict(int(false.sum()), trials)
    assert verdict.errors > 0
    assert not verdict.rejected, verdict
