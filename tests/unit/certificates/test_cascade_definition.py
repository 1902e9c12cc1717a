"""Rule `cascade` against its slow version in plain Python, and what it refuses."""

import numpy as np
import pytest
from slow_cascade import Stage
from slow_cascade import cascade as slow

from dualrs.certificates import Certificates
from dualrs.certificates.cascade import cascade
from dualrs.errors import UnusableVotes
from dualrs.votes import SamplingPlan, Votes

SIGMAS = (1.0, 0.6, 0.5, 0.25)
FIXED = SamplingPlan(9, 60)
LOOKS = SamplingPlan(9, 400, (100, 200, 400))
ROWS = 24


def random_stage(rng, sigma, common, plan, classes, passes):
    """Votes of a stage that has the common opinion in half of its rows, and no votes at all in some."""
    answers = classes + passes
    sharpness = rng.choice([0.1, 0.5, 3.0], size=ROWS)
    p = np.stack([rng.dirichlet(np.full(answers, s)) for s in sharpness])
    same = rng.random(ROWS) < 0.5
    p[same] = np.pad(common, ((0, 0), (0, passes)))[same]
    if passes:  # a pass takes a part from every class
        taken = rng.random((ROWS, 1)) * 0.4
        p[:, :-1] *= 1 - taken
        p[:, -1:] += taken * (1 - p[:, -1:])
    p /= p.sum(axis=1, keepdims=True)
    reached = rng.choice([0, *range(1, len(plan.looks) + 1)], size=ROWS)
    sizes = np.diff(plan.looks, prepend=0)
    segments = np.stack([rng.multinomial(size, p) for size in sizes], axis=1)
    segments *= (np.arange(len(sizes)) < reached[:, None])[:, :, None]
    selection = rng.multinomial(plan.n0, p)
    return Votes(sigma, selection, segments.sum(axis=1), plan, segments if plan.adaptive else None, bool(passes))


def as_stage(votes, row):
    plan = votes.plan
    if not plan.adaptive:
        looks = [(votes.estimation[row].tolist(), 1.0)] if votes.sampled[row] else []
        return Stage(votes.sigma, votes.selection[row].tolist(), looks, votes.passes)
    early, counts = sum(plan.looks[:-1]), votes.segments[row].cumsum(axis=0)
    shares = [*(0.25 * look / early for look in plan.looks[:-1]), 0.75]
    reached = [look <= votes.sampled[row] for look in plan.looks]
    looks = [(c.tolist(), s) for c, s, r in zip(counts, shares, reached, strict=True) if r]
    return Stage(votes.sigma, votes.selection[row].tolist(), looks, votes.passes)


@pytest.mark.parametrize("alpha", [0.001, 0.2])
@pytest.mark.parametrize("plan", [FIXED, LOOKS], ids=["fixed n", "looks"])
@pytest.mark.parametrize("classes", [2, 4], ids=lambda c: f"{c} classes")
@pytest.mark.parametrize(
    "passing", [(0, 0, 0, 0), (1, 0, 0, 0), (1, 1, 1, 1)], ids=["no pass", "one passes", "all pass"]
)
@pytest.mark.parametrize(
    "thresholds", [(), (0.5, 0.5), (0.7,), (0.6, 0.55, 0.5, 0.5), (0.9, 0.6, 0.6, 0.8)], ids=lambda t: f"limits {t}"
)
def test_cascade_is_its_definition(alpha, plan, classes, passing, thresholds):
    certified = 0
    for count in (2, 3, 4):
        rng = np.random.default_rng([classes, sum(passing), len(thresholds), count])
        common = rng.dirichlet(np.full(classes, 0.1), size=ROWS)
        stages = [
            random_stage(rng, s, common, plan, classes, p) for s, p in zip(SIGMAS[:count], passing[:count], strict=True)
        ]
        limits = thresholds[:count]
        found = Certificates.conclude(cascade(stages, alpha, limits))
        for row, certificate in enumerate(found):
            y, radius, sigma_c, r_c, r_sigma = slow([as_stage(v, row) for v in stages], alpha, limits)
            assert certificate.prediction == y
            assert certificate.radius == pytest.approx(radius, rel=1e-12, abs=1e-12)
            if y >= 0:
                assert certificate.sigma_c == sigma_c
                assert (certificate.r_c, certificate.r_sigma) == pytest.approx((r_c, r_sigma), rel=1e-12, abs=1e-12)
        certified += (~found.abstained).sum()
    assert 0 < certified < 3 * ROWS


def one(sigma, selection, estimation, passes=False):
    plan = SamplingPlan(sum(selection), 100)
    return Votes(sigma, np.array([selection]), np.array([estimation]), plan, passes=passes)


def certificate(*stages, thresholds=(), alpha=0.1):
    return Certificates.conclude(cascade(stages, alpha, thresholds))[0]


def test_unsure_stage_costs_nothing_and_one_that_is_sure_of_another_class_everything():
    below = one(0.5, [10, 0, 0], [99, 1, 0])
    unsure = certificate(one(1.0, [4, 3, 3], [40, 30, 30]), below)
    assert (unsure.prediction, unsure.limited_by) == (0, "stage 1")
    assert unsure.radius > 0
    split = certificate(one(1.0, [4, 3, 3], [10, 85, 5]), below)
    assert (split.abstained, split.sigma_c) == (True, 1.0)  # the stage that it is about


def test_stages_that_agree_help_each_other():
    """The noisy one stops at once and the other is sure: the larger of their radii counts."""
    noisy, sharp = one(1.0, [10, 0, 0], [80, 10, 10]), one(0.9, [10, 0, 0], [100, 0, 0])
    alone = certificate(noisy, one(0.9, [10, 0, 0], [0, 0, 0]))
    assert 0 < alone.radius < certificate(noisy, sharp).radius


def test_pass_counts_among_the_votes_and_is_never_predicted():
    stages = one(1.0, [0, 1, 0, 9], [0, 10, 0, 90], passes=True), one(0.5, [0, 1, 0, 9], [0, 10, 0, 90], passes=True)
    found = certificate(*stages)
    assert found.prediction == 1  # by plain majority of the classes of the last stage
    assert found.radius > 0
    assert certificate(*stages, thresholds=(0.5, 0.5)).abstained


def test_class_of_the_first_stage_that_is_sure_counts_whatever_was_sampled():
    """Without estimation votes there the certificate abstains; it does not turn to the class of the next stage."""
    sure = one(1.0, [10, 0, 0], [0, 0, 0])
    assert certificate(sure, one(0.5, [0, 10, 0], [0, 100, 0])).abstained


def test_order_of_the_stages_is_checked():
    a, b = one(1.0, [10, 0, 0], [90, 5, 5]), one(0.5, [10, 0, 0], [90, 5, 5])
    with pytest.raises(UnusableVotes, match="falling sigmas"):
        cascade([b, a], 0.1)
    with pytest.raises(UnusableVotes, match="falling sigmas"):
        cascade([a, a], 0.1)


@pytest.mark.parametrize("threshold", [0.49, 0.0, -1.0, 1.0, float("nan")])
def test_threshold_below_one_half_is_refused(threshold):
    a, b = one(1.0, [10, 0, 0], [90, 5, 5]), one(0.5, [10, 0, 0], [90, 5, 5])
    with pytest.raises(UnusableVotes, match="at least 1/2 and below 1"):
        cascade([a, b], 0.1, (0.6, threshold))


def test_stage_that_may_decide_the_class_needs_selection_votes():
    a, b = one(1.0, [4, 3, 3], [40, 30, 30]), one(0.5, [0, 0, 0], [90, 5, 5])
    with pytest.raises(UnusableVotes, match=r"selection votes at sigma 0\.5"):
        cascade([a, b], 0.1)
