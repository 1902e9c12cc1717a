"""Assigned sigmas: the test of PREDICT, what becomes of undecided inputs, and which inputs are read at all."""

import numpy as np
import pytest
from scipy.stats import binomtest

from dualrs.errors import BadData, BadSetting
from dualrs.schemes import scheme_of
from dualrs.storage import Header, Ledger
from dualrs.training.assigned import read_assigned
from dualrs.votes import Part, Stage, Stream, Unit

N = 100
SIGMA_E = 1.0


def header(**changes):
    settings = {
        "rule": "assigned", "alpha": 0.001, "seed": 0, "n0": 0, "n": N, "sigmas": (0.25, 0.5, 1.0), "sigma_e": SIGMA_E,
        "classes": 0, "image_shape": (1, 4, 4), "batch_size": 10, "dtype": "float32", "device": "cpu",
        "models": {"router": "aa"}, "dataset": "toy", "dataset_fingerprint": "bb", "noise": "stream-1",
    }  # fmt: skip
    settings |= changes
    return Header(scheme=scheme_of(settings), **settings)


def read(path, counts, alpha=None, **changes):
    """Assign from invented votes, a row per input; a row that is None has none yet."""
    with Ledger.create_or_resume(path, header(**changes)) as ledger:
        ledger.add_inputs((f"x{i}", 10 * i, None) for i in range(len(counts)))
        for i, row in enumerate(counts):
            if row is not None:
                unit = Unit(f"x{i}", Stream(Stage.ROUTER, Part.ESTIMATION, SIGMA_E), 0, N)
                ledger.record(unit, np.array([row]))
    with Ledger.open(path) as ledger:
        return read_assigned(ledger, alpha)


def test_the_sigma_that_most_votes_name_is_taken_and_tested(tmp_path):
    counts = [(0, 100, 0), (70, 30, 0), (33, 33, 34), (10, 40, 50), (5, 25, 70)]
    assigned = read(tmp_path / "a", counts)
    assert assigned.sigmas == (0.25, 0.5, 1.0)
    assert assigned.ids == ("x0", "x1", "x2", "x3", "x4")
    assert assigned.index.tolist() == [0, 10, 20, 30, 40]
    assert assigned.sigma_c.tolist() == [0.5, 0.25, 1.0, 1.0, 1.0]
    for row, decided in zip(counts, assigned.decided, strict=True):
        second, first = sorted(row)[-2:]
        assert decided == (binomtest(first, first + second).pvalue <= 0.001)
    assert assigned.decided.tolist() == [True, True, False, False, True]


@pytest.mark.parametrize(
    ("sigmas", "tie", "smaller"),
    [
        pytest.param((0.25, 0.5, 1.0), (0, 50, 50), 0.5, id="rising"),
        pytest.param((1.0, 0.5, 0.25), (50, 50, 0), 0.5, id="falling"),
        pytest.param((0.5, 1.0, 0.25), (50, 0, 50), 0.25, id="in no order"),
    ],
)
def test_a_tie_is_undecided_and_takes_the_smaller_sigma(sigmas, tie, smaller, tmp_path):
    assigned = read(tmp_path / "a", [tie], sigmas=sigmas)
    assert assigned.sigma_c.tolist() == [smaller]
    assert not assigned.decided[0]


def test_the_whole_alpha_is_spent_on_the_one_test(tmp_path):
    """A count that alpha allows and alpha / 2 does not."""
    for first in range(51, N + 1):
        level = binomtest(first, N).pvalue
        if level <= 0.001:
            break
    assert level > 0.0005
    assert read(tmp_path / "a", [(first, N - first, 0)]).decided.tolist() == [True]


def test_another_alpha_moves_no_sigma(tmp_path):
    counts = [(60, 40, 0), (0, 45, 55), (0, 0, 100)]
    strict, loose = read(tmp_path / "a", counts), read(tmp_path / "a", counts, alpha=0.1)
    assert np.array_equal(strict.sigma_c, loose.sigma_c)
    assert strict.decided.tolist() == [False, False, True]
    assert loose.decided.tolist() == [True, False, True]
    with pytest.raises(BadSetting, match="alpha"):
        read(tmp_path / "a", counts, alpha=2.0)


def test_inputs_without_all_their_votes_are_left_out(tmp_path):
    assigned = read(tmp_path / "a", [(100, 0, 0), None, (0, 0, 100)])
    assert assigned.ids == ("x0", "x2")
    assert read(tmp_path / "none", [None]).ids == ()


def test_a_ledger_of_labels_assigns_nothing(tmp_path):
    labels = header(rule="labels", sigma_e=None, classes=5, models={"class 0.25": "aa"})
    Ledger.create_or_resume(tmp_path / "a", labels).close()
    with Ledger.open(tmp_path / "a") as ledger, pytest.raises(BadData, match="holds labels, not assigned sigmas"):
        read_assigned(ledger)
