"""Rules on votes that were gathered under looks: by hand, stage by stage; and who refuses such votes."""

import numpy as np
import pytest
from scipy.special import ndtri

from dualrs.certificates import ABSTAIN, Outcome, predict, predict_dual
from dualrs.certificates.aces import aces
from dualrs.certificates.multiscale import multiscale as multiscale_radii
from dualrs.certificates.multiscale_authors import multiscale_authors as authors_radii
from dualrs.certificates.rule import concluded
from dualrs.errors import TooFewVotes, UnusableVotes
from dualrs.schemes import AcesVotes, DualVotes, rule
from dualrs.theory.bounds import lower, upper
from dualrs.votes import SamplingPlan, Votes

multiscale = concluded(multiscale_radii)
multiscale_authors = concluded(authors_radii)

PLAN = SamplingPlan(n0=10, n=400, looks=(100, 200, 400))
ALPHA = 0.1
FIXED = SamplingPlan(10, 400)


def votes(*segments, sigma=0.5, selected=0):
    """One input, cut off after the given segments; the selection votes are all for one answer."""
    answers = len(segments[0])
    given = np.zeros((1, len(PLAN.looks), answers), dtype=int)
    given[0, : len(segments)] = segments
    selection = np.zeros((1, answers), dtype=int)
    selection[0, selected] = PLAN.n0
    return Votes(sigma, selection, given.sum(axis=1), PLAN, given)


def low(level, *counts):
    """The best over the looks that were reached: a twelfth of the level at 100 votes, a sixth at 200, 3/4 at 400."""
    shares = (1 / 12, 1 / 6, 3 / 4)
    return max(float(lower(k, n, level * s)) for k, n, s in zip(counts, PLAN.looks, shares, strict=False))


def high(level, *counts):
    shares = (1 / 12, 1 / 6, 3 / 4)
    return min(float(upper(k, n, level * s)) for k, n, s in zip(counts, PLAN.looks, shares, strict=False))


SURE = votes([95, 5, 0], [94, 6, 0])
ROUTER = votes([80, 15, 5], [85, 10, 5], [165, 25, 10], sigma=1.0)
CORE = np.array([[1, 0, 0]])


def test_cohen_takes_the_best_look():
    found = rule("cohen").certify(SURE, ALPHA)[0]
    assert found.radius == pytest.approx(0.5 * ndtri(low(ALPHA, 95, 189)), rel=1e-12)
    assert found.prediction == 0


def test_a_lucky_look_counts_though_later_ones_were_not():
    lucky = votes([100, 0, 0], [60, 40, 0])
    found = rule("cohen").certify(lucky, ALPHA)[0]
    assert found.radius == pytest.approx(0.5 * ndtri(float(lower(100, 100, ALPHA / 12))), rel=1e-12)


@pytest.mark.parametrize(("name", "router", "classifier"), [("paper", 0.05, 0.05), ("nosplit", 0.1, 0.1)])
def test_two_stages_may_stop_at_different_looks(name, router, classifier):
    dual = DualVotes(ROUTER, (SURE, votes([1, 1, 98]), votes([1, 98, 1])))
    found = rule(name).certify(dual, ALPHA)[0]
    assert found.r_c == pytest.approx(0.5 * ndtri(low(classifier, 95, 189)), rel=1e-12)
    assert found.r_sigma == pytest.approx(1.0 * ndtri(low(router, 80, 165, 330)), rel=1e-12)
    assert found.radius == min(found.r_c, found.r_sigma)


def test_fusion_spends_each_bound_by_its_own_level_at_the_looks():
    """r_A at alpha, r_j at alpha/2, L_A and U_j at alpha/4; a rival at its first look, another not sampled."""
    agreeing = votes([97, 3, 0], sigma=0.75)
    unsampled = Votes(0.25, np.zeros((1, 3), int), np.zeros((1, 3), int), PLAN, np.zeros((1, 3, 3), int))
    found = rule("fusion").certify(DualVotes(ROUTER, (SURE, agreeing, unsampled)), ALPHA)[0]
    l_a = low(ALPHA / 4, 80, 165, 330)

    def excluded(*counts):
        u_j = high(ALPHA / 4, *counts)
        return max((ndtri(l_a) - ndtri(u_j)) / 2, ndtri(1 / 3) - ndtri(u_j))

    first = max(0.75 * ndtri(low(ALPHA / 2, 97)), excluded(15, 25, 50))
    second = excluded(5, 10, 20)  # no votes: it counts as never agreeing
    assert found.r_c == pytest.approx(0.5 * ndtri(low(ALPHA, 95, 189)), rel=1e-12)
    assert found.r_sigma == pytest.approx(min(first, second), rel=1e-12)


def test_pair_form_halves_the_level_before_the_looks_do():
    expert = votes([90, 6, 4], [88, 4, 8])
    found = rule("fusion-pair").certify(DualVotes(ROUTER, (expert, SURE, SURE)), ALPHA)[0]
    r_a = 0.5 / 2 * (ndtri(low(ALPHA / 2, 90, 178)) - ndtri(high(ALPHA / 2, 6, 12)))
    assert found.r_c == pytest.approx(r_a, rel=1e-12)


def test_undecided_at_every_look_abstains():
    found = rule("cohen").certify(votes([50, 50, 0], [51, 49, 0], [101, 99, 0]), ALPHA)[0]
    assert (found.prediction, found.outcome) == (ABSTAIN, Outcome.CLASS_UNDECIDED)


def test_rows_do_not_notice_each_other():
    alone = [rule("cohen").certify(v, ALPHA)[0] for v in (SURE, votes([100, 0, 0]), votes([60, 40, 0], [60, 40, 0]))]
    rows = [SURE, votes([100, 0, 0]), votes([60, 40, 0], [60, 40, 0])]
    together = Votes(
        0.5,
        np.concatenate([v.selection for v in rows]),
        np.concatenate([v.estimation for v in rows]),
        PLAN,
        np.concatenate([v.segments for v in rows]),
    )
    assert list(rule("cohen").certify(together, ALPHA)) == alone


@pytest.mark.parametrize(
    ("name", "share"), [("cohen", 1), ("paper", 1 / 2), ("nosplit", 1), ("fusion", 1 / 2), ("fusion-pair", 1 / 2)]
)
def test_plan_must_leave_the_last_look_enough_votes_for_its_share(name, share):
    """200 votes that all agree are bounded by level^(1/200), which exceeds 1/2 iff 0.75 of the level exceeds 2^-200."""
    plan, edge = SamplingPlan(1, 200, (100, 200)), 0.5**200 / (0.75 * share)
    rule(name).check(plan, 1.01 * edge)
    with pytest.raises(TooFewVotes, match=r"n = 200 cannot certify anything .* take n >= 201"):
        rule(name).check(plan, 0.99 * edge)
    rule(name).check(SamplingPlan(1, 200), 0.99 * edge)  # a fixed n has the whole level for them


# Who refuses


ONE_LOOK = Votes(0.5, np.array([[10, 0, 0]]), np.array([[380, 20, 0]]), FIXED)


@pytest.mark.parametrize(
    "certify",
    [
        pytest.param(lambda: predict(SURE, ALPHA), id="PREDICT"),
        pytest.param(lambda: predict_dual(DualVotes(ROUTER, (SURE,) * 3), ALPHA), id="PREDICT of two stages"),
        pytest.param(
            lambda: predict_dual(DualVotes(ONE_LOOK, (ONE_LOOK, SURE, ONE_LOOK)), ALPHA),
            id="PREDICT of two stages, one expert adaptive",
        ),
        pytest.param(lambda: multiscale([SURE, ROUTER], ALPHA), id="multiscale"),
        pytest.param(lambda: multiscale([ONE_LOOK, ROUTER], ALPHA), id="multiscale, one stage adaptive"),
        pytest.param(lambda: multiscale_authors([SURE, ROUTER], ALPHA), id="multiscale-authors"),
        pytest.param(
            lambda: multiscale_authors([ONE_LOOK, ROUTER], ALPHA), id="multiscale-authors, one stage adaptive"
        ),
        pytest.param(lambda: aces(AcesVotes(ROUTER, SURE, CORE, (0.5, 1.0)), ALPHA, 0.5), id="aces"),
        pytest.param(
            lambda: aces(AcesVotes(ROUTER, ONE_LOOK, CORE, (0.5, 1.0)), ALPHA, 0.5), id="aces, selector adaptive"
        ),
        pytest.param(
            lambda: aces(AcesVotes(ONE_LOOK, SURE, CORE, (0.5, 1.0)), ALPHA, 0.5), id="aces, classifier adaptive"
        ),
    ],
)
def test_counts_gathered_under_looks_are_refused_where_one_fixed_level_is_meant(certify):
    with pytest.raises(UnusableVotes, match=r"cannot use votes of an adaptive run: .* sample with a fixed n"):
        certify()


def test_a_single_look_is_no_adaptive_run():
    once = SamplingPlan(10, 400, (400,))
    table = Votes(0.5, ONE_LOOK.selection, ONE_LOOK.estimation, once)
    assert predict(table, ALPHA)[0].prediction == 0
    assert multiscale([table], ALPHA)[0].prediction == 0
