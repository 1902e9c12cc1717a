"""Every rule, on random small counts, against its slow re-implementation; and the cases that sit on an edge."""

import numpy as np
import pytest
import slow_rules

from dualrs.certificates import ABSTAIN
from dualrs.errors import BadSetting, UnusableVotes
from dualrs.schemes import DualVotes, rule
from dualrs.votes import SamplingPlan, Votes

SIGMAS = (0.12, 0.25, 0.37, 0.5, 1.0)
SLOW = {
    "paper": slow_rules.paper,
    "paper-1:4": lambda router, experts, alpha: slow_rules.paper(router, experts, alpha, (1, 4)),
    "paper-2.5:0.5": lambda router, experts, alpha: slow_rules.paper(router, experts, alpha, (2.5, 0.5)),
    "nosplit": slow_rules.nosplit,
    "fusion": slow_rules.fusion,
    "fusion-pair": slow_rules.fusion_pair,
}


def random_votes(rng, sigma, rows, answers, plan):
    """Counts from a sure, an unsure and a split model, row by row, so that every outcome occurs."""
    sharpness = rng.choice([0.05, 0.3, 1.0, 5.0], size=rows)
    p = np.stack([rng.dirichlet(np.full(answers, s)) for s in sharpness])
    return Votes(sigma, rng.multinomial(plan.n0, p), rng.multinomial(plan.n, p), plan)


def random_dual(rng, rows, candidates, classes, plan, lazy):
    experts = [random_votes(rng, s, rows, classes, plan) for s in SIGMAS[:candidates]]
    # the experts look at the same image: let half of the rows agree with the first one
    for e in experts[1:]:
        same = rng.random(rows) < 0.5
        e.estimation[same], e.selection[same] = experts[0].estimation[same], experts[0].selection[same]
    router = random_votes(rng, 1.0, rows, candidates, plan)
    if lazy:  # an expert that the router did not select may have no votes
        chosen = router.selection.argmax(axis=1)
        for i, e in enumerate(experts):
            drop = (chosen != i) & (rng.random(rows) < 0.5)
            e.estimation[drop], e.selection[drop] = 0, 0
    return DualVotes(router, tuple(experts))


def assert_same(certificate, expected):
    y, radius, sigma_c, r_c, r_sigma, limited_by, outcome = expected
    assert (certificate.prediction, certificate.sigma_c, certificate.limited_by, certificate.outcome) == (
        y,
        sigma_c,
        limited_by,
        outcome,
    )
    found = (certificate.radius, certificate.r_c, certificate.r_sigma)
    assert found == pytest.approx((radius, r_c, r_sigma), rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("alpha", [0.001, 0.05, 0.3])
@pytest.mark.parametrize("classes", [2, 10])
def test_cohen_is_its_definition(alpha, classes):
    votes = random_votes(np.random.default_rng(classes), 0.5, 100, classes, SamplingPlan(n0=5, n=40))
    certificates = rule("cohen").certify(votes, alpha)
    for row, certificate in enumerate(certificates):
        model = slow_rules.Model(0.5, votes.selection[row].tolist(), votes.estimation[row].tolist())
        assert_same(certificate, slow_rules.cohen(model, alpha))
    assert 0 < certificates.abstained.sum() < len(votes)


@pytest.mark.parametrize("lazy", [False, True], ids=["all experts sampled", "experts left out"])
@pytest.mark.parametrize("candidates", [2, 3, 5], ids=lambda k: f"{k} candidates")
@pytest.mark.parametrize("alpha", [0.001, 0.1])
@pytest.mark.parametrize("name", SLOW)
def test_two_stage_rule_is_its_definition(name, alpha, candidates, lazy):
    rng = np.random.default_rng([candidates, lazy])
    votes = random_dual(rng, 60, candidates, classes=4, plan=SamplingPlan(n0=7, n=60), lazy=lazy)
    certificates = rule(name).certify(votes, alpha)
    for row, certificate in enumerate(certificates):
        router, *experts = (
            slow_rules.Model(v.sigma, v.selection[row].tolist(), v.estimation[row].tolist())
            for v in (votes.router, *votes.experts)
        )
        assert_same(certificate, SLOW[name](router, experts, alpha))
    assert 0 < certificates.abstained.sum() < len(votes)


@pytest.mark.parametrize("name", ["cohen", *SLOW])
def test_no_inputs_give_no_certificates(name):
    def none(sigma, answers):
        return Votes(sigma, np.zeros((0, answers), dtype=int), np.zeros((0, answers), dtype=int), SamplingPlan(1, 10))

    votes = none(0.5, 3) if name == "cohen" else DualVotes(none(1.0, 2), (none(0.25, 3), none(0.5, 3)))
    assert len(rule(name).certify(votes, 0.001)) == 0


def two_stage_votes(n, router, experts, classes=3, dtype=np.int64):
    """One input; each model gives its votes as counts, and every selection vote to its first answer."""
    plan = SamplingPlan(n0=1, n=n)

    def votes(sigma, counts, answers):
        counts = np.array([counts + [0] * (answers - len(counts))], dtype=dtype)
        return Votes(sigma, np.eye(1, answers, dtype=dtype), counts, plan)

    sigmas = SIGMAS[: len(experts)]
    return DualVotes(
        votes(1.0, router, len(experts)), tuple(votes(s, e, classes) for s, e in zip(sigmas, experts, strict=True))
    )


@pytest.mark.parametrize(
    ("name", "share"),
    [
        pytest.param("cohen", 1, id="cohen, class at alpha"),
        pytest.param("paper", 2, id="paper, both stages at alpha over 2"),
        pytest.param("paper-1:4", 5, id="paper-1:4, class at alpha over 5"),
        pytest.param("nosplit", 1, id="nosplit, both stages at alpha"),
        pytest.param("fusion", 1, id="fusion, chosen expert at alpha"),
    ],
)
@pytest.mark.parametrize("n", [3, 5, 10, 40])
def test_bound_of_exactly_one_half_abstains(name, share, n):
    """n unanimous votes at level 2**-n bound the probability by exactly 1/2, and R = 0 claims nothing."""
    alpha = share * 0.5**n
    votes = two_stage_votes(n, [n], [[n], [n]]).experts[0] if name == "cohen" else two_stage_votes(n, [n], [[n], [n]])
    certificate = rule(name).certify(votes, alpha)[0]
    assert certificate.abstained
    assert certificate.prediction == ABSTAIN
    assert certificate.radius == 0
    assert certificate.r_c == pytest.approx(0, abs=1e-12)
    more = np.nextafter(alpha, 1) * (1 + 1e-9)  # the least bit more of alpha certifies the chosen class
    assert rule(name).certify(votes, more)[0].r_c > 0


def test_agreement_counts_the_votes_for_the_chosen_class_not_for_the_favourite_of_the_expert():
    """Expert 2 is just as sure as expert 1, but of another class: it cannot stand in for a lost router."""
    agreeing = two_stage_votes(100, [60, 40], [[100], [100, 0]])
    opposing = two_stage_votes(100, [60, 40], [[100], [0, 100]])
    assert rule("fusion").certify(agreeing, 0.001)[0].radius > 0
    certificate = rule("fusion").certify(opposing, 0.001)[0]
    assert certificate.abstained
    assert certificate.limited_by == "rival 0.25"
    assert certificate.outcome == "router undecided"


def test_fusion_certifies_where_the_router_has_no_majority():
    votes = two_stage_votes(1000, [400, 300, 300], [[1000], [1000], [1000]])
    assert rule("nosplit").certify(votes, 0.001)[0].outcome == "router undecided"
    certificate = rule("fusion").certify(votes, 0.001)[0]
    assert certificate.limited_by == "class"
    assert certificate.radius == certificate.r_c > 0


def test_fusion_excludes_a_candidate_that_stays_below_its_equal_share():
    """The second form of E_j alone: candidate 3 has no fewer votes than A, but surely less than a quarter."""
    n = 1_000_000
    votes = two_stage_votes(n, [240_000, 260_000, 260_000, 240_000], [[n]] * 3 + [[0, n]])
    l_a = slow_rules.low(240_000, n, 0.001 / 4)
    u_3 = slow_rules.high(240_000, n, 0.001 / 4)
    assert l_a < u_3 < 1 / 4
    certificate = rule("fusion").certify(votes, 0.001)[0]
    assert certificate.limited_by == "rival 0.5"
    assert certificate.radius == pytest.approx(slow_rules.quantile(1 / 4) - slow_rules.quantile(u_3), rel=1e-8)


def test_pair_form_needs_more_than_two_classes():
    votes = two_stage_votes(100, [100], [[100], [100]], classes=2)
    with pytest.raises(UnusableVotes, match="more than two classes"):
        rule("fusion-pair").certify(votes, 0.001)


@pytest.mark.parametrize("name", SLOW)
@pytest.mark.parametrize("dtype", [np.int32, np.uint16, np.uint64])
def test_type_of_the_integers_does_not_matter(name, dtype):
    """Counts of any integer type are accepted as votes, so every rule must read them alike."""
    plain = two_stage_votes(200, [150, 50, 0], [[180, 15, 5], [150, 40, 10], [20, 100, 80]])
    other = two_stage_votes(200, [150, 50, 0], [[180, 15, 5], [150, 40, 10], [20, 100, 80]], dtype=dtype)
    assert rule(name).certify(other, 0.001)[0] == rule(name).certify(plain, 0.001)[0]


@pytest.mark.parametrize("name", ["cohen", *SLOW])
@pytest.mark.parametrize("alpha", [0, 1, -0.5, float("nan")])
def test_alpha_is_checked_by_every_rule(name, alpha):
    votes = two_stage_votes(100, [100], [[100], [100]])
    with pytest.raises(BadSetting, match="alpha must lie"):
        rule(name).certify(votes.experts[0] if name == "cohen" else votes, alpha)
