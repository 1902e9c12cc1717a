"""The summary of a ledger or of a peer's table."""

import numpy as np
import pytest

from dualrs.certificates import ABSTAIN, Certificates
from dualrs.report.summary import summarize
from dualrs.storage import UNLABELLED, Results


def results(labels):
    return Results(
        ids=np.array(list("abcd")),
        index=np.arange(4),
        label=np.array(labels),
        prediction=np.array([1, 1, 2, ABSTAIN]),
        radius=np.array([0.5, 0.3, 0.9, 0.0]),
        seconds=np.zeros(4),
        sigma_c=np.array([0.5, 0.25, 0.5, 0.5]),
    )


CERTIFICATES = Certificates(
    prediction=np.array([1, 1, 2, ABSTAIN]),
    radius=np.array([0.5, 0.3, 0.9, 0.0]),
    sigma_c=np.array([0.5, 0.25, 0.5, 0.5]),
    r_sigma=np.array([0.6, 0.3, 1.0, 0.2]),
    r_c=np.array([0.5, 0.4, 0.9, -0.1]),
    limited_by=np.array(["class", "rival 0.5", "class", "class"]),
    outcome=np.array(["certified", "certified", "certified", "class undecided"]),
)


def test_counts_and_averages():
    summary = summarize(results([1, 1, 1, 1]), CERTIFICATES, (0, 0.4))
    assert summary.inputs == 4
    assert summary.abstention == 0.25
    assert summary.accuracy == (0.5, 0.25)  # the third is wrong, the fourth abstains
    assert summary.average_radius == pytest.approx(0.2)
    assert summary.sigmas == {"0.25": 1, "0.5": 3}
    assert summary.limits == {"class": 3, "rival 0.5": 1}
    assert summary.outcomes == {"certified": 3, "class undecided": 1}


def test_one_missing_label_leaves_no_accuracy():
    summary = summarize(results([1, 1, 1, UNLABELLED]), None, (0, 0.4))
    assert summary.accuracy is None
    assert summary.average_radius is None
    assert summary.limits == {}


def test_a_sigma_for_each_input_is_told_in_ranges_and_limits_without_theirs():
    sigma_c = np.linspace(0.2, 0.6, 40)
    count = len(sigma_c)
    many = Results(
        ids=np.arange(count).astype(str), index=np.arange(count), label=np.zeros(count, dtype=np.int64),
        prediction=np.zeros(count, dtype=np.int64), radius=np.ones(count), seconds=np.zeros(count), sigma_c=sigma_c,
    )  # fmt: skip
    limits = np.array(["class", *(f"rival {sigma:g}" for sigma in sigma_c[1:])])
    certificates = Certificates(
        many.prediction, many.radius, sigma_c, many.radius, many.radius, limits, np.full(count, "certified")
    )
    summary = summarize(many, certificates, (0,))
    assert len(summary.sigmas) == 8
    assert sum(summary.sigmas.values()) == count
    assert next(iter(summary.sigmas)) == "0.2 to 0.25"
    assert summary.limits == {"class": 1, "rival": count - 1}
