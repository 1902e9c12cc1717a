"""The rules of the peers against slow versions in plain Python, and what they say and refuse."""

import math

import numpy as np
import pytest
from scipy.stats import chi2
from slow_rules import INF, Model, first_maximum, high, low, majority, quantile, verdict

from dualrs.certificates import ABSTAIN, Outcome
from dualrs.certificates.aces import aces, smoothed_at
from dualrs.certificates.multiscale import multiscale as multiscale_radii
from dualrs.certificates.multiscale_authors import multiscale_authors as authors_radii
from dualrs.certificates.rule import concluded
from dualrs.errors import UnusableVotes
from dualrs.schemes import AcesVotes, rule
from dualrs.votes import SamplingPlan, Votes

multiscale = concluded(multiscale_radii)
multiscale_authors = concluded(authors_radii)

ALPHA = 0.01


def slow_cascade(models, alpha, levels, others_high):
    """From docs/guarantees.md: down while hi < 1/2; then the own radius, and what each passed stage leaves."""
    stages = sorted(models, key=lambda m: -m.sigma)
    for s, stage in enumerate(stages):
        y = first_maximum(stage.selection)
        if high(stage.estimation[y], stage.n, levels(alpha, s)) < 0.5 and s + 1 < len(stages):
            continue
        passed = [(-m.sigma * quantile(others_high(m, y, levels(alpha, s))), m.sigma) for m in stages[:s]]
        weakest, sigma = min(passed, key=lambda p: p[0], default=(INF, stages[0].sigma))
        return verdict(y, stage.sigma, majority(stage, y, levels(alpha, s)), weakest, f"stage {sigma:g}")
    raise AssertionError


def sound_others(model, y, level):
    return high(max(c for i, c in enumerate(model.estimation) if i != y), model.n, level)


def authors_others(model, y, level):
    """Goodman's simultaneous interval over cells of at least five votes, read off the authors' description."""
    cells, pool = [], 0
    for count in sorted((c for i, c in enumerate(model.estimation) if i != y), reverse=True):
        if count >= 5:
            cells.append(count)
        elif pool + count >= 5:
            cells.append(pool + count)
            pool = 0
        else:
            pool += count
    if cells:
        cells[-1] += pool
    k, n = len(cells) + 1, model.n
    if k <= 2:
        return 1 - low(model.estimation[first_maximum(model.selection)], n, level)
    q = chi2.isf(2 * level / k, 1)
    return max((2 * c + q + math.sqrt(q * q + 4 * c * q * (1 - c / n))) / (2 * (q + n)) for c in cells)


SLOW = {
    "sound": (multiscale, lambda models, a: slow_cascade(models, a, lambda a, s: a / 2, sound_others)),
    "authors": (
        multiscale_authors,
        lambda models, a: slow_cascade(models, a, lambda a, s: a / (s + 1), authors_others),
    ),
}


def random_stages(rng, inputs=150, classes=10, plan=SamplingPlan(20, 300)):  # noqa: B008 - frozen
    """Votes at three sigmas, ascending, from shares that are mostly near one half or below."""
    found = []
    for sigma in (0.25, 0.5, 1.0):
        p = rng.dirichlet(np.full(classes, 0.3), size=inputs)
        p[:, 0] += rng.choice([0, 0, 1, 10], size=inputs)
        p /= p.sum(axis=1, keepdims=True)
        found.append(Votes(sigma, rng.multinomial(plan.n0, p), rng.multinomial(plan.n, p), plan))
    return found


@pytest.mark.parametrize("kind", SLOW)
@pytest.mark.parametrize("classes", [2, 3, 10])
def test_cascade_is_what_the_definition_says(kind, classes):
    fast, slow = SLOW[kind]
    votes = random_stages(np.random.default_rng(classes), classes=classes)
    found = fast(votes, ALPHA)
    expected = [
        slow([Model(v.sigma, v.selection[i], v.estimation[i]) for v in votes], ALPHA) for i in range(len(votes[0]))
    ]
    prediction, radius, sigma_c, r_c, r_sigma, limit, outcome = (list(column) for column in zip(*expected, strict=True))
    assert found.prediction.tolist() == prediction
    assert found.sigma_c.tolist() == sigma_c
    assert found.outcome.tolist() == outcome
    assert found.limited_by.tolist() == limit
    for ours, theirs in ((found.radius, radius), (found.r_c, r_c), (found.r_sigma, r_sigma)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    assert len(set(sigma_c)) > 1  # the comparison is not of one stage alone
    assert classes == 2 or len({s for s, o in zip(sigma_c, outcome, strict=True) if o == "certified"}) > 1


def test_order_of_the_stages_does_not_matter():
    votes = random_stages(np.random.default_rng(0))
    np.testing.assert_array_equal(multiscale(votes, ALPHA).radius, multiscale(votes[::-1], ALPHA).radius)


def test_a_single_stage_is_cohen_at_half_the_level():
    votes = random_stages(np.random.default_rng(0))[0]
    np.testing.assert_array_equal(multiscale([votes], ALPHA).radius, rule("cohen").certify(votes, ALPHA / 2).radius)


@pytest.mark.parametrize("fast", [multiscale, multiscale_authors])
def test_stages_that_are_not_reached_need_no_votes(fast):
    votes = random_stages(np.random.default_rng(1))
    whole = fast(votes, ALPHA)
    thrifty = []
    for v in votes:
        reached = (whole.sigma_c <= v.sigma)[:, None]
        thrifty.append(Votes(v.sigma, v.selection * reached, v.estimation * reached, v.plan))
    found = fast(thrifty, ALPHA)
    np.testing.assert_array_equal(found.radius, whole.radius)
    np.testing.assert_array_equal(found.prediction, whole.prediction)


def test_stage_that_is_reached_without_votes_is_named():
    votes = random_stages(np.random.default_rng(1))
    nothing = np.zeros_like(votes[0].selection)
    votes[0] = Votes(0.25, nothing, nothing, votes[0].plan)
    with pytest.raises(UnusableVotes, match=r"no votes at sigma 0\.25, which the cascade reaches"):
        multiscale(votes, ALPHA)
    with pytest.raises(UnusableVotes, match="one sigma at least"):
        multiscale([], ALPHA)


# ACES


PLAN = SamplingPlan(10, 100)
TWO = np.array([[0, 0, 1]])  # the core network answers class 2
TWO_THRESHOLDS = (0.5, 1.0)


def one_input(counts, sigma=1.0):
    counts = np.array([counts])
    return Votes(sigma, counts * PLAN.n0 // PLAN.n, counts, PLAN)


def test_low_entropy_goes_to_the_smoothed_classifier_and_the_smaller_radius_counts():
    votes = AcesVotes(one_input([90, 10, 0]), one_input([0, 80, 20], 0.5), TWO, TWO_THRESHOLDS)
    (found,) = aces(votes, 0.1, threshold=0.5)
    r_sigma, r_c = quantile(low(90, 100, 0.05)), 0.5 * quantile(low(80, 100, 0.05))
    assert (found.prediction, found.outcome, found.sigma_c) == (1, Outcome.CERTIFIED, 0.5)
    assert (found.r_sigma, found.r_c) == pytest.approx((r_sigma, r_c))
    assert found.radius == pytest.approx(min(r_sigma, r_c))


def test_high_entropy_goes_to_the_core_without_a_radius():
    votes = AcesVotes(one_input([10, 10, 80]), one_input([0, 80, 20]), TWO, TWO_THRESHOLDS)
    found = aces(votes, 0.1, threshold=0.5)
    assert (found[0].prediction, found[0].radius, found[0].outcome) == (2, 0.0, Outcome.PREDICTED)
    assert not found.abstained[0]
    assert str(found[0]) == "class 2 without a radius (by the core)"


def test_several_thresholds_from_one_stream():
    """Bins add up: at threshold t, the entropy is low where it exceeds t thresholds at most."""
    votes = AcesVotes(one_input([40, 50, 10]), one_input([0, 100, 0]), TWO, TWO_THRESHOLDS)
    assert aces(votes, 0.1, threshold=0.5)[0].outcome is Outcome.PREDICTED  # 60 of 100 exceed the first
    assert aces(votes, 0.1, threshold=1.0)[0].r_sigma == pytest.approx(quantile(low(90, 100, 0.05)))
    with pytest.raises(UnusableVotes, match=r"about the thresholds 0\.5, 1; there is no 0\.7 among them"):
        aces(votes, 0.1, threshold=0.7)


def test_selection_votes_choose_alike_for_the_rule_and_for_whoever_asks_before_it():
    """Ties too: they go to the classifier."""
    rng = np.random.default_rng(0)
    selection = rng.multinomial(10, rng.dirichlet(np.ones(3), 200))
    first, last = np.tile(np.eye(3, dtype=np.int64)[[0, 2]], (200, 1, 1)).transpose(1, 0, 2)
    selector = Votes(1.0, selection, 10 * selection, PLAN)
    certain = Votes(1.0, 10 * first, 100 * first, PLAN)
    votes = AcesVotes(selector, certain, last, TWO_THRESHOLDS)
    smoothed = smoothed_at(selection)
    for k, threshold in enumerate(TWO_THRESHOLDS):
        np.testing.assert_array_equal(aces(votes, 0.1, threshold).sigma_c > 0, smoothed[:, k])
    assert (selection.cumsum(axis=1)[:, :2] == 5).any()


def test_undecided_choice_abstains_on_either_side():
    for counts in ([51, 49, 0], [49, 51, 0]):
        votes = AcesVotes(
            Votes(1.0, np.array([[counts[0] > 50, counts[1] > 50, 0]]) * 10, np.array([counts]), PLAN),
            one_input([0, 80, 20]),
            TWO,
            TWO_THRESHOLDS,
        )
        found = aces(votes, 0.1, threshold=0.5)[0]
        assert (found.prediction, found.outcome) == (ABSTAIN, Outcome.ROUTER_UNDECIDED)


def test_classifier_and_core_need_votes_only_where_they_are_selected():
    none = np.zeros((1, 3), dtype=np.int64)
    nothing = Votes(0.5, none, none, PLAN)
    assert aces(AcesVotes(one_input([0, 100]), nothing, TWO, (0.5,)), 0.1, 0.5)[0].prediction == 2
    assert aces(AcesVotes(one_input([100, 0]), one_input([0, 100, 0]), none, (0.5,)), 0.1, 0.5)[0].prediction == 1
    with pytest.raises(UnusableVotes, match="input 0 has no votes of the classifier, which is selected"):
        aces(AcesVotes(one_input([100, 0]), nothing, TWO, (0.5,)), 0.1, 0.5)
    with pytest.raises(UnusableVotes, match="input 0 has no answer of the core network, which is selected"):
        aces(AcesVotes(one_input([0, 100]), nothing, none, (0.5,)), 0.1, 0.5)


def test_votes_that_do_not_belong_together_are_refused():
    votes = one_input([100, 0, 0])
    with pytest.raises(UnusableVotes, match="same inputs"):
        AcesVotes(votes, votes, np.zeros((2, 3), dtype=np.int64), TWO_THRESHOLDS)
    with pytest.raises(UnusableVotes, match="3 answers but there are 1 thresholds"):
        AcesVotes(votes, votes, TWO, (0.5,))
