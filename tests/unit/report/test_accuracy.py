from dataclasses import replace

import numpy as np
import pytest

from dualrs.errors import BadTable
from dualrs.report import RADII, abstention, average_certified_radius, certified_accuracy
from dualrs.storage import UNLABELLED, Results


def results(*rows):
    """From (label, prediction, radius)."""
    label, prediction, radius = np.array(rows, dtype=float).reshape(-1, 3).T
    count = len(label)
    return Results(
        ids=np.array([f"toy/{i}" for i in range(count)], dtype=np.str_),
        index=np.arange(count),
        label=label.astype(np.int64),
        prediction=prediction.astype(np.int64),
        radius=radius,
        seconds=np.zeros(count),
    )


FIVE = results((1, 1, 0.5), (2, 2, 1.0), (3, 0, 2.0), (4, -1, 0.0), (5, 5, 0.0))


def test_by_hand():
    assert certified_accuracy(FIVE, (0, 0.25, 0.5, 0.75, 1.0, 1.5)).tolist() == [0.4, 0.4, 0.4, 0.2, 0.2, 0.0]


def test_strict_leaves_out_equality():
    assert certified_accuracy(FIVE, (0, 0.5, 1.0), strict=True).tolist() == [0.4, 0.2, 0.0]


def test_a_radius_of_zero_certifies_nothing_even_at_zero():
    assert certified_accuracy(results((5, 5, 0.0)), (0,)).tolist() == [0.0]


def test_a_claim_about_the_input_alone_counts_at_zero_and_nowhere_else():
    plain = replace(results((5, 5, 0.0), (5, 4, 0.0), (5, 5, 0.3)), plain=np.array([True, True, False]))
    assert certified_accuracy(plain, (0, 1e-12, 0.3)).tolist() == pytest.approx([2 / 3, 1 / 3, 1 / 3])
    assert certified_accuracy(plain, (0,), strict=True).tolist() == pytest.approx([1 / 3])
    assert average_certified_radius(plain) == pytest.approx(0.1)


def test_wrong_predictions_never_count_however_large_their_radius():
    assert certified_accuracy(results((3, 0, 9.0)), RADII).tolist() == [0.0] * len(RADII)


def test_the_usual_grid():
    assert list(RADII) == [k / 4 for k in range(11)]
    assert certified_accuracy(FIVE).shape == (11,)


def test_it_never_rises_with_the_radius():
    rng = np.random.default_rng(0)
    many = results(*np.stack([rng.integers(3, size=200), rng.integers(-1, 3, size=200), rng.exponential(size=200)], 1))
    for strict in (False, True):
        assert (np.diff(certified_accuracy(many, np.linspace(0, 4, 50), strict=strict)) <= 0).all()


def test_abstention():
    assert abstention(FIVE) == 0.2
    assert abstention(results((UNLABELLED, -1, 0.0), (UNLABELLED, 1, 1.0))) == 0.5


def test_average_certified_radius():
    assert average_certified_radius(FIVE) == pytest.approx((0.5 + 1.0) / 5)
    assert average_certified_radius(results((1, 1, -0.5))) == 0.0


@pytest.mark.parametrize("measure", [certified_accuracy, average_certified_radius])
def test_without_labels_there_is_no_accuracy(measure):
    with pytest.raises(BadTable, match=r"1 of 2 inputs have no label \(the first is toy/1\)"):
        measure(results((1, 1, 0.5), (UNLABELLED, 1, 0.5)))


@pytest.mark.parametrize("measure", [certified_accuracy, average_certified_radius, abstention])
def test_without_inputs_there_is_nothing(measure):
    with pytest.raises(BadTable, match="no results"):
        measure(results())
