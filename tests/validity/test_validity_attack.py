"""Attacks as a test of certificates: what is sound withstands them, what is sabotaged does not.

Networks are half-spaces, so that the true radius is known, and certificates come from real votes. Of sound
certificates at alpha = 0.001 a broken one among 30 has probability 0.03 at most, and two 4e-4; a campaign is accepted
as long as `Attacks.chance` is above 1e-4.
"""

from dataclasses import replace

import numpy as np
import pytest

from dualrs import DualSmoothed, Effort, Smoothed, attack
from dualrs.attacks import attacker
from dualrs.sampling.noise import NoiseSource
from dualrs.votes import Purpose
from planes import IMAGE, Always, Plane, normal

SIGMA, REACH, MANY = 0.25, 0.4, 30
HARD = Effort(steps=10, restarts=1, copies=16, votes=200, verdict=20_000)
ACCEPTED = 1e-4


@pytest.fixture(autouse=True)
def known_verdicts(monkeypatch):
    """Verdicts have secret seeds; here they are numbers, so that a test that passes once passes always."""
    seeds = iter(range(1_000, 10**6))
    monkeypatch.setattr(attacker, "fresh_seed", lambda: next(seeds))


def single():
    return Smoothed(Plane(normal(0), REACH), SIGMA)


def routed():
    """The router changes its answer at REACH, and the expert it names then disagrees."""
    router = Plane(normal(1), REACH)
    return DualSmoothed(router, {0.25: Always(0), 0.5: Always(1)}, sigmas=(0.25, 0.5), sigma_e=0.5)


def certificates(model, alpha=0.001, n=300, rule=None):
    return [model.certify(IMAGE, n=n, n0=20, alpha=alpha, rule=rule, seed=seed) for seed in range(MANY)]


def tried(model, claims):
    images = np.stack([IMAGE] * len(claims))
    return attack(model, images, claims, effort=HARD, bracket=False, seed=0)


@pytest.mark.parametrize("make", [single, routed])
def test_sound_certificates_withstand(make):
    found = tried(make(), certificates(make()))
    assert len(found) > MANY / 2
    assert found.chance > ACCEPTED


@pytest.mark.parametrize("make", [single, routed])
def test_raised_levels_are_found(make):
    """Certificates at level 0.9 that are passed off as such at 0.001."""
    assert tried(make(), certificates(make(), alpha=0.9)).chance < ACCEPTED


@pytest.mark.parametrize("make", [single, routed])
def test_radii_times_1_3_are_found(make):
    claims = [replace(c, radius=1.3 * c.radius) for c in certificates(make(), n=3_000)]
    assert tried(make(), claims).chance < ACCEPTED


def test_wrong_sigma_is_found():
    """Radii as if the noise had been twice as large."""
    claims = [replace(c, radius=2 * c.radius) for c in certificates(single())]
    assert tried(single(), claims).chance < ACCEPTED


def test_routing_radius_ignored_is_found():
    claims = [replace(c, radius=c.r_c) for c in certificates(routed(), rule="paper")]
    assert min(c.radius for c in claims) > REACH
    assert tried(routed(), claims).chance < ACCEPTED


def test_certificate_on_known_noise_is_found(monkeypatch):
    """An image fitted to the noise of its name and a known seed: see test_known_noise. The verdict has other noise."""
    import test_known_noise as known

    class Biased(known.MostlyOdd):
        """Odd only with a few pixels more than half: less likely than even, wherever the image."""

        def forward(self, x):
            logits = super().forward(x)
            logits[:, 0] += 4
            return logits

    by_name = NoiseSource.address
    image = known.fitted(NoiseSource(Purpose.CERTIFY, known.SEED, by_name=True))
    model = Smoothed(Biased().eval(), known.SIGMA, batch_size=500)
    with monkeypatch.context() as sabotage:
        sabotage.setattr(
            NoiseSource,
            "address",
            lambda self, *rest: by_name(NoiseSource(self.purpose, self.seed, by_name=True), *rest),
        )
        claim = model.certify(image, n=known.N, n0=known.N0, seed=known.SEED, ids=[known.NAME])
    assert claim.prediction == known.ODD
    effort = replace(HARD, steps=2, walk_votes=64)
    assert attack(model, image, claim, effort=effort, bracket=False, seed=0).broken == 1
