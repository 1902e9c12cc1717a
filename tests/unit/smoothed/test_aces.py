"""Aces: a model of selector, classifier and core, from images to certificates and ledgers."""

import sqlite3

import numpy as np
import pytest
import torch
from torch import nn

from dualrs import Aces, Outcome
from dualrs.data.dataset import as_dataset
from dualrs.errors import BadModel, BadSetting, ForeignLedger, TrainingMode
from dualrs.jobs import certify_dataset
from dualrs.policy import Grid
from dualrs.schemes import AcesVotes, rule
from dualrs.storage import Ledger, verify
from dualrs.votes import PLAIN, Part, SamplingPlan, Stage, Stream

SIGMA, THRESHOLDS = 0.5, (0.2, 0.6)
SIZE = {"n": 200, "n0": 20, "alpha": 0.01, "seed": 0}


class Grey(nn.Module):
    """Two classes by the mean of the image: surer the further it is from grey, and by a factor."""

    def __init__(self, sharpness=4.0, classes=2):
        super().__init__()
        self.sharpness = nn.Parameter(torch.tensor(sharpness))
        self.classes = classes
        self.calls = 0
        self.eval()

    def forward(self, x):
        self.calls += 1
        distance = self.sharpness * (x.mean(dim=(1, 2, 3)) - 0.5)
        return torch.stack([-distance, distance, *[torch.full_like(distance, -99.0)] * (self.classes - 2)], dim=1)


class Always(nn.Module):
    """A core network that gives one class whatever it sees, and notes what it saw."""

    def __init__(self, answer=1, classes=2):
        super().__init__()
        self.logits = nn.Parameter(torch.nn.functional.one_hot(torch.tensor(answer), classes).float())
        self.seen = []
        self.eval()

    def forward(self, x):
        self.seen.append(x.clone())
        return self.logits.expand(len(x), -1)


# Of black and white the classifier is sure; of grey it is not; of the last it is half sure.
IMAGES = np.stack([np.full((1, 6, 6), level, dtype=np.uint8) for level in (0, 128, 255, 120, 190)])


def model(classifier=None, core=None, **options):
    return Aces(classifier or Grey(), core or Always(), SIGMA, THRESHOLDS, **{"batch_size": 50} | options)


def test_a_sure_input_is_certified_and_an_unsure_one_goes_to_the_core():
    found = model().certify(IMAGES, **SIZE)
    certified, predicted = Outcome.CERTIFIED, Outcome.PREDICTED
    assert [c.outcome for c in found] == [certified, predicted, certified, predicted, predicted]
    assert [c.prediction for c in found] == [0, 1, 1, 1, 1]
    assert [c.radius > 0 for c in found] == [True, False, True, False, False]
    assert str(found[1]) == "class 1 without a radius (by the core); seed 0"


def test_the_threshold_of_the_certificate_is_the_first_or_the_one_named():
    smoothed = model()
    assert smoothed.rule().name == "aces-0.2"
    assert smoothed.rule("aces-0.60").name == "aces-0.6"
    strict, lax = (smoothed.certify(IMAGES, **SIZE, rule=name) for name in ("aces-0.2", "aces-0.6"))
    assert (strict.sigma_c > 0).tolist() == [True, False, True, False, False]
    assert (lax.sigma_c > 0).tolist() == [True, False, True, False, True]


def test_the_core_sees_the_input_itself():
    core = Always()
    model(core=core).certify(IMAGES[1:2], **SIZE)
    preflight, last = core.seen[0], core.seen[-1]
    for seen in (preflight, last):
        assert torch.equal(seen[0], torch.full((1, 6, 6), 128 / 255))


@pytest.mark.parametrize("share", [True, False])
def test_selector_and_classifier_use_one_run_of_the_network_if_they_share_copies(share):
    network = Grey()
    smoothed = model(network, share=share)
    smoothed.engine.prepare(IMAGES[0])
    network.calls = 0
    smoothed.certify(IMAGES[0], **SIZE)
    # 20 selection votes of the selector, then 20 of the classifier and 200 of both
    batches = 1 + 1 + 4 if share else 1 + (20 + 200 + 200 + 49) // 50
    assert network.calls == batches


def test_votes_do_not_depend_on_whether_the_network_runs_once_or_twice():
    network = Grey()
    same = model(network).certify(IMAGES, **SIZE)
    twice = model(network, selector=Grey()).certify(IMAGES, **SIZE)
    assert list(same) == list(twice)


def test_a_selector_of_its_own_decides():
    """A selector that is always sure sends nothing to the core, one that never is everything."""
    assert (model(selector=Grey(1e6)).certify(IMAGES, **SIZE).sigma_c > 0).all()
    assert (model(selector=Grey(0.0)).certify(IMAGES, **SIZE).sigma_c == 0).all()


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        ({"core": Always(classes=3)}, BadModel, "different numbers of classes"),
        ({"core": Grey().train()}, TrainingMode, "core network is in training mode"),
        ({"core": "net"}, BadModel, "core network must be a torch.nn.Module"),
        ({"selector": Grey().train()}, TrainingMode, "selector is in training mode"),
    ],
)
def test_misuse_is_refused(change, error, sentence):
    with pytest.raises(error, match=sentence):
        model(**change).certify(IMAGES, **SIZE)


def test_prediction_is_the_class_of_the_certificate():
    smoothed = model()
    found = smoothed.predict(IMAGES, n=200, seed=0)
    assert set(found.outcome) <= {"predicted", "router undecided", "class undecided"}
    claimed = smoothed.certify(IMAGES, **SIZE)
    decided = (found.prediction >= 0) & ~claimed.abstained
    assert decided.any()
    assert (found.prediction == claimed.prediction)[decided].all()


def test_other_rules_are_refused():
    smoothed = model()
    for name in ("fusion", "cohen", "aces-0.3"):
        with pytest.raises(BadSetting, match=r"its rules are aces-0\.2, aces-0\.6"):
            smoothed.rule(name)
    with pytest.raises(BadSetting, match=r"such as aces-0\.5"):
        smoothed.rule("aces-low")
    with pytest.raises(BadSetting, match="positive and rising"):
        Aces(Grey(), Always(), SIGMA, (0.6, 0.2))


# Into a ledger


DATA = as_dataset((IMAGES, np.array([0, 0, 1, 1, 1])), "grey")


def certify(path, smoothed=None, name=None, **options):
    smoothed = smoothed or model()
    settings = {"alpha": 0.01, "seed": 0, "indices": range(len(IMAGES)), "plan": SamplingPlan(20, 200)} | options
    certify_dataset(smoothed, DATA, path, rule=smoothed.rule(name), **settings)
    return path


def test_the_ledger_keeps_the_answers_of_all_three_and_certificates_follow(tmp_path):
    with Ledger.open(certify(tmp_path / "a.ledger", name="aces-0.6")) as ledger:
        header = ledger.header
        assert (header.rule, header.scheme.thresholds, header.scheme.sigmas, header.scheme.router_sigma) == (
            "aces-0.6",
            THRESHOLDS,
            (0.5,),
            0.5,
        )
        assert set(header.models) == {"router", "class 0.5", "class 0.0"}
        assert verify(ledger) == []
        votes = ledger.votes([row.id for row in ledger.inputs()])
        assert isinstance(votes, AcesVotes)
        assert votes.core.sum(axis=1).tolist() == [0, 1, 0, 1, 1]  # asked where some threshold sends the input there
        concluded = [c.certificate for c in ledger.certificates().values()]
    assert (
        concluded
        == list(rule("aces-0.6").certify(votes, 0.01))
        == list(model().certify(IMAGES, **SIZE, rule="aces-0.6", ids=DATA.ids))
    )


def test_all_votes_asks_everybody(tmp_path):
    with Ledger.open(certify(tmp_path / "a.ledger", all_votes=True)) as ledger:
        votes = ledger.votes([row.id for row in ledger.inputs()])
        assert (votes.core.sum(axis=1) == 1).all()
        assert (votes.classifier.sampled == 200).all()


def test_a_run_goes_on_and_refuses_other_thresholds_and_another_core(tmp_path):
    path = certify(tmp_path / "a.ledger", indices=[0, 1])
    certify(path)
    with Ledger.open(path) as ledger, Ledger.open(certify(tmp_path / "whole.ledger")) as whole:
        assert [ledger.tally(i).counts.keys() for i in DATA.ids] == [whole.tally(i).counts.keys() for i in DATA.ids]
        assert ledger.certificates().keys() == whole.certificates().keys()
    with pytest.raises(ForeignLedger, match=r"thresholds is \(0.2, 0.6\) on record but \(0.2,\) was given"):
        certify(path, Aces(Grey(), Always(), SIGMA, THRESHOLDS[:1], batch_size=50))
    with pytest.raises(ForeignLedger, match=r"model 'class 0.0' is"):
        certify(path, model(core=Always(0)))


def test_an_altered_answer_of_the_core_is_found(tmp_path):
    path = certify(tmp_path / "a.ledger")
    with Ledger.open(path) as ledger:
        unit, counts = ledger.first_unit(PLAIN)
        forged = ledger.rows.of_unit(unit, counts[:, ::-1])
    connection = sqlite3.connect(path)
    connection.execute("UPDATE votes SET counts = ? WHERE sigma = 0", (forged[6],))
    connection.commit()
    with Ledger.open(path) as ledger:
        problems = verify(ledger)
    assert problems[0].startswith("input 1, selection votes 0 to 1 of class at sigma 0.0: the counts or their address")
    # sealed anew, by one who knows how
    connection.execute("UPDATE votes SET seal = ? WHERE sigma = 0 AND input = ?", (forged[7], unit.input_id))
    connection.execute("DELETE FROM votes WHERE sigma = 0 AND input <> ?", (unit.input_id,))
    connection.commit()
    connection.close()
    with Ledger.open(path) as ledger:
        assert f"input {unit.input_id}: prediction is recorded as 1, but is 0" in verify(ledger)


def test_an_adaptive_run_is_refused_before_it_begins(tmp_path):
    with pytest.raises(BadSetting, match="n is fixed"):
        certify(tmp_path / "a.ledger", plan=SamplingPlan(20, 200, (100, 200)), target=Grid())
    assert not (tmp_path / "a.ledger").exists()


def test_the_core_is_asked_once_and_the_plan_says_so():
    plan = SamplingPlan(20, 200)
    (unit,) = plan.units("a", PLAIN)
    assert (unit.start, unit.stop) == (0, 1)
    assert plan.steps_of(Stream(Stage.CLASS, Part.SELECTION, 0.5)) == (20,)
