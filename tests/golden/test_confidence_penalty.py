"""The paper's table of the confidence penalty: nine radii, sigma 1, N = 1e5 votes, alpha + beta = 0.001.

Once through the functions of the theory, once end to end through the rules, with a router so sure of itself
that the class is what limits the radius, as the caption of the table assumes.
"""

import numpy as np
import pytest

from dualrs.schemes import DualVotes, rule
from dualrs.theory.bounds import lower
from dualrs.theory.budget import ErrorBudget
from dualrs.theory.radius import gaussian_radius
from dualrs.votes import SamplingPlan, Votes

N = 100_000
TOTAL = 0.001  # alpha + beta
SIGMA = 1.0

TABLE = [  # alpha, beta, share of the votes for the top class, printed radius
    (1, 0, 0.99, "2.2900"),
    (1, 1, 0.99, "2.2877"),
    (1, 4, 0.99, "2.2848"),
    (1, 0, 0.8, "0.8277"),
    (1, 1, 0.8, "0.8267"),
    (1, 4, 0.8, "0.8256"),
    (1, 0, 0.6, "0.2409"),
    (1, 1, 0.6, "0.2401"),
    (1, 4, 0.6, "0.2391"),
]

cells = pytest.mark.parametrize(
    ("alpha", "beta", "share", "printed"),
    TABLE,
    ids=[f"{a}:{b} with {p:.0%} of the votes" for a, b, p, _ in TABLE],
)


@cells
def test_bound_at_the_share_of_the_class_gives_the_printed_radius(alpha, beta, share, printed):
    level = ErrorBudget(TOTAL).split(classifier=alpha, router=beta).classifier
    radius = gaussian_radius(SIGMA, lower(round(share * N), N, level))
    assert f"{radius:.4f}" == printed


@cells
def test_rule_gives_the_printed_radius_from_votes(alpha, beta, share, printed):
    plan = SamplingPlan(n0=100, n=N)
    for_class = round(share * N)
    expert = Votes(SIGMA, np.array([[100, 0]]), np.array([[for_class, N - for_class]]), plan)
    if beta == 0:
        certificate = rule("cohen").certify(expert, TOTAL)[0]
    else:
        router = Votes(SIGMA, np.array([[100, 0]]), np.array([[N, 0]]), plan)
        votes = DualVotes(router, (expert, expert))
        name = "paper" if beta == alpha else f"paper-{alpha}:{beta}"
        certificate = rule(name).certify(votes, TOTAL)[0]
        assert certificate.r_sigma > certificate.r_c
    assert certificate.limited_by == "class"
    assert certificate.prediction == 0
    assert f"{certificate.radius:.4f}" == printed
