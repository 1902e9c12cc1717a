"""A cascade beside other models, and over another run: its ledger is the one that it would have had alone."""

import pytest
from test_jobs import DATA, PLAN, SIGMA_E, SIGMAS, deep, rows

from dualrs import Cascade, DualSmoothed
from dualrs.errors import ForeignLedger
from dualrs.jobs import Certification, certify_dataset, certify_together
from dualrs.storage import Ledger, verify
from dualrs.votes import SamplingPlan

SETTINGS = {"alpha": 0.01, "seed": 4, "indices": range(8)}


def cascade(network, **options):
    return Cascade(network, SIGMAS, batch_size=100, **options)


def run(path, model, rule=None, plan=PLAN, **options):
    certify_dataset(model, DATA, path, plan=plan, rule=model.rule(rule), **SETTINGS | options)
    return path


@pytest.mark.parametrize("all_votes", [True, False], ids=["all votes", "votes that the rule can use"])
def test_cascade_votes_beside_a_dual_model_as_it_does_alone(all_votes, tmp_path):
    classifier = deep(seed=7)
    dual = DualSmoothed(deep(seed=6), classifier, SIGMAS, SIGMA_E, batch_size=100)
    models = {"dual": (dual, "fusion"), "cascade": (cascade(classifier), "cascade-0.4")}
    jobs = [Certification(m, m.rule(rule), tmp_path / f"{name}.ledger") for name, (m, rule) in models.items()]
    certify_together(jobs, DATA, plan=PLAN, all_votes=all_votes, **SETTINGS)
    for name, (model, rule) in models.items():
        alone = run(tmp_path / f"{name}-alone.ledger", model, rule, all_votes=all_votes)
        assert rows(tmp_path / f"{name}.ledger") == rows(alone)


def test_votes_with_confidences_are_taken_over_and_others_are_not(tmp_path):
    """From a run with more votes, under another rule; a run that did not record confidences has other votes."""
    plan, more = SamplingPlan(PLAN.n0, 1000), SamplingPlan(PLAN.n0, 2000)
    old = run(tmp_path / "old.ledger", cascade(deep(seed=7)), all_votes=True, plan=more)
    network = deep(seed=7)
    taken = run(tmp_path / "taken.ledger", cascade(network), "cascade-0.4", plan, all_votes=True, reuse=old)
    asked = network.asked
    drawn = run(tmp_path / "drawn.ledger", cascade(network), "cascade-0.4", plan, all_votes=True)
    assert rows(taken) == rows(drawn)
    assert asked < (network.asked - asked) / 2  # networks are tried, and one unit of each stream is drawn again
    with Ledger.open(taken) as ledger:
        assert verify(ledger) == []
    plain = run(tmp_path / "plain.ledger", cascade(deep(seed=7), confidences=()), all_votes=True)
    with pytest.raises(ForeignLedger, match="another network was the class at sigma"):
        run(tmp_path / "refused.ledger", cascade(deep(seed=7)), reuse=plain)
