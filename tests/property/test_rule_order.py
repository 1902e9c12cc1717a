"""How the radii of the rules relate to each other on the same votes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from random_votes import another, crowded, crowds, with_estimation

from dualrs.schemes import DualVotes, rule
from dualrs.theory.bounds import lower
from dualrs.theory.radius import gaussian_radius

ROUNDING = 1e-9  # two routes to the same quantile differ by about this, relatively


def own_radii(crowd, level):
    """Radii of rule `cohen` on the router and on the chosen expert, each at a level of its own."""
    router = rule("cohen").certify(crowd.votes.router, level).radius
    experts = np.stack([rule("cohen").certify(e, level).radius for e in crowd.votes.experts])
    return router, experts[crowd.chosen, crowd.rows]


def routing_radius(crowd, level):
    """sigma_e * Phi^-1(L_A) with L_A at a level of its own."""
    router = crowd.votes.router
    held = router.estimation[crowd.rows, crowd.chosen]
    return gaussian_radius(router.sigma, lower(held, router.sampled, level))


def floor_of_fusion(crowd):
    """min(r_A at alpha, sigma_e * Phi^-1(L_A at alpha/4)); with two candidates L_A has alpha/2."""
    level = crowd.alpha / (2 if len(crowd.votes.experts) == 2 else 4)
    r_a = rule("nosplit").certify(crowd.votes, crowd.alpha).r_c
    return np.maximum(0, np.minimum(r_a, routing_radius(crowd, level)))


@crowded
@given(crowds(classes=st.integers(2, 10)))
def test_nosplit_is_never_below_paper(crowd):
    better, worse = (rule(name).certify(crowd.votes, crowd.alpha) for name in ("nosplit", "paper"))
    assert (better.radius >= worse.radius).all()
    assert (better.prediction == worse.prediction)[~worse.abstained].all()
    assert (better.radius > worse.radius)[~worse.abstained].all()


@crowded
@given(crowds(classes=st.integers(2, 10)))
def test_paper_is_never_above_either_stage_alone(crowd):
    paper = rule("paper").certify(crowd.votes, crowd.alpha)
    assert (paper.radius <= np.minimum(*own_radii(crowd, crowd.alpha))).all()
    np.testing.assert_array_equal(paper.radius, np.minimum(*own_radii(crowd, crowd.alpha / 2)))


@crowded
@given(crowds(classes=st.integers(2, 10)))
def test_nosplit_is_the_smaller_of_the_two_stages_alone(crowd):
    nosplit = rule("nosplit").certify(crowd.votes, crowd.alpha)
    np.testing.assert_array_equal(nosplit.radius, np.minimum(*own_radii(crowd, crowd.alpha)))


@crowded
@given(crowds(classes=st.integers(2, 10)))
def test_paper_with_twice_the_alpha_is_nosplit(crowd):
    alpha = min(crowd.alpha, 0.4)
    paper = rule("paper").certify(crowd.votes, 2 * alpha)
    np.testing.assert_array_equal(paper.radius, rule("nosplit").certify(crowd.votes, alpha).radius)


@crowded
@given(crowds(candidates=st.integers(3, 6), classes=st.integers(2, 10)))
def test_fusion_is_never_below_the_chosen_expert_and_a_router_at_a_quarter_of_alpha(crowd):
    fusion = rule("fusion").certify(crowd.votes, crowd.alpha)
    assert (fusion.radius >= floor_of_fusion(crowd) * (1 - ROUNDING)).all()


@crowded
@given(crowds(candidates=st.just(2), classes=st.integers(2, 10)))
def test_fusion_of_two_is_never_below_the_chosen_expert_and_a_router_at_half_of_alpha(crowd):
    fusion = rule("fusion").certify(crowd.votes, crowd.alpha)
    assert (fusion.radius >= floor_of_fusion(crowd)).all()


@crowded
@given(crowds(classes=st.integers(2, 10)))
def test_fusion_is_at_its_floor_where_nobody_agrees_and_one_candidate_takes_the_rest(crowd):
    """With n - n_A votes on one j, U_j = 1 - L_A, so (Phi^-1(L_A) - Phi^-1(U_j)) / 2 = Phi^-1(L_A).

    The other form of E_j is Phi^-1(1/K) + Phi^-1(L_A), below that. A candidate without any vote has a larger
    E_j, so the one j decides.
    """
    votes, rows = crowd.votes, crowd.rows
    k, n = len(votes.experts), votes.router.plan.n
    router = np.zeros_like(votes.router.estimation)
    held = votes.router.estimation[rows, crowd.chosen]
    router[rows, crowd.chosen] = held
    router[rows, another(crowd.rng, crowd.chosen, k)] = n - held
    experts = []
    for i, expert in enumerate(votes.experts):
        counts = expert.estimation.copy()
        others = crowd.chosen != i
        lost = counts[rows, crowd.label] * others
        counts[rows, crowd.label] -= lost
        counts[rows, another(crowd.rng, crowd.label, expert.answers)] += lost
        experts.append(with_estimation(expert, counts))
    crowd = type(crowd)(DualVotes(with_estimation(votes.router, router), tuple(experts)), crowd.alpha, crowd.rng)
    fusion = rule("fusion").certify(crowd.votes, crowd.alpha)
    np.testing.assert_allclose(fusion.radius, floor_of_fusion(crowd), rtol=ROUNDING, atol=1e-12)


@crowded
@given(crowds(classes=st.integers(2, 10)))
def test_fusion_never_goes_beyond_the_chosen_expert(crowd):
    """However well the others agree, expert A is the one that answers at the input itself."""
    fusion = rule("fusion").certify(crowd.votes, crowd.alpha)
    assert (fusion.radius <= own_radii(crowd, crowd.alpha)[1]).all()


@crowded
@given(crowds(classes=st.integers(3, 10)))
def test_every_rule_claims_the_class_of_the_selection_votes_or_nothing(crowd):
    for name in ("paper", "nosplit", "fusion", "fusion-pair"):
        certificates = rule(name).certify(crowd.votes, crowd.alpha)
        claimed = ~certificates.abstained
        assert (certificates.prediction == crowd.label)[claimed].all()
        assert (certificates.radius > 0)[claimed].all()
        assert (certificates.radius == 0)[~claimed].all()
        assert np.isfinite(certificates.radius).all()
