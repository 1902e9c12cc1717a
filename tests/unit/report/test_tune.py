"""The search of `tune`: what is best is found, ties are simple, and what the choice is worth elsewhere is told."""

import numpy as np
import pytest
from tuning_ledgers import DOUBTFUL, LOST, MISLED, SETTLED, made

from dualrs.errors import BadSetting, BadTable, UnusableVotes
from dualrs.report import tune as tuning
from dualrs.report.accuracy import certified_accuracy
from dualrs.report.tune import Objective, tune
from dualrs.schemes.form import Form
from dualrs.storage import Ledger, derive

RADII = (0.0, 0.25, 0.5, 1.0)


def tuned(path, objective=None, *, thresholds=(0.5,), report=None):
    with Ledger.open(path) as ledger:
        return tune(ledger, objective or Objective(RADII), thresholds, *([] if report is None else [report]))


@pytest.fixture
def ledger(tmp_path):
    """Some inputs are misled at the noisiest stage by votes that pass at 0.6; a few are right there, and unsure."""
    kinds = [[SETTLED, SETTLED]] * 20 + [[MISLED, SETTLED]] * 12 + [[DOUBTFUL, LOST]] * 4
    return made(tmp_path / "run.ledger", kinds)


def test_the_best_confidence_is_found_and_left_out_where_it_does_nothing(ledger):
    found = tuned(ledger)
    assert found.chosen == Form((0.6,))
    assert (found.tried, found.all_tried, len(found.ids)) == (9, True, 36)
    assert [(row.what, row.rule) for row in found.rows] == [
        ("plain", "cascade"),
        ("1 stage may pass", "cascade-0.6"),
        ("2 stages may pass", "cascade-0.6,0.4"),
        ("chosen", "cascade-0.6"),
    ]


def test_the_numbers_are_those_of_the_rule(ledger):
    found = tuned(ledger)
    with Ledger.open(ledger) as opened:
        for row in found.rows:
            accuracy = certified_accuracy(derive(opened, row.rule)[0], RADII)
            np.testing.assert_allclose(row.accuracy, accuracy)
            assert row.objective == pytest.approx(accuracy.mean())
    plain, chosen = found.rows[0], found.rows[-1]
    assert plain.gain is None
    assert chosen.gain.value == pytest.approx(chosen.objective - plain.objective)
    assert chosen.gain.low < chosen.gain.value < chosen.gain.high
    assert dict(found.curve)[0.6] == pytest.approx(chosen.objective)
    assert dict(found.curve)[0.0] == pytest.approx(plain.objective)
    assert [confidence for confidence, _ in found.curve] == [0.0, 0.4, 0.6]


def test_weights_decide_what_is_best(ledger):
    """Votes that pass gain at small radii, and lose the inputs that only the noisiest stage certifies far out."""
    assert tuned(ledger, Objective(RADII, (1, 1, 0, 0))).chosen == Form((0.6,))
    assert tuned(ledger, Objective(RADII, (0, 0, 0, 1))).chosen == Form()
    equal = tuned(ledger, Objective(RADII, (2, 2, 2, 2)))
    assert equal.rows[-1].objective == pytest.approx(tuned(ledger).rows[-1].objective)


def test_ties_go_to_the_plain_cascade(tmp_path):
    found = tuned(made(tmp_path / "run.ledger", [[SETTLED, SETTLED]] * 20), thresholds=(0.5, 0.6))
    assert found.chosen == Form()
    assert found.rows[-1].rule == "cascade"
    assert found.elsewhere.gain.value == 0
    assert found.optimism == pytest.approx(0)


def test_thresholds_are_tried_at_each_stage(tmp_path):
    """Misled by nearly all of the votes, which are sure of themselves: only a threshold keeps the stage silent."""
    misled = [(1, 2, 0.6), (0, 2, 0.4)]
    found = tuned(made(tmp_path / "run.ledger", [[misled, SETTLED]] * 20), thresholds=(0.8, 0.9))
    assert found.chosen == Form((), (0.9,))
    assert [row.what for row in found.rows] == [
        "plain", "no stage may pass", "1 stage may pass", "2 stages may pass", "chosen",
    ]  # fmt: skip


def test_stage_after_stage_finds_the_same_with_fewer_tries(ledger, monkeypatch):
    every = tuned(ledger, thresholds=(0.5, 0.6, 0.7))
    monkeypatch.setattr(tuning, "ALL_TRIED", 10)
    calls = []
    found = tuned(ledger, thresholds=(0.5, 0.6, 0.7), report=lambda *said: calls.append(said))
    assert (every.all_tried, found.all_tried) == (True, False)
    assert found.chosen == every.chosen == Form((0.6,))
    assert found.tried < every.tried == 81
    assert all(0 <= done <= total for _, done, total in calls)
    assert tuned(ledger, thresholds=(0.5, 0.6, 0.7)) == found


def test_optimism_shows_where_the_choice_is_chance(tmp_path):
    """In each fold the inputs of another form; the choice on the others never suits it."""
    right_below = [(1, 1, 0.7), (0, 2, 0.3)]  # as `MISLED`: pass at 0.6
    kinds = [
        [DOUBTFUL, LOST] if i % 5 < 2 else [right_below, SETTLED] if i % 5 < 4 else [LOST, LOST] for i in range(25)
    ]
    found = tuned(made(tmp_path / "run.ledger", kinds), Objective((0.0,)))
    assert found.rows[-1].objective == pytest.approx(0.4)
    assert found.elsewhere.objective < 0.4
    assert found.optimism > 0


def test_dual_votes_serve_as_well(tmp_path):
    kinds = [[SETTLED, SETTLED]] * 10 + [[MISLED, SETTLED]] * 10
    path = made(tmp_path / "dual.ledger", kinds, scheme="dual", sigma_e=0.5, rule="fusion")
    assert tuned(path).chosen == Form((0.6,))


@pytest.mark.parametrize(
    ("radii", "weights", "said"),
    [
        ((0.0, 0.5), (1.0,), "1 weights for 2 radii"),
        ((0.0, 0.5), (1.0, -1.0), "not negative"),
        ((0.0, 0.5), (0.0, 0.0), "not all zero"),
        ((0.0,), (float("nan"),), "finite"),
    ],
)
def test_weights_that_make_no_mean(radii, weights, said):
    with pytest.raises(BadSetting, match=said):
        Objective(radii, weights)


ENOUGH = [[SETTLED, SETTLED]] * 20


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"kinds": ENOUGH[:19]}, UnusableVotes, "has 19 finished inputs; with fewer than 20"),
        ({"confidences": ()}, UnusableVotes, "--confidences 0.3,0.4,0.5,0.6 and --all-votes"),
        ({"labelled": False}, BadTable, "20 of 20 inputs of .* have no label"),
        ({"leave_out": {("toy/007", 0.25)}}, UnusableVotes, "1 of 20 inputs of .* lack votes at some sigma .*toy/007"),
    ],
)
def test_ledgers_that_cannot_be_tuned_on(tmp_path, settings, error, said):
    path = made(tmp_path / "run.ledger", **{"kinds": ENOUGH, **settings})
    with pytest.raises(error, match=said):
        tuned(path)


def test_a_threshold_below_one_half_is_refused(ledger):
    with pytest.raises(BadSetting, match="at least 1/2"):
        tuned(ledger, thresholds=(0.4,))
