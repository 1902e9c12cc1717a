"""A run stopped inside an input and resumed with another model, which neither weights nor printed form give away.

Two such models: one with another constant in its code, and one that differs on a single bright image, which is neither
among the images that networks are tried on nor the first of the dataset. Each is refused, and nothing is written.
The sabotaged twin goes on, mixes the votes of two models in one certificate, and `verify` finds nothing.
"""

import numpy as np
import pytest
import torch
from kept_rows import rows

from dualrs import DualSmoothed, Smoothed
from dualrs.cli.ledgers import merge
from dualrs.data.dataset import ArrayDataset
from dualrs.errors import ForeignLedger
from dualrs.jobs import certify_dataset, reuse
from dualrs.models.noisy import fingerprint
from dualrs.storage import Header, Ledger, verify
from dualrs.votes import SamplingPlan
from small import Small

IMAGES = np.random.default_rng(0).integers(0, 128, (6, 1, 6, 6), dtype=np.uint8)
BRIGHT = "3"  # the input that the run is stopped inside
IMAGES[int(BRIGHT)] = 250
DATA = ArrayDataset(IMAGES, [0, 1, 2, 0, 1, 2], name="six images")
PLAN = SamplingPlan(n0=30, n=3000)  # three units of estimation votes


class Turning(Small):
    """Neither weights nor repr tell whether it ``turns``: answers another class to what is bright."""

    def __init__(self, seed=7, answers=3, *, shift=0.5, turns=False):
        super().__init__(seed, answers, shift=shift)
        self.turns = turns

    def forward(self, x):
        logits = super().forward(x)
        bright = x.mean(dim=(1, 2, 3), keepdim=True)[..., 0, 0] > 0.8
        return torch.where(bright & self.turns, logits.roll(1, dims=1), logits)


def one_sigma(**attributes):
    return Smoothed(Turning(**attributes), 0.5, batch_size=100)


def two_stages(**attributes):
    return DualSmoothed(Turning(6, answers=2), Turning(**attributes), (0.25, 0.5), 0.5, batch_size=100, share=False)


OTHERS = {"another constant": {"shift": 0.6}, "another answer to one image": {"turns": True}}
EITHER = pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS.keys())


def run(path, model, **options):
    settings = {"plan": PLAN, "alpha": 0.01, "seed": 3, "indices": range(6), "rule": model.rule()}
    certify_dataset(model, DATA, path, **(settings | options))
    return path


def units(path, input_id):
    """The recorded units of an input, by address, as packed counts."""
    return {row[:6]: row[6] for row in rows(path)["votes"] if row[0] == input_id}


def problems(path):
    with Ledger.open(path) as ledger:
        return verify(ledger)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    """The ledgers of whole runs: of the model, and of those that pass for it."""
    folder = tmp_path_factory.mktemp("unbroken")
    return {name: run(folder / name, one_sigma(**changes)) for name, changes in ({"as it was": {}} | OTHERS).items()}


@pytest.fixture
def stopped(tmp_path):
    """A run that was stopped when it had some of the votes on the bright image, and not all."""
    path = tmp_path / "run.ledger"

    def stop(progress):
        with Ledger.open(path) as ledger:
            if len(ledger.tally(BRIGHT).counts) == 2:  # selection votes, and some of estimation
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(path, one_sigma(), report=stop)
    assert 2 <= len(units(path, BRIGHT)) < 4
    with Ledger.open(path) as ledger:
        assert ledger.concluded() >= {"0", "1"}
        assert BRIGHT not in ledger.concluded()
    return path


@pytest.fixture
def by_fingerprint_alone(monkeypatch):
    """The sabotaged twin: a model is known by the fingerprint of its networks, and no vote is drawn again."""
    ignore_answers(monkeypatch)
    monkeypatch.setattr("dualrs.jobs.certify.demand_same", lambda *given, **options: None)


def ignore_answers(monkeypatch):
    """Let the header say nothing of what networks answer."""
    honest = Header.differences
    monkeypatch.setattr(
        Header,
        "differences",
        lambda self, given, apart_from=(): honest(self, given, apart_from=(*apart_from, "identity")),
    )


def test_no_fingerprint_tells_the_models_apart(unbroken):
    """And all answer differently to the bright image, or there would be nothing to tell."""
    assert len({fingerprint(Turning(**changes)) for changes in ({}, *OTHERS.values())}) == 1
    ours = units(unbroken["as it was"], BRIGHT)
    for name in OTHERS:
        theirs = units(unbroken[name], BRIGHT)
        assert theirs.keys() == ours.keys()
        assert all(theirs[unit] != ours[unit] for unit in ours)


# What ships


def test_same_model_goes_on_as_if_it_had_not_been_stopped(stopped, unbroken):
    run(stopped, one_sigma())
    assert rows(stopped) == rows(unbroken["as it was"])
    assert problems(stopped) == []


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        pytest.param({"shift": 0.6}, r"the network 'class 0.5' answers otherwise than it did", id="another constant"),
        pytest.param(
            {"turns": True}, r"votes 0 to .* on input 3 came out differently", id="another answer to one image"
        ),
    ],
)
def test_another_model_is_refused_and_the_ledger_stays_as_it_is(other, reason, stopped, unbroken):
    before = rows(stopped)
    for _ in range(2):
        with pytest.raises(ForeignLedger, match=reason):
            run(stopped, one_sigma(**other))
        assert rows(stopped) == before
    assert [file.name for file in stopped.parent.iterdir()] == [stopped.name]
    run(stopped, one_sigma())  # and the model that began it is welcome
    assert rows(stopped) == rows(unbroken["as it was"])


@EITHER
def test_recorded_votes_drawn_again_catch_what_the_header_does_not(other, stopped, monkeypatch):
    ignore_answers(monkeypatch)
    before = rows(stopped)
    with pytest.raises(ForeignLedger, match="came out differently"):
        run(stopped, one_sigma(**other))
    assert rows(stopped) == before


@pytest.mark.parametrize("build", [one_sigma, two_stages], ids=["one sigma", "two stages"])
def test_votes_of_another_model_are_not_reused(build, tmp_path):
    old = run(tmp_path / "old.ledger", build(shift=0.6))
    before = old.read_bytes()
    with pytest.raises(ForeignLedger, match=r"the class at sigma 0.2?5 answers otherwise than it did"):
        run(tmp_path / "new.ledger", build(), reuse=old)
    assert old.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["old.ledger"]


def test_votes_of_the_same_model_are_reused(tmp_path, unbroken):
    new = run(tmp_path / "new.ledger", one_sigma(), reuse=unbroken["as it was"])
    assert rows(new) == rows(unbroken["as it was"])


def shards(folder):
    """Two halves of a run by models that differ in a constant."""
    return [
        run(folder / "first.ledger", one_sigma(), indices=range(3)),
        run(folder / "second.ledger", one_sigma(shift=0.6), indices=range(3, 6)),
    ]


def test_a_copy_of_the_ledger_does_not_vouch_for_half_a_stream(stopped, tmp_path):
    """Reusing a copy of the stopped run would otherwise spare its votes the second drawing."""
    copy = tmp_path / "copy.ledger"
    copy.write_bytes(stopped.read_bytes())
    with pytest.raises(ForeignLedger, match="came out differently"):
        run(stopped, one_sigma(turns=True), reuse=copy)


def test_half_a_stream_is_not_reused(stopped, tmp_path):
    new = tmp_path / "new.ledger"
    run(new, one_sigma(turns=True), reuse=stopped)
    with Ledger.open(stopped) as old, Ledger.open(new) as ledger:
        whole = {row.id for row in old.inputs() if row.id != BRIGHT}
        assert verify(ledger) == []
        for input_id in whole & old.concluded():
            assert all(ledger.has(*pair) for pair in old._units("SELECT * FROM votes WHERE input = ?", (input_id,)))
        half = old._units("SELECT * FROM votes WHERE input = ? AND part = 'estimation'", (BRIGHT,))
        assert not any(ledger.has(unit, counts) for unit, counts in half)


LONGER = SamplingPlan(PLAN.n0, 5000)


def test_a_longer_run_goes_on_with_the_same_model_only(unbroken, tmp_path):
    old = unbroken["as it was"]
    with pytest.raises(ForeignLedger, match="on input 3 came out differently"):
        run(tmp_path / "new.ledger", one_sigma(turns=True), reuse=old, plan=LONGER)
    assert list(tmp_path.iterdir()) == []
    new = run(tmp_path / "new.ledger", one_sigma(), reuse=old, plan=LONGER)
    assert rows(new) == rows(run(tmp_path / "afresh.ledger", one_sigma(), plan=LONGER))


def test_a_longer_run_does_not_go_on_from_half_a_stream(stopped, tmp_path):
    with pytest.raises(ForeignLedger, match="on input 3 came out differently"):
        run(tmp_path / "refused.ledger", one_sigma(turns=True), reuse=stopped, plan=LONGER)
    new = run(tmp_path / "new.ledger", one_sigma(), reuse=stopped, plan=LONGER)
    assert rows(new) == rows(run(tmp_path / "afresh.ledger", one_sigma(), plan=LONGER))


def test_a_longer_run_that_was_stopped_goes_on_as_if_it_had_not_been(unbroken, tmp_path):
    old, new = unbroken["as it was"], tmp_path / "new.ledger"

    def stop(progress):
        if progress.inputs >= 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(new, one_sigma(), reuse=old, plan=LONGER, report=stop)
    before = rows(new)
    with pytest.raises(ForeignLedger, match="on input 3 came out differently"):
        run(new, one_sigma(turns=True), reuse=old, plan=LONGER)
    assert rows(new) == before
    run(new, one_sigma(), reuse=old, plan=LONGER)
    assert rows(new) == rows(run(tmp_path / "afresh.ledger", one_sigma(), plan=LONGER))


def test_shards_of_two_models_are_not_merged(tmp_path):
    parts = shards(tmp_path)
    before = [part.read_bytes() for part in parts]
    with pytest.raises(ForeignLedger, match=r"the network 'class 0.5' answers otherwise than it did"):
        merge(tmp_path / "whole.ledger", parts)
    assert [part.read_bytes() for part in parts] == before
    assert sorted(tmp_path.iterdir()) == sorted(parts)


# The sabotaged twin


@pytest.mark.parametrize("name", OTHERS)
def test_twin_mixes_two_models_in_one_certificate_and_verify_finds_nothing(
    name, stopped, unbroken, by_fingerprint_alone
):
    begun = units(stopped, BRIGHT)
    run(stopped, one_sigma(**OTHERS[name]))
    mixed, ours, theirs = units(stopped, BRIGHT), units(unbroken["as it was"], BRIGHT), units(unbroken[name], BRIGHT)
    assert begun.keys() < mixed.keys() == ours.keys()
    assert all(mixed[unit] == (ours if unit in begun else theirs)[unit] for unit in mixed)
    with Ledger.open(stopped) as ledger:
        assert BRIGHT in ledger.concluded()
        assert verify(ledger) == []


def test_twin_merges_shards_of_two_models(tmp_path, monkeypatch):
    parts = shards(tmp_path)
    ignore_answers(monkeypatch)
    merge(tmp_path / "whole.ledger", parts)
    assert problems(tmp_path / "whole.ledger") == []


def test_twin_goes_on_from_the_votes_of_another_model(unbroken, tmp_path, monkeypatch):
    """With one unit of each stream drawn again, and not one on every input."""
    honest = reuse.demand_same
    monkeypatch.setattr(reuse, "demand_same", lambda *given, inputs, **options: honest(*given, **options))
    mixed = run(tmp_path / "mixed.ledger", one_sigma(turns=True), reuse=unbroken["as it was"], plan=LONGER)
    theirs = run(tmp_path / "theirs.ledger", one_sigma(turns=True), plan=LONGER)
    assert 0 < sum(counts == units(theirs, BRIGHT)[unit] for unit, counts in units(mixed, BRIGHT).items()) < 5
    assert problems(mixed) == []
