"""label_dataset with votes of an earlier ledger: which are copied, what is drawn, and which ledgers are refused."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest
from torch import nn

from dualrs import Smoothed
from dualrs.data.dataset import ArrayDataset
from dualrs.errors import BadSetting, ForeignLedger, LedgerError
from dualrs.jobs import certify_dataset, label_dataset
from dualrs.smoothed import Pool
from dualrs.storage import Ledger, verify
from dualrs.training.labels import read_labels
from dualrs.votes import SamplingPlan
from small import Small

IMAGES = np.random.default_rng(0).integers(0, 256, (8, 1, 6, 6), dtype=np.uint8)
LABELS = [0, 1, 2, 0, 1, 2, 0, 1]
DATA = ArrayDataset(IMAGES, LABELS, name="eight images")
N, BATCH = 1200, 100  # two units, so that a unit can be missing


A, B, C, D = 1, 2, 3, 4  # seeds: equal ones make equal experts


def label(path, seeds, *, reuse=None, indices=range(8), data=DATA, n=N, alpha=0.001, seed=3, batch=BATCH, **more):
    """Label with an expert for each sigma, given by its seed or as it is; returns the experts and the votes copied."""
    experts = {sigma: s if isinstance(s, nn.Module) else Small(s) for sigma, s in seeds.items()}
    model = Pool(experts, list(experts), batch_size=batch, **more)
    taken = label_dataset(model, data, path, n=n, alpha=alpha, seed=seed, indices=indices, reuse=reuse)
    return experts, taken


def rows(path):
    with closing(sqlite3.connect(path)) as connection:
        return {
            "inputs": connection.execute("SELECT * FROM inputs ORDER BY id").fetchall(),
            "votes": connection.execute("SELECT * FROM votes ORDER BY 1, 2, 3, 4, 5").fetchall(),
        }


def tamper(path, sql):
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(sql).rowcount


OLD = {0.25: A, 0.5: B}


@pytest.fixture(scope="module")
def made_once(tmp_path_factory):
    path = tmp_path_factory.mktemp("old") / "old.ledger"
    label(path, OLD)
    return path


@pytest.fixture
def old(tmp_path, made_once):
    """A ledger of labels, to be used up."""
    path = tmp_path / "old.ledger"
    path.write_bytes(made_once.read_bytes())
    return path


# Preflight runs two batches for each network; a handshake draws one unit, the first, again.
TRIAL = 4 * 64  # copies that tell a network from another
FEW = 3  # images, which convolutions are shown in both layouts
PREFLIGHT, HANDSHAKE = 2 * FEW + 2 * BATCH + BATCH * -(-TRIAL // BATCH), 1000


@pytest.mark.parametrize(
    ("seeds", "unchanged"),
    [
        pytest.param({0.25: A, 0.5: B, 1.0: C}, [0.25, 0.5], id="an expert added"),
        pytest.param({1.0: C, 0.5: B, 0.25: A}, [0.25, 0.5], id="added, in another order"),
        pytest.param({0.25: A, 0.5: D}, [0.25], id="an expert exchanged"),
        pytest.param({0.5: B}, [0.5], id="an expert taken away"),
        pytest.param({0.5: B, 1.0: A}, [0.5], id="an expert moved to another sigma"),
        pytest.param(OLD, [0.25, 0.5], id="nothing changed"),
    ],
)
def test_only_changed_experts_vote_and_votes_are_those_of_labelling_afresh(seeds, unchanged, old, tmp_path):
    before = old.read_bytes()
    experts, taken = label(tmp_path / "new.ledger", seeds, reuse=old)
    assert taken == 8 * N * len(unchanged)
    for sigma, expert in experts.items():
        drawn = 0 if sigma in unchanged else 8 * N
        assert expert.asked == PREFLIGHT + (HANDSHAKE if sigma in unchanged else drawn)
    label(tmp_path / "fresh.ledger", seeds)
    assert rows(tmp_path / "new.ledger") == rows(tmp_path / "fresh.ledger")  # seals too
    with Ledger.open(tmp_path / "new.ledger") as new, Ledger.open(tmp_path / "fresh.ledger") as fresh:
        assert verify(new) == []
        assert np.array_equal(read_labels(new).radii, read_labels(fresh).radii)
    assert old.read_bytes() == before
    assert {p.name for p in tmp_path.iterdir()} == {"old.ledger", "new.ledger", "fresh.ledger"}


def test_one_classifier_gets_a_further_sigma(tmp_path):
    label_dataset(
        Pool(Small(A), (0.25, 0.5), batch_size=BATCH), DATA, tmp_path / "old", n=N, alpha=0.01, seed=3,
        indices=range(8),
    )  # fmt: skip
    model = Pool(Small(A), (0.25, 0.5, 1.0), batch_size=BATCH)
    taken = label_dataset(
        model, DATA, tmp_path / "new", n=N, alpha=0.01, seed=3, indices=range(8), reuse=tmp_path / "old"
    )
    assert taken == 2 * 8 * N


def test_alpha_may_differ_as_it_decides_no_votes(old, tmp_path):
    assert label(tmp_path / "new.ledger", OLD, reuse=old, alpha=0.05)[1] == 2 * 8 * N
    with Ledger.open(tmp_path / "new.ledger") as new, Ledger.open(old) as earlier:
        assert new.header.alpha == 0.05
        assert np.array_equal(read_labels(new).radii, read_labels(earlier, 0.05).radii)


def test_name_of_the_dataset_may_differ_where_its_content_is_the_same(old, tmp_path):
    renamed = ArrayDataset(IMAGES, LABELS, name="the same under another name")
    assert label(tmp_path / "new.ledger", OLD, reuse=old, data=renamed)[1] == 2 * 8 * N


@pytest.mark.parametrize(
    ("earlier", "now", "shared"),
    [
        pytest.param(range(4), range(8), 4, id="more inputs than before"),
        pytest.param(range(8), range(3, 5), 2, id="fewer inputs"),
        pytest.param(range(5), range(3, 8), 2, id="some in both"),
    ],
)
def test_inputs_in_both_are_copied_and_the_others_drawn(earlier, now, shared, tmp_path):
    label(tmp_path / "old.ledger", OLD, indices=earlier)
    experts, taken = label(tmp_path / "new.ledger", OLD, indices=now, reuse=tmp_path / "old.ledger")
    assert taken == 2 * shared * N
    assert experts[0.25].asked == PREFLIGHT + HANDSHAKE + (len(now) - shared) * N
    label(tmp_path / "fresh.ledger", OLD, indices=now)
    assert rows(tmp_path / "new.ledger") == rows(tmp_path / "fresh.ledger")


def test_earlier_run_that_was_cut_off_gives_what_it_has(old, tmp_path):
    tamper(old, "DELETE FROM votes WHERE input > '3' OR start > 0 AND sigma = 0.5")
    taken = label(tmp_path / "new.ledger", OLD, reuse=old)[1]
    assert taken == 4 * N  # of the other sigma there is no whole stream
    label(tmp_path / "fresh.ledger", OLD)
    assert rows(tmp_path / "new.ledger") == rows(tmp_path / "fresh.ledger")


def test_the_same_again_changes_nothing(old, tmp_path):
    path = tmp_path / "new.ledger"
    label(path, {0.25: A, 1.0: C}, reuse=old)
    once = rows(path)
    experts, taken = label(path, {0.25: A, 1.0: C}, reuse=old)
    assert taken == 0
    assert rows(path) == once
    assert experts[1.0].asked == PREFLIGHT + HANDSHAKE
    label(path, {0.25: A, 1.0: C})  # and without the old ledger
    assert rows(path) == once


def test_a_run_begun_without_reuse_takes_over_what_it_lacks(old, tmp_path):
    path = tmp_path / "new.ledger"
    label(path, OLD, indices=range(3))
    assert label(path, OLD, reuse=old)[1] == 2 * 5 * N
    assert rows(path)["votes"] == rows(label_afresh(tmp_path, OLD))["votes"]


def label_afresh(folder, seeds):
    label(folder / "fresh.ledger", seeds)
    return folder / "fresh.ledger"


def test_shape_of_batches_is_that_of_the_earlier_ledger(tmp_path):
    narrow = Small(A)
    narrow.most = 30
    label(tmp_path / "old.ledger", {0.25: narrow})
    label(tmp_path / "new.ledger", {0.25: A, 0.5: B}, reuse=tmp_path / "old.ledger")
    assert Ledger.header_of(tmp_path / "new.ledger").batch_size == 25


# Refused


@pytest.mark.parametrize(
    ("other", "message"),
    [
        pytest.param({"seed": 4}, "seed is 3 on record but 4 was given", id="another seed"),
        pytest.param({"dtype": "bfloat16"}, "dtype is float32 on record but bfloat16", id="another dtype"),
        pytest.param({"data": ArrayDataset(IMAGES ^ 1, LABELS)}, "dataset_fingerprint", id="other pixels"),
        pytest.param({"data": ArrayDataset(IMAGES, LABELS[::-1])}, "dataset_fingerprint", id="other labels"),
        pytest.param(
            {"seeds": {0.25: C, 1.0: B}},
            "another network was the class at sigma 0.25; it has no votes of the class at sigma 1. Start afresh",
            id="no expert in common",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::dualrs.errors.RoundingDependent")
def test_ledger_without_a_vote_to_reuse_is_refused_with_the_reason(other, message, old, tmp_path):
    settings = {"seeds": OLD} | other
    with pytest.raises(ForeignLedger, match=message) as refusal:
        label(tmp_path / "new.ledger", **settings, reuse=old)
    assert "no votes of" in str(refusal.value)
    assert not (tmp_path / "new.ledger").exists()


def test_a_longer_run_begins_with_the_votes_of_a_shorter_one(old, tmp_path):
    label(tmp_path / "alone.ledger", OLD, n=1000)
    _, taken = label(tmp_path / "new.ledger", OLD, n=1000, reuse=old)
    assert taken == 2 * 8 * 1000
    assert rows(tmp_path / "new.ledger") == rows(tmp_path / "alone.ledger")


def test_a_longer_run_goes_on_from_a_shorter_one(old, tmp_path):
    label(tmp_path / "alone.ledger", OLD, n=2500)
    _, taken = label(tmp_path / "new.ledger", OLD, n=2500, reuse=old)
    assert taken == 2 * 8 * 1000  # whole units, of 1,200
    assert rows(tmp_path / "new.ledger") == rows(tmp_path / "alone.ledger")
    assert Ledger.header_of(tmp_path / "new.ledger").earlier == {}  # labels certify nothing


def test_other_inputs_are_no_reuse(tmp_path):
    label(tmp_path / "old.ledger", OLD, indices=range(3))
    with pytest.raises(ForeignLedger, match=r"no votes of the class at sigma 0.25 on the inputs asked for"):
        label(tmp_path / "new.ledger", OLD, indices=range(3, 8), reuse=tmp_path / "old.ledger")
    assert not (tmp_path / "new.ledger").exists()


def test_a_new_ledger_of_another_batch_size_cannot_reuse(old, tmp_path):
    label(tmp_path / "new.ledger", OLD, batch=64, indices=[0])
    before = rows(tmp_path / "new.ledger")
    with pytest.raises(ForeignLedger, match="batch_size is 100 on record but 64 was given"):
        label(tmp_path / "new.ledger", OLD, batch=64, reuse=old)
    assert rows(tmp_path / "new.ledger") == before


def test_certificates_are_no_labels(tmp_path):
    model = Smoothed(Small(A), 0.25, batch_size=BATCH)
    certify_dataset(
        model, DATA, tmp_path / "old", plan=SamplingPlan(10, N), alpha=0.01, rule=model.rule(), seed=3, indices=[0]
    )
    with pytest.raises(ForeignLedger, match="holds certificates under rule cohen, which labels cannot be made from"):
        label(tmp_path / "new", OLD, reuse=tmp_path / "old")


def test_a_ledger_is_not_reused_for_itself(old):
    with pytest.raises(BadSetting, match="cannot be reused for itself"):
        label(old, OLD, reuse=old)


def test_there_must_be_an_earlier_ledger(tmp_path):
    with pytest.raises(LedgerError, match="there is no ledger"):
        label(tmp_path / "new.ledger", OLD, reuse=tmp_path / "absent.ledger")
    assert list(tmp_path.iterdir()) == []


def test_expert_whose_code_has_changed_is_found_by_its_votes(old, tmp_path):
    changed = Small(A)
    changed.shift = 0.6
    with pytest.raises(
        ForeignLedger, match=r"old.ledger was not written by this model: the class at sigma 0.25 answers"
    ):
        label(tmp_path / "new.ledger", {0.25: changed, 0.5: B}, reuse=old)
    assert not (tmp_path / "new.ledger").exists()


SWAPPED = "UPDATE votes SET counts = (SELECT counts FROM votes WHERE input = '0' AND sigma = {0} AND start = 0) "


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        pytest.param(
            SWAPPED.format(0.25) + "WHERE input = '7' AND sigma = 0.25 AND start = 0",
            r"old.ledger: input 7, estimation votes 0 to 1000 .* the seal does not match",
            id="votes that would be copied",
        ),
        pytest.param(
            SWAPPED.format(0.5) + "WHERE input = '7' AND sigma = 0.5 AND start = 0",
            r"old.ledger: input 7, .* the seal does not match",
            id="votes of another expert",
        ),
        pytest.param("UPDATE inputs SET label = 2 WHERE id = '1'", r"old.ledger: input 1: .*label \(2\)", id="a label"),
        pytest.param(
            """UPDATE header SET fields = replace(fields, '"seed":3', '"seed":4')""",
            r"old.ledger: header: a field that decides votes .* was changed",
            id="the header",
        ),
    ],
)
def test_damaged_ledger_is_refused_and_none_of_it_taken(sql, message, old, tmp_path):
    tamper(old, sql)
    with pytest.raises(LedgerError, match=message):
        label(tmp_path / "new.ledger", {0.25: A, 1.0: C}, reuse=old)
    if (tmp_path / "new.ledger").exists():
        assert rows(tmp_path / "new.ledger")["votes"] == []
    label(tmp_path / "new.ledger", {0.25: A, 1.0: C})  # goes on without it
    with Ledger.open(tmp_path / "new.ledger") as ledger:
        assert verify(ledger) == []
