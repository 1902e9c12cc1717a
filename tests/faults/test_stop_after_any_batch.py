"""A run that is stopped after its k-th batch, for every k there is, and resumed, ends as if it had never stopped.

Estimation votes come in several units, and rivals are sampled, so that a stop can fall within every kind of stream.
"""

from itertools import count

import numpy as np
import pytest
import torch
from kept_rows import rows
from torch import nn

from dualrs import Aces, DualSmoothed, Smoothed
from dualrs.data.dataset import ArrayDataset
from dualrs.jobs import certify_dataset
from dualrs.storage import Ledger, verify
from dualrs.votes import SamplingPlan

# The router wavers among all three sigmas and the experts agree: under fusion every rival is worth its votes.
DATA = ArrayDataset(np.array([[[[128, 200]]], [[[90, 190]]], [[[170, 180]]]], dtype=np.uint8))
PLAN = SamplingPlan(n0=100, n=2300)


class Threshold(nn.Module):
    """The number of cuts that one pixel exceeds: no arithmetic that could round."""

    def __init__(self, pixel, *cuts):
        super().__init__()
        self.pixel, self.cuts = pixel, torch.tensor(cuts)
        self.eval()

    def forward(self, x):
        above = x.flatten(1)[:, self.pixel, None] > self.cuts
        return nn.functional.one_hot(above.sum(dim=1), len(self.cuts) + 1).float()


class Unsure(Threshold):
    """The same answer, of which it is sure where the other pixel is dark."""

    def forward(self, x):
        return 20 * super().forward(x) * (x.flatten(1)[:, :1] < 0.5)


def two_stages():
    return DualSmoothed(Threshold(0, 0.4, 0.7), Threshold(1, 0.3), (0.25, 0.5, 0.3), 0.5, batch_size=700)


def one_sigma():
    return Smoothed(Threshold(1, 0.3), 0.5, batch_size=700)


def with_core():
    return Aces(Unsure(1, 0.3), Threshold(0, 0.4), 0.5, (0.1, 0.3), batch_size=700)


class Stop(BaseException):
    """Not an Exception: nothing may catch it and go on."""


def run(path, make, rule, stop_after=None):
    """Run the job; return the number of batches, or stop after some."""
    model, batches = make(), count()

    def report(progress):
        if not progress.to_check and next(batches) == stop_after:
            raise Stop

    certify_dataset(
        model, DATA, path, plan=PLAN, alpha=0.001, rule=model.rule(rule), seed=0, indices=range(3), report=report
    )
    return next(batches)


@pytest.mark.parametrize(
    ("make", "rule"),
    [(two_stages, "fusion"), (two_stages, "paper"), (one_sigma, "cohen"), (with_core, "aces-0.3")],
    ids=["fusion", "paper", "cohen", "aces"],
)
def test_run_stopped_after_any_batch_ends_like_an_unbroken_one(make, rule, tmp_path):
    batches = run(tmp_path / "unbroken", make, rule)
    unbroken = rows(tmp_path / "unbroken")
    if rule == "fusion":
        assert len({(row[0], row[3]) for row in unbroken["votes"] if row[1] == "class"}) > 6  # rivals were asked
    if make is with_core:
        assert {row[3] for row in unbroken["votes"]} == {0.0, 0.5}  # the core answered, and the classifier voted
    wrong = {}
    for k in range(batches):
        path = tmp_path / f"stopped after {k}"
        with pytest.raises(Stop):
            run(path, make, rule, stop_after=k)
        assert path.exists() == (k > 0)  # a run without votes leaves nothing
        if k:
            with Ledger.open(path) as ledger:
                assert verify(ledger) == []
        try:
            run(path, make, rule)
        except Exception as error:
            wrong[k] = f"{type(error).__name__}: {error}"
        else:
            if rows(path) != unbroken:
                wrong[k] = "other rows"
    assert wrong == {}


def test_run_stopped_again_and_again_ends_like_an_unbroken_one(tmp_path):
    """Every resumed run gets three batches further, and redoes nothing."""
    run(tmp_path / "unbroken", two_stages, "paper")
    path, attempts = tmp_path / "stopped", 0
    while True:
        attempts += 1
        try:
            run(path, two_stages, "paper", stop_after=3)
            break
        except Stop:
            assert attempts < 40
    assert attempts > 5
    assert rows(path) == rows(tmp_path / "unbroken")
