"""Certificates as a container, and what a certificate says in words."""

from decimal import Decimal

import numpy as np
import pytest

from dualrs.certificates import ABSTAIN, Certificate, Certificates, Outcome, Prediction, Predictions, Radii


@pytest.fixture
def three():
    """One certified and limited by the class, one by a rival, one that abstains for each reason."""
    return Certificates.conclude(
        Radii(
            y=np.array([7, 2, 3, 4]),
            sigma_c=np.array([0.25, 0.5, 0.5, 1.0]),
            r_c=np.array([0.12999, 0.9, -0.1, 0.4]),
            r_sigma=np.array([0.5, 0.30001, 0.2, 0.0]),
            rival=np.array([0.5, 0.25, np.nan, np.nan]),
            evidence=(),
        )
    )


def test_smaller_radius_decides_and_names_what_limits_it(three):
    assert three.radius.tolist() == [0.12999, 0.30001, 0, 0]
    assert three.prediction.tolist() == [7, 2, ABSTAIN, ABSTAIN]
    assert three.limited_by.tolist() == ["class", "rival 0.25", "class", "router"]
    assert three.outcome.tolist() == ["certified", "certified", "class undecided", "router undecided"]
    assert three.abstained.tolist() == [False, False, True, True]


def test_tie_of_the_two_radii_is_laid_to_the_class():
    tie = Certificates.conclude(Radii(*(np.array([v]) for v in (1, 0.5, -0.2, -0.2, np.nan)), evidence=()))
    assert tie[0].outcome is Outcome.CLASS_UNDECIDED


def test_index_gives_one_certificate_in_plain_python_types(three):
    first = three[0]
    assert first == Certificate(7, 0.12999, 0.25, 0.5, 0.12999, "class", Outcome.CERTIFIED)
    assert [type(v) for v in vars(first).values()] == [
        int,
        float,
        float,
        float,
        float,
        str,
        Outcome,
        type(None),
        type(None),
    ]
    assert three[-1] == three[3]
    with pytest.raises(IndexError):
        three[4]


def test_iteration_and_length_agree_with_the_index(three):
    assert len(three) == 4
    assert list(three) == [three[i] for i in range(4)]
    assert three[2] in three


def test_stack_undoes_iteration(three):
    again = Certificates.stack(list(three))
    assert list(again) == list(three)
    assert again.abstained.tolist() == three.abstained.tolist()
    assert again.radius.dtype == np.float64
    assert again.prediction.dtype == np.int64


def test_stack_of_nothing_is_empty():
    empty = Certificates.stack([])
    assert len(empty) == 0
    assert list(empty) == []
    assert empty.abstained.sum() == 0


@pytest.mark.parametrize(
    ("index", "said"),
    [
        pytest.param(0, "class 7 within L2 radius 0.1299 (sigma 0.25, limited by class)", id="rounds 0.12999 down"),
        pytest.param(1, "class 2 within L2 radius 0.3000 (sigma 0.5, limited by rival 0.25)", id="names the rival"),
        pytest.param(2, "abstains: class undecided at sigma 0.5", id="abstains with the class as its reason"),
        pytest.param(3, "abstains: router undecided at sigma 1", id="abstains with the router as its reason"),
    ],
)
def test_certificate_in_words(three, index, said):
    assert str(three[index]) == said
    assert str(three).splitlines()[index] == f"{index}: {said}"


def test_certificate_of_a_network_without_noise_names_no_sigma():
    said = str(Certificate(3, 0.5, 0.0, 0.5, 0.5, "class", Outcome.CERTIFIED))
    assert said == "class 3 within L2 radius 0.5000 (no noise, limited by class)"
    undecided = Certificate(ABSTAIN, 0.0, 0.0, 0.5, 0.0, "class", Outcome.CLASS_UNDECIDED)
    assert str(undecided) == "abstains: class undecided without noise"


@pytest.mark.parametrize("radius", [0.1, 0.29999999, 0.3, 1.00005, 2.99995, 1e-9])
def test_radius_in_words_is_never_above_the_radius(radius):
    said = str(Certificate(0, radius, 0.5, radius, radius, "class", Outcome.CERTIFIED))
    assert Decimal(said.split("radius ")[1].split()[0]) <= Decimal(radius)


def test_predictions_are_a_container_too():
    table = Predictions(
        prediction=np.array([3, ABSTAIN, ABSTAIN]),
        sigma_c=np.array([0.25, 0.5, 0.5]),
        outcome=np.array(["predicted", "router undecided", "class undecided"]),
    )
    assert len(table) == 3
    assert table[0] == Prediction(3, 0.25, Outcome.PREDICTED)
    assert [p.abstained for p in table] == [False, True, True]
    assert str(table).splitlines() == [
        "0: class 3 (sigma 0.25)",
        "1: abstains: router undecided (sigma 0.5)",
        "2: abstains: class undecided (sigma 0.5)",
    ]
