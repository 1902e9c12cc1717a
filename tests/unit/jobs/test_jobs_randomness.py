"""Runs of networks with randomness of their own: named in the ledger, resumed, drawn again and reused as any other."""

import json
from dataclasses import replace

import numpy as np
import pytest

from dualrs import DualSmoothed, Smoothed
from dualrs.data.dataset import ArrayDataset
from dualrs.errors import ForeignLedger
from dualrs.jobs import certify_dataset, redraw
from dualrs.models.local import LocallySmoothed
from dualrs.sampling.auxiliary import RANDOMNESS, VoteRandomness
from dualrs.storage import Ledger, verify
from dualrs.votes import SamplingPlan
from small import Small

DATA = ArrayDataset(np.random.default_rng(0).integers(0, 256, (4, 1, 6, 6), dtype=np.uint8), [0, 1, 2, 0], name="four")
PLAN = SamplingPlan(n0=30, n=1100)


def drawing(seed=7):
    return LocallySmoothed(Small(seed), m=2, sigma=0.1)


def single(network=None, batch_size=100):
    return Smoothed(network or drawing(), 0.5, batch_size=batch_size)


def run(model, path, indices=range(4), **settings):
    certify_dataset(model, DATA, path, plan=PLAN, alpha=0.01, rule=model.rule(), seed=3, indices=indices, **settings)
    with Ledger.open(path) as ledger:
        assert verify(ledger) == []
        return {unit: counts.tolist() for unit, counts in ledger.random_units(10**6)}


def header(path):
    with Ledger.open(path) as ledger:
        return ledger.header


def test_a_ledger_says_that_networks_draw(tmp_path):
    run(single(), tmp_path / "drawing.ledger")
    run(single(Small(7)), tmp_path / "plain.ledger")
    assert header(tmp_path / "drawing.ledger").randomness == RANDOMNESS
    assert "randomness" not in json.loads(header(tmp_path / "plain.ledger").to_json())


class Enough(Exception):
    """The end of a run, in the middle."""


def test_a_run_that_was_cut_short_ends_with_the_votes_of_an_unbroken_one(tmp_path):
    def stop(progress):
        if progress.votes > 1500:
            raise Enough

    with pytest.raises(Enough):
        run(single(), tmp_path / "cut.ledger", report=stop)
    run(single(), tmp_path / "cut.ledger", indices=range(2, 4))
    assert run(single(), tmp_path / "cut.ledger") == run(single(), tmp_path / "whole.ledger")


def test_votes_are_drawn_again(tmp_path, monkeypatch):
    run(single(), tmp_path / "run.ledger")
    with Ledger.open(tmp_path / "run.ledger") as ledger:
        found = redraw(single(batch_size=64), DATA, ledger, 10**6)
        assert (found.drawn, found.problems) == (found.units, [])
        # Votes of another stream are none of this run, though the networks are the same.
        honest = VoteRandomness.randn
        monkeypatch.setattr(VoteRandomness, "randn", lambda self, *size: -honest(self, *size))
        assert redraw(single(), DATA, ledger, 10**6).problems


def test_a_stream_that_nobody_draws_any_more_is_refused(tmp_path):
    run(single(), tmp_path / "run.ledger")
    other = replace(header(tmp_path / "run.ledger"), randomness="dice")
    with (
        Ledger.create_or_resume(tmp_path / "other.ledger", other) as ledger,
        pytest.raises(ForeignLedger, match=r"networks of .* drew from dice, which this dualrs does not draw"),
    ):
        redraw(single(), DATA, ledger, 1)


def test_votes_of_a_network_are_reused_whatever_others_draw(tmp_path):
    def dual(router):
        return DualSmoothed(router, Small(7), (0.25, 0.5), 0.5, batch_size=100, share=False)

    run(dual(Small(6, answers=2)), tmp_path / "plain.ledger", all_votes=True)
    router = LocallySmoothed(Small(6, answers=2), m=2, sigma=0.1)
    fresh = run(dual(router), tmp_path / "fresh.ledger", all_votes=True)
    assert run(dual(router), tmp_path / "taken.ledger", all_votes=True, reuse=tmp_path / "plain.ledger") == fresh
    assert run(dual(router), tmp_path / "again.ledger", all_votes=True, reuse=tmp_path / "fresh.ledger") == fresh


def test_a_network_that_draws_is_not_one_that_does_not(tmp_path):
    run(single(Small(7)), tmp_path / "plain.ledger")
    with pytest.raises(ForeignLedger, match="randomness is nothing on record but auxiliary philox-4x64 1 was given"):
        run(single(), tmp_path / "plain.ledger")
