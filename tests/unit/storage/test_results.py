import numpy as np
import pytest
from storage_cases import a_header, edit, finish, finished, names, one_stage_header

from dualrs.errors import BadSetting, BadTable, LedgerError, TooFewVotes, UnusableVotes
from dualrs.schemes import rule
from dualrs.storage import UNLABELLED, Ledger, Results, derive


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(finished(tmp_path / "run.ledger")) as ledger:
        yield ledger


def some(**columns):
    table = {
        "ids": np.array(["a", "b"]),
        "index": np.array([0, 1]),
        "label": np.array([1, 0]),
        "prediction": np.array([1, 1]),
        "radius": np.array([0.5, 0.25]),
        "seconds": np.array([1.0, 2.0]),
    }
    return Results(**(table | columns))


def test_results_are_the_recorded_certificates(ledger):
    results, certificates = derive(ledger)
    kept = [c.certificate for c in ledger.certificates().values()]
    assert results.ids.tolist() == names(6)
    assert results.index.tolist() == list(range(6))
    assert results.label.tolist() == [0, 1, 2, 3, 4, 0]
    assert results.prediction.tolist() == [c.prediction for c in kept]
    assert results.radius.tolist() == [c.radius for c in kept]
    assert results.sigma_c.tolist() == [c.sigma_c for c in kept]
    assert results.seconds.tolist() == [1.5] * 6
    assert list(certificates) == kept


def test_another_rule_or_alpha_for_display(ledger):
    results = derive(ledger, rule="paper", alpha=0.05)[0]
    expected = rule("paper").certify(ledger.votes(names(6)), 0.05)
    assert np.array_equal(results.radius, expected.radius)
    assert (results.radius != derive(ledger)[0].radius).any()


def test_an_alpha_that_the_votes_cannot_reach(tmp_path):
    path = finished(tmp_path / "run.ledger", one_stage_header(n=100))
    with Ledger.open(path) as ledger, pytest.raises(TooFewVotes):
        derive(ledger, alpha=1e-40)[0]


def test_the_checks_of_the_rule_apply(ledger):
    with pytest.raises(BadSetting, match="unknown rule"):
        derive(ledger, rule="best")[0]
    with pytest.raises(BadSetting, match="alpha"):
        derive(ledger, alpha=2)[0]
    with pytest.raises(UnusableVotes, match="one sigma"):
        derive(ledger, rule="cohen")[0]


def test_only_concluded_inputs_in_the_order_of_positions(tmp_path):
    with Ledger.create_or_resume(tmp_path / "run.ledger", one_stage_header()) as ledger:
        ledger.add_inputs([("toy/2", 30, None), ("toy/0", 10, 1), ("toy/1", 20, 0), ("toy/3", 5, 2)])
        finish(ledger, ["toy/2", "toy/0", "toy/3"])
        results = derive(ledger)[0]
    assert results.ids.tolist() == ["toy/3", "toy/0", "toy/2"]
    assert results.index.tolist() == [5, 10, 30]
    assert results.label.tolist() == [2, 1, UNLABELLED]
    assert results.labelled.tolist() == [True, True, False]


@pytest.mark.parametrize("name", ["cohen", "paper", "nosplit", "fusion", "fusion-pair"])
def test_a_run_without_conclusions_has_no_results(tmp_path, name):
    header = one_stage_header() if name == "cohen" else a_header(rule=name)
    with Ledger.create_or_resume(tmp_path / "run.ledger", header) as ledger:
        assert len(derive(ledger)[0]) == 0


@pytest.mark.parametrize(
    "sabotage",
    [
        "UPDATE inputs SET label = 3 WHERE id = 'toy/1'",
        "UPDATE certificates SET seconds = 0 WHERE input = 'toy/1'",
        "UPDATE votes SET seal = '' WHERE input = 'toy/1'",
        "UPDATE header SET fields = replace(fields, '0.01', '0.02')",
    ],
)
def test_nothing_is_derived_from_what_was_edited(tmp_path, sabotage):
    path = finished(tmp_path / "run.ledger")
    edit(path, sabotage)
    with Ledger.open(path) as ledger, pytest.raises(LedgerError, match=r"toy/1|header"):
        derive(ledger)[0]


def test_correct_needs_a_claim_and_a_label():
    results = Results(
        ids=np.array(["a", "b", "c", "d"]),
        index=np.arange(4),
        label=np.array([1, 0, UNLABELLED, UNLABELLED]),
        prediction=np.array([1, -1, -1, 0]),
        radius=np.array([0.5, 0.0, 0.0, 1.0]),
        seconds=np.zeros(4),
    )
    assert results.correct.tolist() == [True, False, False, False]
    assert results.abstained.tolist() == [False, True, True, False]


def test_columns_of_different_length_are_refused():
    with pytest.raises(BadTable, match="one length"):
        some(radius=np.zeros(3))
    with pytest.raises(BadTable, match="one length"):
        some(sigma_c=np.zeros(3))
