"""Votes of one kind of run in another: whole streams of the same network on the same noisy copies are taken over."""

import pytest
from test_jobs import DATA, SIGMA_E, SIGMAS, deep, rows

from dualrs import Ace, Backed, DualSmoothed, Mixed
from dualrs.errors import ForeignLedger
from dualrs.jobs import certify_dataset
from dualrs.storage import Ledger, verify
from dualrs.votes import SamplingPlan
from small import plain_net

SETTINGS = {"alpha": 0.01, "seed": 4, "indices": range(5), "all_votes": True}
MORE, FEWER = SamplingPlan(20, 2000), SamplingPlan(20, 1000)
TOLD = {"confidences": (0.4, 0.6), "batch_size": 100}
MAKERS = {
    "mixed": lambda network: Mixed(deep(seed=6), network, plain_net(4), SIGMAS[1:], SIGMA_E, **TOLD),
    "backed": lambda network: Backed(network, plain_net(4), SIGMAS, **TOLD),
    "ace": lambda network: Ace(plain_net(18), network, SIGMAS, **TOLD),
}


def run(path, model, plan=FEWER, **options):
    certify_dataset(model, DATA, path, plan=plan, rule=model.rule(), **SETTINGS | options)
    return path


@pytest.fixture(scope="module")
def dual(tmp_path_factory):
    """A dual run, whose expert at sigma 1 votes on the router's copies."""
    model = DualSmoothed(deep(seed=6), deep(seed=7), SIGMAS, SIGMA_E, **TOLD)
    return run(tmp_path_factory.mktemp("dual") / "dual.ledger", model, MORE)


def saved(folder, kind, reuse):
    """Which share of its images a run is spared by votes of another, whose rows it has all the same."""
    found, asked = [], []
    for name, given in (("taken", reuse), ("drawn", None)):
        network = deep(seed=7)
        found.append(run(folder / f"{kind}-{name}.ledger", MAKERS[kind](network), reuse=given))
        asked.append(network.asked)
    assert rows(found[0]) == rows(found[1])
    with Ledger.open(found[0]) as ledger:
        assert verify(ledger) == []
    return 1 - asked[0] / asked[1]


def test_mixed_takes_router_and_experts_of_a_dual_run(tmp_path, dual):
    assert saved(tmp_path, "mixed", dual) > 0.5  # networks are tried, and one unit of each stream is drawn again


def test_votes_on_the_copies_of_a_router_are_drawn_where_there_is_none(tmp_path, dual):
    assert 0.2 < saved(tmp_path, "backed", dual) < 0.6
    assert saved(tmp_path, "ace", tmp_path / "backed-taken.ledger") > 0.5


def test_votes_without_confidences_are_those_of_another_network(tmp_path, dual):
    bare = Backed(deep(seed=7), plain_net(4), SIGMAS, confidences=(), batch_size=100)
    with pytest.raises(ForeignLedger, match="another network was the class at sigma"):
        run(tmp_path / "refused.ledger", bare, reuse=dual)
