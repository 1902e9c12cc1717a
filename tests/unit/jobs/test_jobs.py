"""certify_dataset: what a ledger holds afterwards, what resuming redoes, and which runs it refuses."""

import sqlite3
from itertools import count

import numpy as np
import pytest
import torch

from dualrs import DualSmoothed, Smoothed
from dualrs.data.dataset import ArrayDataset
from dualrs.errors import BadModel, BadSetting, ForeignLedger, LedgerError, NonFiniteLogits, OutOfMemory, TooFewVotes
from dualrs.jobs import certify_dataset
from dualrs.storage import Ledger, verify
from dualrs.votes import Part, SamplingPlan, Stage, Stream
from small import Small

IMAGES = np.random.default_rng(0).integers(0, 256, (8, 1, 6, 6), dtype=np.uint8)
LABELS = [0, 1, 2, 0, 1, 2, 0, 1]
DATA = ArrayDataset(IMAGES, LABELS, name="eight images")
SIGMAS, SIGMA_E = (0.25, 0.5, 1.0), 1.0
PLAN = SamplingPlan(n0=30, n=1200)


def deep(seed=0, answers=3):
    return Small(seed, answers, widths=(6, 8))


def dual(router=None, classifier=None, sigmas=SIGMAS, batch_size=100, **options):
    router, classifier = router or deep(seed=6), classifier or deep(seed=7)
    return DualSmoothed(router, classifier, sigmas, SIGMA_E, batch_size=batch_size, **options)


def run(path, model=None, data=DATA, indices=range(8), plan=PLAN, alpha=0.01, rule="fusion", seed=4, **options):
    model = model or dual()
    certify_dataset(
        model, data, path, plan=plan, alpha=alpha, rule=model.rule(rule), seed=seed, indices=indices, **options
    )
    return path


def rows(path):
    """Everything that a run must give again; not the seconds, nor the seals over them."""
    connection = sqlite3.connect(path)
    try:
        return {
            "inputs": connection.execute("SELECT * FROM inputs ORDER BY id").fetchall(),
            "votes": connection.execute("SELECT * FROM votes ORDER BY 1, 2, 3, 4, 5").fetchall(),
            "certificates": [r[:8] + r[9:10] for r in connection.execute("SELECT * FROM certificates ORDER BY input")],
        }
    finally:
        connection.close()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """One unbroken run; nobody may change the file."""
    return run(tmp_path_factory.mktemp("whole") / "run.ledger")


@pytest.fixture
def earlier(tmp_path, whole):
    """A copy of the unbroken run, to be used up."""
    path = tmp_path / "run.ledger"
    path.write_bytes(whole.read_bytes())
    return path


# What a run leaves behind


def test_ledger_holds_what_certify_says(whole):
    certificates = dual().certify(IMAGES, n=1200, n0=30, alpha=0.01, seed=4, ids=DATA.ids)
    with Ledger.open(whole) as ledger:
        kept = ledger.certificates()
        assert verify(ledger) == []
    assert [kept[i].certificate for i in DATA.ids] == list(certificates)
    assert all(concluded.seconds > 0 for concluded in kept.values())
    # Otherwise the comparisons of this file would compare little.
    assert 0 < certificates.abstained.sum() < 8
    assert len(set(certificates.sigma_c)) > 1
    asked = {(row[0], row[3]) for row in rows(whole)["votes"] if row[1] == "class"}
    assert 8 < len(asked) < 24  # some rivals were sampled, some were not


def test_ledger_knows_inputs_and_labels(whole):
    assert [row[:3] for row in rows(whole)["inputs"]] == [(str(i), i, label) for i, label in enumerate(LABELS)]


def test_header_says_what_was_run(whole):
    with Ledger.open(whole) as ledger:
        header = ledger.header
    assert (header.rule, header.alpha, header.seed, header.n0, header.n) == ("fusion", 0.01, 4, 30, 1200)
    assert (header.scheme.sigmas, header.scheme.sigma_e, header.scheme.classes) == (SIGMAS, SIGMA_E, 3)
    assert (header.image_shape, header.batch_size, header.dtype, header.device) == ((1, 6, 6), 100, "float32", "cpu")
    assert (header.dataset, header.dataset_fingerprint) == ("eight images", DATA.fingerprint)
    assert set(header.models) == {"router", "class 0.25", "class 0.5", "class 1.0"}
    assert set(header.versions) == {"python", "dualrs", "torch", "numpy", "scipy"}
    assert header.created


def test_one_sigma_is_a_run_too(tmp_path):
    path = tmp_path / "one.ledger"
    model = Smoothed(deep(seed=7), 0.5, batch_size=100)
    run(path, model, rule="cohen")
    with Ledger.open(path) as ledger:
        assert verify(ledger) == []
        kept = [c.certificate for c in ledger.certificates().values()]
    assert kept == list(model.certify(IMAGES, n=1200, n0=30, alpha=0.01, seed=4, ids=DATA.ids))


def test_all_votes_keep_every_certificate_and_those_votes_that_were_needed(tmp_path, whole):
    """Which experts are asked besides changes no vote of the others; the radius is that of asking those who help."""
    path = run(tmp_path / "all.ledger", all_votes=True)
    with Ledger.open(path) as ledger:
        assert verify(ledger) == []
        assert ledger.header.votes == "all"
        votes = ledger.votes(DATA.ids)
        assert all((e.sampled == PLAN.n).all() and (e.selection.sum(axis=1) == PLAN.n0).all() for e in votes.experts)
    before, after = rows(whole), rows(path)
    asked = {row[:7] for row in after["votes"]}
    assert {row[:7] for row in before["votes"]} < asked
    claims = [[(row[0], row[1], row[2], row[3], row[7]) for row in found["certificates"]] for found in (before, after)]
    assert claims[0] == claims[1]


@pytest.mark.parametrize(("first", "then"), [(False, True), (True, False)], ids=["then all", "then needed"])
def test_going_on_with_other_votes_is_refused(tmp_path, first, then):
    path = run(tmp_path / "run.ledger", indices=range(2), all_votes=first)
    before = rows(path)
    with pytest.raises(ForeignLedger, match=r"votes is (needed|all) on record but (needed|all) was given"):
        run(path, all_votes=then)
    assert rows(path) == before
    run(path, all_votes=first)


def test_with_one_sigma_all_votes_are_the_needed_ones(tmp_path):
    path = run(tmp_path / "one.ledger", Smoothed(deep(seed=7), 0.5, batch_size=100), rule="cohen", all_votes=True)
    before = rows(path)
    run(path, Smoothed(deep(seed=7), 0.5, batch_size=100), rule="cohen")
    assert rows(path) == before


def test_data_without_labels_can_be_certified(tmp_path, whole):
    path = run(tmp_path / "run.ledger", data=ArrayDataset(IMAGES, name="eight images"))
    assert [row[2] for row in rows(path)["inputs"]] == [None] * 8
    assert rows(path)["certificates"] == rows(whole)["certificates"]


def test_votes_are_committed_batch_by_batch(tmp_path):
    seen = []

    def look(progress):
        with Ledger.open(tmp_path / "run.ledger") as ledger:
            seen.append(len(list(ledger.database.rows("SELECT 1 FROM votes"))))

    run(tmp_path / "run.ledger", indices=range(2), report=look)
    assert seen == sorted(seen)
    assert len(set(seen)) > 4


# Order, shards, further inputs


@pytest.mark.parametrize(
    "indices",
    [
        pytest.param([5, 2, 7, 0, 1, 6, 4, 3], id="shuffled"),
        pytest.param(range(7, -1, -1), id="backwards"),
        pytest.param(np.arange(8), id="numbers of numpy"),
        pytest.param([0, 0, 1, 2, 3, 4, 5, 6, 7, 7, 7, 3, 0], id="some named twice"),
    ],
)
def test_order_of_inputs_changes_nothing(indices, tmp_path, whole):
    assert rows(run(tmp_path / "run.ledger", indices=indices)) == rows(whole)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(range(4), range(4, 8), id="halves"),
        pytest.param(range(0, 8, 2), range(1, 8, 2), id="every other"),
        pytest.param(range(6), range(3, 8), id="shards that overlap"),
    ],
)
def test_two_shards_merged_are_one_run(first, second, tmp_path, whole):
    paths = [run(tmp_path / f"{k}.ledger", indices=part) for k, part in enumerate((first, second))]
    with Ledger.open(paths[0]) as shard:
        header = shard.header
    with Ledger.create_or_resume(tmp_path / "merged.ledger", header) as merged:
        for path in paths:
            with Ledger.open(path) as shard:
                merged.absorb(shard)
    assert rows(tmp_path / "merged.ledger") == rows(whole)
    with Ledger.open(tmp_path / "merged.ledger") as merged:
        assert verify(merged) == []


def test_further_inputs_can_be_added_later(tmp_path, whole):
    path = tmp_path / "run.ledger"
    for stop in (1, 3, 3, 8):
        run(path, indices=range(stop))
    assert rows(path) == rows(whole)


def test_shards_under_other_batch_sizes_are_other_runs(tmp_path):
    """A batch of another shape may round differently, so that votes could differ."""
    one = run(tmp_path / "a.ledger", indices=[0])
    other = run(tmp_path / "b.ledger", dual(batch_size=64), indices=[1])
    with (
        Ledger.open(other) as shard,
        Ledger.open(one) as first,
        Ledger.create_or_resume(tmp_path / "c", first.header) as merged,
        pytest.raises(ForeignLedger, match="batch_size is 100 on record but 64 was given"),
    ):
        merged.absorb(shard)


# Resuming


def test_finished_run_is_not_run_again(earlier, whole):
    router, classifier = deep(seed=6), deep(seed=7)
    model = dual(router, classifier)
    run(earlier, model)
    assert rows(earlier) == rows(whole)
    # A few images in both layouts and two batches of preflight each, three of trial copies, and one unit of each stream
    # drawn again: 30 + 1000 votes.
    assert router.calls <= 2 + 2 + 3 + 11 + 1
    assert classifier.calls <= 2 + 2 + 3 * (3 + 11) + 1


@pytest.mark.parametrize("rule", ["nosplit", "fusion"])
@pytest.mark.parametrize("batches", [0, 1, 5, 20, 60, 130])
def test_stopped_run_goes_on_where_it_was(batches, rule, tmp_path):
    path, reports = tmp_path / "run.ledger", count()

    def stop(progress):
        if next(reports) == batches:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(path, report=stop, rule=rule)
    before = set(rows(path)["votes"]) if batches else set()
    assert path.exists() == (batches > 0)  # a run without votes leaves nothing
    run(path, rule=rule)
    after = rows(path)
    assert before <= set(after["votes"])
    assert after == rows(run(tmp_path / "unbroken.ledger", rule=rule))


def test_batch_size_on_record_is_taken_over(tmp_path):
    path = run(tmp_path / "run.ledger", dual(batch_size=64), indices=range(3))
    model = dual(batch_size=100)
    run(path, model, indices=range(5))
    assert model.engine.batch_size == 64
    assert rows(path) == rows(run(tmp_path / "at once.ledger", dual(batch_size=64), indices=range(5)))


def test_batch_size_found_under_little_memory_is_kept_with_more(tmp_path):
    narrow = deep(seed=7)
    narrow.most = 30
    path = run(tmp_path / "run.ledger", dual(classifier=narrow), indices=range(2))
    run(path, dual(), indices=range(4))
    with Ledger.open(path) as ledger:
        assert ledger.header.batch_size == 25
    assert rows(path) == rows(run(tmp_path / "at once.ledger", dual(batch_size=25), indices=range(4)))


def test_batch_size_on_record_that_does_not_fit_is_refused(earlier):
    before = earlier.read_bytes()
    narrow = deep(seed=7)
    narrow.most = 30
    with pytest.raises(OutOfMemory, match="at the batch size 100"):
        run(earlier, dual(classifier=narrow))
    assert earlier.read_bytes() == before


def test_run_that_was_killed_before_its_ledger_was_founded_begins_afresh(tmp_path, whole):
    (tmp_path / "run.ledger").touch()
    assert rows(run(tmp_path / "run.ledger")) == rows(whole)


# Other runs are refused


def changed_weight():
    network = deep(seed=7)
    with torch.no_grad():
        network.body[0].weight[0, 0, 0, 0] += 1e-6
    return network


@pytest.mark.parametrize(
    ("other", "message"),
    [
        pytest.param(lambda: {"seed": 5}, "seed is 4 on record but 5 was given", id="another seed"),
        pytest.param(lambda: {"plan": SamplingPlan(30, 2000)}, "n is 1200 on record but 2000", id="another n"),
        pytest.param(lambda: {"plan": SamplingPlan(40, 1200)}, "n0 is 30 on record but 40", id="another n0"),
        pytest.param(lambda: {"alpha": 0.001}, "alpha is 0.01 on record but 0.001", id="another alpha"),
        pytest.param(lambda: {"rule": "paper"}, "rule is fusion on record but paper", id="another rule"),
        pytest.param(
            lambda: {"model": dual(classifier=deep(seed=5))}, "model 'class 0.25' is", id="another classifier"
        ),
        pytest.param(
            lambda: {"model": dual(classifier=changed_weight())}, "model 'class 1.0' is", id="a changed weight"
        ),
        pytest.param(lambda: {"model": dual(router=deep(seed=5))}, "model 'router' is", id="another router"),
        pytest.param(
            lambda: {"model": dual(classifier={s: deep(seed=7 + (s == 0.5)) for s in SIGMAS})},
            "model 'class 0.5' is",
            id="another expert",
        ),
        pytest.param(lambda: {"model": dual(sigmas=(0.25, 0.5, 0.75))}, "sigmas is", id="other sigmas"),
        pytest.param(lambda: {"model": dual(sigmas=(0.5, 0.25, 1.0))}, "sigmas is", id="sigmas in another order"),
        pytest.param(lambda: {"model": dual(dtype="bfloat16")}, "dtype is float32 on record but bfloat16", id="dtype"),
        pytest.param(
            lambda: {"data": ArrayDataset(IMAGES ^ 1, LABELS, name="eight images")}, "dataset_fing", id="pixels"
        ),
        pytest.param(
            lambda: {"data": ArrayDataset(IMAGES, LABELS[::-1], name="eight images")}, "dataset_finger", id="labels"
        ),
        pytest.param(
            lambda: {"data": ArrayDataset(IMAGES, LABELS, name="eight images", ids="abcdefgh")},
            "dataset_finger",
            id="ids",
        ),
        pytest.param(
            lambda: {"model": Smoothed(deep(seed=7), 0.5), "rule": "cohen"}, "sigma_e is 1.0 on record", id="one stage"
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::dualrs.errors.RoundingDependent")
def test_another_run_is_refused_and_the_file_stays_as_it_is(other, message, earlier):
    before = earlier.read_bytes()
    with pytest.raises(ForeignLedger, match=message):
        run(earlier, **other())
    assert earlier.read_bytes() == before
    assert [p.name for p in earlier.parent.iterdir()] == ["run.ledger"]


def test_model_trained_further_under_the_same_wrapper_is_another_model(tmp_path):
    classifier = deep(seed=7)
    model = dual(classifier=classifier)
    path = run(tmp_path / "run.ledger", model, indices=[0])
    before = path.read_bytes()
    with torch.no_grad():
        classifier.body[5].bias += 1
    with pytest.raises(ForeignLedger, match=r"model 'class 0.25' is"):
        run(path, model)
    assert path.read_bytes() == before


@pytest.mark.parametrize("stage", ["router", "classifier"])
def test_model_whose_code_has_changed_is_refused_by_its_votes(stage, earlier, whole):
    """No weight and no name tells of the attribute; votes do."""
    network = deep(seed=6 if stage == "router" else 7)
    network.shift = 0.6
    with pytest.raises(
        ForeignLedger, match=r"the network .* answers otherwise than it did: its code, a constant in it"
    ):
        run(earlier, dual(**{stage: network}))
    assert rows(earlier) == rows(whole)
    assert [p.name for p in earlier.parent.iterdir()] == ["run.ledger"]


def test_file_that_is_no_ledger_is_refused_and_stays_as_it_is(tmp_path):
    path = tmp_path / "thesis.txt"
    path.write_text("years of work")
    with pytest.raises(LedgerError, match="not a ledger"):
        run(path)
    assert path.read_text() == "years of work"


# Failures


@pytest.mark.parametrize(
    ("broken", "error"),
    [
        pytest.param({"plan": SamplingPlan(30, 5)}, TooFewVotes, id="too few votes"),
        pytest.param({"plan": SamplingPlan(0, 1200)}, BadSetting, id="no selection votes"),
        pytest.param({"model": dual(router=deep(answers=2))}, BadModel, id="a router with an answer too few"),
        pytest.param({"indices": []}, BadSetting, id="no inputs"),
    ],
)
def test_impossible_run_leaves_no_file(broken, error, tmp_path):
    with pytest.raises(error):
        run(tmp_path / "run.ledger", **broken)
    assert list(tmp_path.iterdir()) == []


class Brittle(Small):
    """Breaks down on one bright image, as long as it is not mended."""

    mended = False

    def forward(self, x):
        bright = x.mean(dim=(1, 2, 3)) > 0.8
        return super().forward(x) + torch.where(bright & (not self.mended), torch.nan, 0.0)[:, None]


def test_failure_in_the_middle_keeps_what_was_finished(tmp_path):
    images = IMAGES // 2
    images[5] = 250
    data = ArrayDataset(images, LABELS)
    broken, mended = (Brittle(seed=7, widths=(6, 8)) for _ in range(2))
    mended.mended = True
    path = tmp_path / "run.ledger"
    sigmas = {"sigmas": (0.25, 0.5), "router": deep(seed=6, answers=2)}
    with pytest.raises(NonFiniteLogits, match=r"the classifier returned NaN .*of input 5$"):
        run(path, dual(classifier=broken, **sigmas), data)
    with Ledger.open(path) as ledger:
        finished = ledger.concluded()
        assert verify(ledger) == []
    assert {"0", "1", "2", "3"} <= finished
    assert "5" not in finished
    # Again, and it fails at the same place; mended, and it goes on.
    with pytest.raises(NonFiniteLogits, match=r"of input 5$"):
        run(path, dual(classifier=broken, **sigmas), data)
    run(path, dual(classifier=mended, **sigmas), data)
    assert rows(path) == rows(run(tmp_path / "unbroken.ledger", dual(classifier=mended, **sigmas), data))


def test_memory_that_runs_out_in_the_middle_keeps_what_was_finished(tmp_path, whole):
    classifier = deep(seed=7)
    reports = count()

    def fill_memory(progress):
        if next(reports) == 40:
            classifier.most = 10

    path = tmp_path / "run.ledger"
    with pytest.raises(OutOfMemory, match="what was recorded is kept"):
        run(path, dual(classifier=classifier), report=fill_memory, rule="nosplit")
    with Ledger.open(path) as ledger:
        assert ledger.concluded()
        assert ledger.first_unit(Stream(Stage.ROUTER, Part.ESTIMATION, SIGMA_E)) is not None
    run(path, rule="nosplit")
    assert rows(path) == rows(run(tmp_path / "unbroken.ledger", rule="nosplit"))
