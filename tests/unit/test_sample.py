"""The calls of a Python user: sample, certify, save and open; certify into a ledger; certify a dataset."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from itertools import count

import numpy as np
import pytest

import dualrs
from dualrs import Aces, Cascade, Certificate, Certificates, DualSmoothed, Sample, Smoothed, Tolerance
from dualrs.certificates import spell_seed
from dualrs.data.dataset import ArrayDataset
from dualrs.errors import BadSetting, BadTable, DualrsError, ForeignLedger, LedgerError, TooFewVotes, UnusableVotes
from dualrs.jobs import label_dataset
from dualrs.smoothed import Pool
from dualrs.storage import Ledger, verify
from small import Small

IMAGES = np.random.default_rng(0).integers(0, 256, (5, 1, 6, 6), dtype=np.uint8)
LABELS = [0, 1, 2, 0, 1]
SIGMAS = (0.25, 0.5, 1.0)
VOTES = {"n": 1100, "n0": 30, "seed": 4}
SIZE = VOTES | {"alpha": 0.01}

MODELS = {
    "single": lambda: Smoothed(Small(7), 0.5, batch_size=100),
    "dual": lambda: DualSmoothed(Small(6), Small(7), SIGMAS, 1.0, batch_size=100),
    "cascade": lambda: Cascade(Small(7), SIGMAS, batch_size=100),
    "aces": lambda: Aces(Small(7), Small(5), 0.5, (0.5, 0.9), batch_size=100),
}
OTHER_RULES = {"single": ["sigma-0.5"], "dual": ["paper", "paper-1:4", "sigma-0.25", "multiscale"]} | {
    "cascade": ["multiscale-authors", "sigma-1"],
    "aces": ["aces-0.9", "sigma-0.5"],
}
every_model = pytest.mark.parametrize("kind", MODELS)


def claims(certificates):
    """All fields of certificates, the sigma of a rival too, which equality leaves out; NaN equals itself."""
    return [repr(vars(c)) for c in certificates]


def kept(path):
    """What a run must give again."""
    with closing(sqlite3.connect(path)) as file:
        votes = file.execute("SELECT * FROM votes ORDER BY 1, 2, 3, 4, 5").fetchall()
        return votes, [r[:8] for r in file.execute("SELECT * FROM certificates ORDER BY input")]


def problems(path):
    with Ledger.open(path) as ledger:
        return verify(ledger)


# Votes in hand


@every_model
def test_votes_that_were_saved_and_opened_give_the_same_certificates(kind, tmp_path):
    drawn = MODELS[kind]().sample(IMAGES, **VOTES)
    drawn.save(tmp_path / "run.ledger")
    assert problems(tmp_path / "run.ledger") == []
    opened = dualrs.open(tmp_path / "run.ledger")
    assert isinstance(opened, Sample)
    assert (opened.ids, opened.seed, opened.plan, opened.scheme) == (drawn.ids, 4, drawn.plan, drawn.scheme)
    assert (opened.rule.name, opened.alpha) == (drawn.rule.name, drawn.alpha)
    assert len(opened) == len(drawn) == 5
    for name in (None, *OTHER_RULES[kind]):
        for alpha in (None, 0.05):
            before, after = drawn.certify(name, alpha), opened.certify(name, alpha)
            assert claims(after) == claims(before)
            assert after.seed == before.seed == 4


@every_model
def test_sample_is_certified_as_certify_does(kind):
    """All votes are drawn, and those that a rule does not ask for change no claim."""
    model = MODELS[kind]()
    drawn, found = model.sample(IMAGES, **VOTES).certify(alpha=0.01), model.certify(IMAGES, **SIZE)
    for name in ("prediction", "radius", "sigma_c", "outcome"):
        assert getattr(drawn, name).tolist() == getattr(found, name).tolist()
    assert drawn.seed == found.seed == 4


@every_model
def test_every_vote_is_drawn(kind):
    sample = MODELS[kind]().sample(IMAGES, **VOTES)
    view = sample.scheme.view(sample.votes)
    assert all((e.sampled == 1100).all() and (e.selection.sum(axis=1) == 30).all() for e in view.experts)


def test_rule_of_the_sample_is_the_default_at_the_default_alpha():
    sample = MODELS["dual"]().sample(IMAGES, **VOTES)
    assert (sample.rule.name, sample.alpha) == ("fusion", 0.001)
    assert claims(sample.certify()) == claims(sample.certify("fusion", 0.001))
    assert claims(sample.certify()) != claims(sample.certify(alpha=0.05))


def test_one_image_is_a_sample_of_one(tmp_path):
    sample = MODELS["dual"]().sample(IMAGES[0], **VOTES)
    assert len(sample) == 1
    assert isinstance(sample.certify(), Certificates)
    sample.save(tmp_path / "one.ledger")
    assert claims(dualrs.open(tmp_path / "one.ledger").certify()) == claims(sample.certify())


def test_secret_seed_is_kept(tmp_path):
    sample = MODELS["single"]().sample(IMAGES[:2], n=100)
    other = MODELS["single"]().sample(IMAGES[:2], n=100)
    assert sample.seed != other.seed
    assert sample.seed > 2**64
    assert sample.certify().seed == sample.seed
    sample.save(tmp_path / "run.ledger")
    opened = dualrs.open(tmp_path / "run.ledger")
    assert opened.seed == sample.seed
    again = MODELS["single"]().sample(IMAGES[:2], n=100, seed=sample.seed)
    assert claims(again.certify()) == claims(opened.certify())


def test_ids_are_content_unless_given():
    model = MODELS["single"]()
    assert model.sample(IMAGES[:2], **VOTES, ids=["a", 7]).ids == ("a", "7")
    by_content = model.sample(IMAGES[:2], **VOTES).ids
    assert by_content == model.sample(IMAGES[:2], **VOTES).ids
    assert len(set(by_content)) == 2


def test_equal_images_are_sampled_once_and_saved_once(tmp_path):
    images = IMAGES[[0, 1, 0]]
    sample = MODELS["single"]().sample(images, **VOTES)
    found = sample.certify()
    assert len(found) == 3
    assert found[0] == found[2]
    sample.save(tmp_path / "run.ledger")
    assert problems(tmp_path / "run.ledger") == []
    assert claims(dualrs.open(tmp_path / "run.ledger").certify()) == claims([found[0], found[1]])


def test_rules_that_the_votes_do_not_allow_are_refused():
    model = MODELS["single"]()
    sample = model.sample(IMAGES[:1], **VOTES)
    with pytest.raises(UnusableVotes, match="rule fusion needs votes of a router and experts"):
        sample.certify("fusion")
    with pytest.raises(BadSetting, match="unknown rule 'cohn'"):
        sample.certify("cohn")
    with pytest.raises(BadSetting, match="alpha must lie"):
        sample.certify(alpha=1.5)
    with pytest.raises(TooFewVotes, match="n = 20 cannot certify anything"):
        model.sample(IMAGES[:1], n=20, seed=0).certify(alpha=1e-9)


def test_saving_again_or_elsewhere_is_the_same_ledger(tmp_path):
    sample = MODELS["dual"]().sample(IMAGES, **VOTES)
    sample.save(tmp_path / "run.ledger")
    before = kept(tmp_path / "run.ledger")
    sample.save(tmp_path / "run.ledger")
    assert kept(tmp_path / "run.ledger") == before
    dualrs.open(tmp_path / "run.ledger").save(tmp_path / "copy.ledger")
    assert kept(tmp_path / "copy.ledger") == before
    assert problems(tmp_path / "copy.ledger") == []


def test_ledger_of_another_run_is_not_written_over(tmp_path):
    MODELS["dual"]().sample(IMAGES, **VOTES).save(tmp_path / "run.ledger")
    before = (tmp_path / "run.ledger").read_bytes()
    with pytest.raises(ForeignLedger, match="belongs to another run"):
        MODELS["dual"]().sample(IMAGES, **VOTES | {"seed": 5}).save(tmp_path / "run.ledger")
    assert (tmp_path / "run.ledger").read_bytes() == before


def test_only_ledgers_of_certificates_are_opened(tmp_path):
    with pytest.raises(LedgerError):
        dualrs.open(tmp_path / "none.ledger")
    data = ArrayDataset(IMAGES, LABELS)
    label_dataset(Pool(Small(7), SIGMAS), data, tmp_path / "l.ledger", n=100, alpha=0.01, seed=0, indices=range(5))
    with pytest.raises(BadTable, match="holds labels, and no certificates"):
        dualrs.open(tmp_path / "l.ledger")


@pytest.mark.parametrize("suffix", ["drawn", "opened"])
def test_repr_says_what_the_sample_is(suffix, tmp_path):
    sample = MODELS["dual"]().sample(IMAGES, **VOTES)
    if suffix == "opened":
        sample.save(tmp_path / "run.ledger")
        sample = dualrs.open(tmp_path / "run.ledger")
    assert repr(sample) == (
        "<Sample: 5 inputs, dual, sigma 0.25, 0.5, 1, n 1,100, n0 30, rule fusion, alpha 0.001, seed 4>"
    )


def test_repr_of_an_adaptive_ledger_and_of_a_secret_seed(tmp_path):
    MODELS["single"]().certify(IMAGES[:1], n=1600, n0=30, budget="adaptive", ledger=tmp_path / "run.ledger", alpha=0.01)
    sample = dualrs.open(tmp_path / "run.ledger")
    assert "single, sigma 0.5, at most n 1,600, n0 30, rule cohen" in repr(sample)
    assert repr(sample).endswith(f"seed {spell_seed(sample.seed)}>")
    assert "seed 0x" in repr(sample)


def test_progress_of_sampling_is_told_to_the_end():
    inputs = []
    MODELS["dual"]().sample(IMAGES, **VOTES, progress=lambda p: inputs.append(p.inputs))
    assert inputs == sorted(inputs)
    assert (inputs[0], inputs[-1]) == (0, 5)


def test_opened_votes_are_certified_without_torch(tmp_path):
    MODELS["dual"]().sample(IMAGES, **VOTES).save(tmp_path / "run.ledger")
    code = "import sys, dualrs; print(dualrs.open('run.ledger').certify()); assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("seed 4\n")


# Certify into a ledger


@every_model
def test_certify_with_a_ledger_is_certify_without(kind, tmp_path):
    model = MODELS[kind]()
    found = model.certify(IMAGES, **SIZE, ledger=tmp_path / "run.ledger")
    plain = model.certify(IMAGES, **SIZE)
    assert isinstance(found, Certificates)
    assert list(found) == list(plain)
    assert found.seed == plain.seed == 4
    assert [str(c) for c in found] == [str(c) for c in plain]
    assert problems(tmp_path / "run.ledger") == []
    assert list(dualrs.open(tmp_path / "run.ledger").certify()) == list(plain)


@pytest.mark.parametrize("ledger", [False, True], ids=["in memory", "with a ledger"])
@every_model
def test_one_image_gives_one_certificate_and_a_batch_of_one_a_batch(kind, ledger, tmp_path):
    model = MODELS[kind]()
    kept_in = {"ledger": tmp_path / "run.ledger"} if ledger else {}
    one, batch = model.certify(IMAGES[0], **SIZE, **kept_in), model.certify(IMAGES[:1], **SIZE, **kept_in)
    assert isinstance(one, Certificate)
    assert isinstance(batch, Certificates)
    assert one == batch[0]
    assert one.seed == batch.seed == 4


@every_model
@pytest.mark.parametrize("batches", [1, 10, 40])
def test_certify_with_a_ledger_goes_on_where_it_was_stopped(kind, batches, tmp_path):
    path, reports, seen = tmp_path / "run.ledger", count(), []

    def stop(progress):
        if next(reports) == batches:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        MODELS[kind]().certify(IMAGES, **SIZE, ledger=path, progress=stop)
    before = set(kept(path)[0]) if path.exists() else set()
    found = MODELS[kind]().certify(IMAGES, **SIZE, ledger=path, progress=lambda p: seen.append(p.inputs))
    assert list(found) == list(MODELS[kind]().certify(IMAGES, **SIZE))
    assert before <= set(kept(path)[0])
    assert seen[-1] == 5
    assert problems(path) == []


def test_finished_call_draws_no_more_votes_than_it_checks(tmp_path):
    MODELS["dual"]().certify(IMAGES, **SIZE, ledger=tmp_path / "run.ledger")
    before, votes = kept(tmp_path / "run.ledger"), []
    again = MODELS["dual"]().certify(
        IMAGES, **SIZE, ledger=tmp_path / "run.ledger", progress=lambda p: votes.append(p.votes)
    )
    assert set(votes) == {0}
    assert kept(tmp_path / "run.ledger") == before
    assert list(again) == list(MODELS["dual"]().certify(IMAGES, **SIZE))


def test_ledger_keeps_its_secret_seed(tmp_path):
    """Without a seed, the same call goes on under the seed of the ledger."""
    settings = {"n": 200, "n0": 30, "alpha": 0.01, "ledger": tmp_path / "run.ledger"}
    first, again = (MODELS["single"]().certify(IMAGES, **settings) for _ in range(2))
    assert first.seed == again.seed == dualrs.open(tmp_path / "run.ledger").seed
    assert list(first) == list(again)


def test_one_image_after_the_other_into_one_ledger_is_refused_or_the_same(tmp_path):
    """The images of a call are its dataset: another batch is another run, and the ledger stays as it was."""
    path = tmp_path / "run.ledger"
    MODELS["single"]().certify(IMAGES[:2], **SIZE, ledger=path)
    before = path.read_bytes()
    with pytest.raises(ForeignLedger, match="dataset_fingerprint"):
        MODELS["single"]().certify(IMAGES, **SIZE, ledger=path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("change", [{"seed": 5}, {"alpha": 0.02}, {"n": 1200}, {"rule": "paper"}], ids=str)
def test_ledger_of_other_settings_is_refused(change, tmp_path):
    path = tmp_path / "run.ledger"
    MODELS["dual"]().certify(IMAGES, **SIZE, ledger=path)
    with pytest.raises(ForeignLedger, match=f"{next(iter(change))} is .* on record"):
        MODELS["dual"]().certify(IMAGES, **SIZE | change, ledger=path)


def test_equal_images_with_a_ledger_get_equal_certificates(tmp_path):
    images = IMAGES[[0, 1, 0]]
    found = MODELS["single"]().certify(images, **SIZE, ledger=tmp_path / "run.ledger")
    assert list(found) == list(MODELS["single"]().certify(images, **SIZE))


def test_adaptive_budget_with_a_ledger(tmp_path):
    settings = {"n": 1600, "n0": 30, "alpha": 0.01, "seed": 4, "budget": "adaptive", "target": Tolerance(0.1)}
    found = MODELS["dual"]().certify(IMAGES, **settings, ledger=tmp_path / "run.ledger")
    assert list(found) == list(MODELS["dual"]().certify(IMAGES, **settings))
    assert problems(tmp_path / "run.ledger") == []
    opened = dualrs.open(tmp_path / "run.ledger")
    assert opened.plan.adaptive
    assert list(opened.certify()) == list(found)


def test_bar_is_shown_and_changes_nothing(tmp_path, capsys):
    found = MODELS["dual"]().certify(IMAGES, **SIZE, ledger=tmp_path / "run.ledger", progress=True)
    assert list(found) == list(MODELS["dual"]().certify(IMAGES, **SIZE))
    assert "certifying" in "".join(capsys.readouterr())


# A dataset


DATA = ArrayDataset(IMAGES, LABELS, name="five images")


@every_model
def test_dataset_is_certified_into_a_ledger_and_its_votes_come_back(kind, tmp_path):
    path = tmp_path / "run.ledger"
    sample = dualrs.certify_dataset(MODELS[kind](), DATA, path, **SIZE)
    assert isinstance(sample, Sample)
    assert (sample.ids, sample.labels, sample.seed) == (DATA.ids, LABELS, 4)
    assert list(sample.certify()) == list(MODELS[kind]().certify(IMAGES, **SIZE, ids=DATA.ids))
    assert problems(path) == []
    with Ledger.open(path) as ledger:
        assert (ledger.header.dataset, ledger.header.scheme.name) == ("five images", kind)


def test_dataset_goes_on_and_inputs_are_added(tmp_path):
    some, path, seen = tmp_path / "some.ledger", tmp_path / "run.ledger", []
    assert len(dualrs.certify_dataset(MODELS["dual"](), DATA, some, **SIZE, indices=[0, 3])) == 2
    more = dualrs.certify_dataset(MODELS["dual"](), DATA, some, **SIZE, progress=lambda p: seen.append(p.inputs))
    assert (len(more), seen[-1]) == (5, 5)
    dualrs.certify_dataset(MODELS["dual"](), DATA, path, **SIZE)
    assert kept(some) == kept(path)


def test_all_votes_of_a_dataset_allow_every_method(tmp_path):
    model = MODELS["dual"]()
    sample = dualrs.certify_dataset(model, DATA, tmp_path / "run.ledger", **SIZE, all_votes=True)
    drawn = model.sample(IMAGES, **VOTES, ids=DATA.ids)
    for name in ("sigma-0.25", "sigma-0.5", "sigma-1", "multiscale", "multiscale-authors", "paper", "nosplit"):
        assert claims(sample.certify(name, 0.01)) == claims(drawn.certify(name, 0.01))


def test_dataset_reuses_votes_of_the_same_networks(tmp_path):
    old, new = tmp_path / "old.ledger", tmp_path / "new.ledger"
    dualrs.certify_dataset(MODELS["dual"](), DATA, old, **SIZE, all_votes=True)
    classifier = Small(7)
    other = DualSmoothed(Small(9), classifier, SIGMAS, 1.0, batch_size=100)
    sample = dualrs.certify_dataset(other, DATA, new, **SIZE, all_votes=True, reuse=old)
    assert classifier.asked < 3 * 5 * 1130
    afresh = dualrs.certify_dataset(other, DATA, tmp_path / "afresh.ledger", **SIZE, all_votes=True)
    assert claims(sample.certify()) == claims(afresh.certify())


def test_adaptive_dataset(tmp_path):
    settings = {"n": 1600, "n0": 30, "alpha": 0.01, "seed": 4, "budget": "adaptive"}
    sample = dualrs.certify_dataset(MODELS["dual"](), DATA, tmp_path / "run.ledger", **settings)
    assert list(sample.certify()) == list(MODELS["dual"]().certify(IMAGES, **settings, ids=DATA.ids))
    with pytest.raises(BadSetting, match="a target is for budget='adaptive'"):
        dualrs.certify_dataset(MODELS["dual"](), DATA, tmp_path / "no.ledger", **SIZE, target=Tolerance(0.1))


# Several sigmas without a router


def test_cascade_answers_at_the_noisiest_sigma_that_is_sure(tmp_path):
    sample = dualrs.certify_dataset(MODELS["cascade"](), DATA, tmp_path / "run.ledger", **SIZE, rule="multiscale")
    with Ledger.open(tmp_path / "run.ledger") as ledger:
        assert (ledger.header.rule, ledger.header.scheme.sigmas) == ("multiscale", SIGMAS)
        asked = {name: {s.sigma for s, parts in ledger.tally(name).counts.items() if parts} for name in DATA.ids}
    found = sample.certify()
    for name, certificate in zip(DATA.ids, found, strict=True):  # a stage is asked where those before it were passed
        assert asked[name] == {sigma for sigma in SIGMAS if sigma >= certificate.sigma_c}
    assert len(set(found.sigma_c)) > 1
    drawn = MODELS["dual"]().sample(IMAGES, **VOTES, ids=DATA.ids)
    assert drawn.certify("multiscale", 0.01).sigma_c.shape == (5,)


def test_cascade_takes_its_sigmas_from_its_experts():
    experts = {0.5: Small(7), 0.25: Small(8)}
    assert Cascade(experts).sigmas == (0.5, 0.25)
    found = Cascade(experts, batch_size=100).certify(IMAGES, **SIZE)
    assert list(found) == list(Cascade(experts, (0.25, 0.5), batch_size=100).certify(IMAGES, **SIZE))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param((Small(7),), "say at which sigmas", id="no sigmas"),
        pytest.param((Small(7), (0.5,)), "at least two sigmas; for one, use Smoothed", id="one sigma"),
        pytest.param((Small(7), (0.5, 0.5)), "must be different", id="equal sigmas"),
        pytest.param(({0.25: Small(7)}, (0.25, 0.5)), "experts for sigmas", id="an expert too few"),
    ],
)
def test_impossible_cascade_is_refused(arguments, message):
    with pytest.raises(BadSetting, match=message):
        Cascade(*arguments)


def test_cascade_refuses_what_it_has_not():
    model = MODELS["cascade"]()
    with pytest.raises(BadSetting, match="does not fit several sigmas without a router; use cascade"):
        model.rule("fusion")
    with pytest.raises(BadSetting, match="no adaptive form"):
        model.certify(IMAGES, **SIZE, rule="multiscale", budget="adaptive")
    with pytest.raises(BadSetting, match="predictions of a cascade go by rule cascade"):
        model.predict(IMAGES, rule="multiscale")
    with pytest.raises(BadSetting, match=r"sure at 0\.45, and the votes are recorded at 0,0\.3,0\.4,0\.5,0\.6"):
        model.certify(IMAGES, **SIZE, rule="cascade-0.45")
    with pytest.raises(BadSetting, match="more stages than there are: 3 sigmas"):
        model.certify(IMAGES, **SIZE, rule="cascade-0.4,0.4,0.4,0.4")


def test_names_of_the_front_door_are_there():
    for name in dualrs.__all__:
        assert getattr(dualrs, name) is not None
    assert {"Cascade", "Sample", "certify_dataset", "open"} <= set(dir(dualrs))
    with pytest.raises(AttributeError, match="no attribute 'certify'"):
        _ = dualrs.certify
    assert issubclass(BadTable, DualrsError)
