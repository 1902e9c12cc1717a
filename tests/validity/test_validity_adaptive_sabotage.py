"""The tests of adaptive validity can fail: every twin with one mistake is caught by the verdict that the rule passes.

Event and probability as in test_validity_adaptive.py, on the same votes for both. The honest rule is rejected with
probability at most 1e-6; a twin errs so often (1.33 alpha and more) that it is accepted with less. Rules `paper` and
`fusion-pair` have a factor of two in hand on these problems, as at a fixed n, which hides a twin at nominal alpha.
"""

import pytest
from adaptive_sabotage import (
    fixed_level_at_the_stop,
    full_alpha_at_every_look,
    honest,
    judge_any,
    last_share_at_the_stop,
    shared_selection_in_the_bounds,
)
from adaptive_trials import (
    class_boundary,
    class_coin_toss,
    draw,
    edge,
    equal_boundaries,
    hostile_coin_toss,
    rival_boundary,
    routing_boundary,
)
from verdict import ALPHA

from dualrs.schemes import rule

STOPPING = (full_alpha_at_every_look, last_share_at_the_stop, fixed_level_at_the_stop)
# (rule, a problem, its noise, the twins that it catches)
TWINS = {
    "nosplit, the class changes first": ("nosplit", class_boundary(edge(ALPHA)), "shared", STOPPING),
    "nosplit, the routing changes first": ("nosplit", routing_boundary(edge(ALPHA)), "apart", STOPPING),
    "nosplit, both change together": ("nosplit", equal_boundaries(edge(ALPHA)), "shared", STOPPING[2:]),
    "nosplit, the class is a coin toss": (
        "nosplit",
        class_coin_toss(),
        "shared",
        (full_alpha_at_every_look, shared_selection_in_the_bounds),
    ),
    "nosplit, the router tosses a coin between foes": (
        "nosplit",
        hostile_coin_toss(),
        "shared",
        (fixed_level_at_the_stop, shared_selection_in_the_bounds),
    ),
    "fusion, the class changes first": ("fusion", class_boundary(edge(ALPHA), at_sigma_e=False), "apart", STOPPING),
    "fusion, the routing and its only rival change together": (
        "fusion",
        rival_boundary(edge(ALPHA / 2)),
        "antithetic",
        STOPPING,
    ),
    "fusion, the routing and its only rival, each on its own noise": (
        "fusion",
        rival_boundary(edge(ALPHA / 2)),
        "apart",
        STOPPING[:1],
    ),
    "fusion, the routing and one rival of two change together": (
        "fusion",
        rival_boundary(edge(ALPHA / 2), 3),
        "antithetic",
        (full_alpha_at_every_look, fixed_level_at_the_stop),
    ),
    "fusion, the class is a coin toss": (
        "fusion",
        class_coin_toss(),
        "shared",
        (shared_selection_in_the_bounds,),
    ),
}


@pytest.mark.parametrize("case", TWINS)
def test_sabotaged_reading_is_caught(case):
    """The same verdict accepts the rule and rejects its twins on the same votes."""
    name, problem, coupling, twins = TWINS[case]
    votes = draw(problem, coupling, 300 + list(TWINS).index(case))
    accepted = judge_any(honest(rule(name), votes), problem)
    assert not accepted.rejected, accepted
    for twin in twins:
        caught = judge_any(twin(rule(name), votes), problem)
        assert caught.rejected, f"{twin.__name__}: {caught}"


@pytest.mark.parametrize(
    ("problem", "twins"),
    [
        pytest.param(class_boundary(edge(ALPHA)), STOPPING, id="on the edge"),
        pytest.param(class_coin_toss(), (shared_selection_in_the_bounds,), id="coin toss"),
    ],
)
def test_sabotaged_reading_of_one_sigma_is_caught(problem, twins):
    votes = draw(problem, "apart", 320).experts[0]
    accepted = judge_any(honest(rule("cohen"), votes), problem)
    assert not accepted.rejected, accepted
    for twin in twins:
        caught = judge_any(twin(rule("cohen"), votes), problem)
        assert caught.rejected, f"{twin.__name__}: {caught}"


@pytest.mark.parametrize("name", ["paper", "fusion-pair"])
def test_rules_with_a_factor_of_two_in_hand_lose_it_to_the_looks(name):
    """At twice alpha they are what `nosplit` and `fusion` are on this problem, and the twin is caught there too."""
    problem = class_boundary(edge(ALPHA))
    votes = draw(problem, "shared", 321)

    class AtTwiceAlpha:
        @staticmethod
        def certify(votes, alpha):
            return rule(name).certify(votes, 2 * alpha)

    accepted = judge_any(honest(AtTwiceAlpha, votes), problem)
    assert not accepted.rejected, accepted
    assert judge_any(full_alpha_at_every_look(AtTwiceAlpha, votes), problem).rejected
