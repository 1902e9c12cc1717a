"""What a cascade samples under rule `cascade`, stage by stage, and what it is said to have taken."""

import numpy as np
import pytest

from dualrs.schemes import Cascade, rule
from dualrs.votes import SamplingPlan, Tally

SCHEME = Cascade((0.25, 1.0, 0.5), 3, confidences=(0.4,))
PLAN = SamplingPlan(20, 200)
ALPHA = 0.1
FORMS = ("cascade", "cascade-0.4", "cascade-0,0.4", "cascade-0.4,0.4,0.4", "cascade-0.4@0.7,0.6,0.5", "cascade@0.6")


def complete(seed):
    """All votes on one input, of stages that agree more often than not."""
    rng = np.random.default_rng(seed)
    tally, common = Tally(), rng.dirichlet(np.full(6, 0.2))
    for sigma in SCHEME.sigmas:
        p = common if rng.random() < 0.6 else rng.dirichlet(np.full(6, 0.2))
        for stream in (s for s in SCHEME.streams if s.sigma == sigma):
            tally.put(stream, 0, rng.multinomial(PLAN.votes(stream.part), p))
    return tally


def needed(votes, name):
    """What the policy takes of them."""
    tally = Tally()
    for wanted in SCHEME.needed(tally, PLAN, rule(name), ALPHA):
        for stream in wanted:
            assert not tally.counts.get(stream)  # nothing twice
            tally.put(stream, 0, votes.counts[stream][0])
    return tally


@pytest.mark.parametrize("name", FORMS)
def test_votes_said_to_be_taken_are_those_that_are(name):
    """Also where votes pass at some stages only, so that these have an answer more than the others."""
    everything = [complete(seed) for seed in range(60)]
    some = [needed(tally, name) for tally in everything]
    taken = [sum(int(c.sum()) for parts in t.counts.values() for c in parts.values()) for t in some]
    votes = SCHEME.gather(everything, PLAN)
    certificates = rule(name).certify(votes, ALPHA)
    np.testing.assert_array_equal(rule(name).drawn(votes, certificates, ALPHA), taken)
    assert len(set(taken)) > 2  # some stop at the first stage, some go on
    thrifty = rule(name).certify(SCHEME.gather(some, PLAN), ALPHA)
    np.testing.assert_array_equal(thrifty.radius, certificates.radius)
    np.testing.assert_array_equal(thrifty.prediction, certificates.prediction)
