"""Several models in one pass, and votes taken over from another run: the ledgers are those of each model alone."""

import numpy as np
import pytest
import torch
from test_jobs import DATA, PLAN, SIGMA_E, SIGMAS, deep, dual, rows, run
from torch import nn

from dualrs import DualSmoothed
from dualrs.errors import BadSetting, ForeignLedger
from dualrs.jobs import Certification, certify_together
from dualrs.models.denoise import Denoised
from dualrs.storage import Ledger, verify
from dualrs.votes import SamplingPlan

ALL = {"all_votes": True}


class Blur(nn.Module):
    """A denoiser that counts the images it sees."""

    def __init__(self):
        super().__init__()
        self.images = 0
        self.eval()

    def forward(self, noisy, sigma):
        self.images += len(noisy)
        return nn.functional.avg_pool2d(noisy, 3, stride=1, padding=1).clamp(0, 1)


def together(folder, *models, reuse=None, indices=range(8), plan=PLAN, **options):
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{k}.ledger" for k in range(len(models))]
    certify_together(
        [Certification(m, m.rule("fusion"), path, reuse) for m, path in zip(models, paths, strict=True)],
        DATA, plan=plan, alpha=0.01, seed=4, indices=indices, **options,
    )  # fmt: skip
    return paths


@pytest.mark.parametrize("options", [ALL, {}], ids=["all votes", "votes that the rule can use"])
def test_ledgers_are_those_of_each_model_alone(options, tmp_path):
    paths = together(tmp_path / "both", dual(deep(seed=6)), dual(deep(seed=8), deep(seed=9)), **options)
    alone = (
        run(tmp_path / "0", dual(deep(seed=6)), **options),
        run(tmp_path / "1", dual(deep(seed=8), deep(seed=9)), **options),
    )
    for path, other in zip(paths, alone, strict=True):
        assert rows(path) == rows(other)
        with Ledger.open(path) as ledger:
            assert verify(ledger) == []


def test_denoiser_and_networks_in_common_run_once_for_all(tmp_path):
    front, classifier = Blur(), deep(seed=7)
    behind = Denoised(front, classifier)
    models = [DualSmoothed(Denoised(front, deep(seed=s)), behind, SIGMAS, SIGMA_E, batch_size=100) for s in (1, 2, 3)]
    for model in models:
        model.engine.prepare(DATA.image(0))
    front.images = classifier.calls = 0
    together(tmp_path / "three", *models, **ALL)
    trials = 3 * 4 * 3 * 100  # each model tells its networks by 256 copies for each stage and sigma
    votes = 8 * (PLAN.n0 + PLAN.n)
    # Three sigmas; the routers vote on the copies of the classifier at sigma 1. A batch at the end is padded.
    assert 3 * votes <= front.images - trials <= 3 * votes + 2 * 3 * 100
    assert classifier.calls * 100 == front.images - trials // 4  # but for the trials of the routers


def test_models_may_be_in_different_places(tmp_path):
    """One ledger is ahead of the other, as after a run of its own."""
    models = dual(deep(seed=6)), dual(deep(seed=8))
    (tmp_path / "both").mkdir()
    run(tmp_path / "both" / "0.ledger", dual(deep(seed=6)), indices=range(5), **ALL)
    seen = []
    paths = together(tmp_path / "both", *models, **ALL, report=lambda p: p.to_check or seen.append((p.inputs, p.votes)))
    assert seen[0] == (5, 0)
    assert seen[-1] == (16, (3 + 8) * 4 * (PLAN.n0 + PLAN.n))
    for path, seed in zip(paths, (6, 8), strict=True):
        assert rows(path) == rows(run(tmp_path / f"alone {seed}", dual(deep(seed=seed)), **ALL))


def test_another_batch_size_cannot_vote_beside(tmp_path):
    with pytest.raises(BadSetting, match="one batch size, precision and device; got 100 float32 cpu and 50 float32"):
        together(tmp_path / "x", dual(), dual(batch_size=50), **ALL)


class Wide(nn.Module):
    """A network that makes so much of an image on its way that a CPU takes small batches of it."""

    def __init__(self, network):
        super().__init__()
        self.network = network
        self.eval()

    def forward(self, noisy):
        padding = noisy.flatten(1)[:, :1].repeat(1, 1 << 16).sum(dim=1, keepdim=True)
        return self.network(noisy) + 0 * padding


def free(router):
    """A model whose batches suit its networks."""
    return DualSmoothed(router, deep(seed=7), SIGMAS, SIGMA_E, threads=1)


def batch_sizes(paths):
    for path in paths:
        with Ledger.open(path) as ledger:
            yield ledger.header.batch_size


def test_networks_that_want_other_batches_vote_together_in_the_smallest(tmp_path):
    paths = together(tmp_path / "both", free(deep(seed=6)), free(Wide(deep(seed=8))), **ALL)
    assert list(batch_sizes(paths)) == [16, 16]
    assert rows(paths[1]) == rows(run(tmp_path / "1", free(Wide(deep(seed=8))), **ALL))
    alone = run(tmp_path / "0", free(deep(seed=6)), **ALL)
    assert list(batch_sizes([alone])) == [256]


def test_newcomers_take_the_batches_of_a_run_that_was_begun(tmp_path):
    (tmp_path / "both").mkdir()
    run(tmp_path / "both" / "0.ledger", free(deep(seed=6)), indices=range(5), **ALL)
    paths = together(tmp_path / "both", free(deep(seed=6)), free(Wide(deep(seed=8))), **ALL)
    assert list(batch_sizes(paths)) == [256, 256]


# Votes taken over


def test_only_the_new_router_votes(tmp_path):
    old = run(tmp_path / "old", dual(), **ALL)
    classifier, router = deep(seed=7), deep(seed=9)
    model = dual(router, classifier)
    (path,) = together(tmp_path / "new", model, reuse=old, **ALL)
    assert rows(path) == rows(run(tmp_path / "afresh", dual(deep(seed=9), deep(seed=7)), **ALL))
    hands = 3 * 2 + 3 * 3  # one unit of every stream that is taken over, drawn again, the preflight and the trial
    assert classifier.calls <= 3 + 3 * (-(-(PLAN.n0 + 1000) // 100)) + hands
    assert router.calls >= 8 * (PLAN.n0 + PLAN.n) // 100


def test_a_shorter_run_takes_the_first_votes_of_a_longer_one(tmp_path):
    old, plan = run(tmp_path / "old", dual(), **ALL), SamplingPlan(PLAN.n0, 1000)
    (path,) = together(tmp_path / "new", dual(deep(seed=9), deep(seed=7)), reuse=old, plan=plan, **ALL)
    afresh = run(tmp_path / "afresh", dual(deep(seed=9), deep(seed=7)), plan=plan, **ALL)
    assert rows(path) == rows(afresh)


@pytest.mark.parametrize("options", [ALL, {}], ids=["all votes", "votes that the rule can use"])
def test_a_longer_run_goes_on_from_the_votes_of_a_shorter_one(options, tmp_path):
    old, plan = run(tmp_path / "old", dual(), **options), SamplingPlan(PLAN.n0, 2500)
    before, classifier, router = old.read_bytes(), deep(seed=7), deep(seed=6)
    (path,) = together(tmp_path / "new", dual(router, classifier), reuse=old, plan=plan, **options)
    afresh = run(tmp_path / "afresh", dual(deep(seed=6), deep(seed=7)), plan=plan, **options)
    assert rows(path) == rows(afresh)
    assert old.read_bytes() == before
    with Ledger.open(path) as ledger:
        assert verify(ledger) == []
        assert ledger.header.earlier == {str(PLAN.n): "0.01"}
        assert "looks 2 times, at 0.02 together" in ledger.header.second_look


def test_going_on_spares_the_votes_that_are_there(tmp_path):
    old = run(tmp_path / "old", dual(), plan=SamplingPlan(PLAN.n0, 6000), indices=range(2))
    router = deep(seed=6)
    together(
        tmp_path / "new", dual(router, deep(seed=7)), reuse=old, plan=SamplingPlan(PLAN.n0, 7000), indices=range(2)
    )
    drawn = 2 * (1000 + 1000) // 100  # what is new, and one unit on every input drawn again
    assert drawn <= router.calls < drawn + 25  # instead of 140; the trials, and the selection votes drawn again


def test_a_third_look_counts_the_first_two(tmp_path):
    paths = [run(tmp_path / "0", dual(), plan=SamplingPlan(PLAN.n0, 1000), indices=[0])]
    for n in (2000, 3000):
        paths.append(run(tmp_path / str(n), dual(), plan=SamplingPlan(PLAN.n0, n), indices=[0], reuse=paths[-1]))
    with Ledger.open(paths[-1]) as ledger:
        assert ledger.header.earlier == {"1000": "0.01", "2000": "0.01"}
        assert "looks 3 times, at 0.03 together" in ledger.header.second_look


def test_another_predictor_is_no_second_look(tmp_path):
    old = run(tmp_path / "old", dual(), **ALL)
    (path,) = together(tmp_path / "new", dual(deep(seed=9)), reuse=old, plan=SamplingPlan(PLAN.n0, 2000), **ALL)
    with Ledger.open(path) as ledger:
        assert ledger.header.earlier == {}


def test_less_than_a_unit_is_not_gone_on_from(tmp_path):
    old = run(tmp_path / "old", dual(), plan=SamplingPlan(PLAN.n0, 900))
    with pytest.raises(ForeignLedger, match="it has 900 a stream, and a longer run takes over units of 1,000"):
        together(tmp_path / "new", dual(), reuse=old)
    assert not (tmp_path / "new" / "0.ledger").exists()


def test_other_candidates_take_over_what_they_have_in_common(tmp_path):
    old = run(tmp_path / "old", dual(), **ALL)
    fewer = {"router": deep(seed=9, answers=2), "classifier": deep(seed=7), "sigmas": (0.25, 1.0)}
    (path,) = together(tmp_path / "new", dual(**fewer), reuse=old, **ALL)
    assert rows(path) == rows(run(tmp_path / "afresh", dual(**fewer), **ALL))


def test_separate_noise_stays_separate_for_a_run_that_reuses_it(tmp_path):
    old = run(tmp_path / "old", dual(share=False), **ALL)
    (path,) = together(tmp_path / "new", dual(deep(seed=9)), reuse=old, **ALL)
    assert rows(path) == rows(run(tmp_path / "afresh", dual(deep(seed=9), share=False), **ALL))


def test_a_rival_half_sampled_is_no_hindrance_to_another_rule(tmp_path, monkeypatch):
    """A run under fusion was killed while a rival voted; the rule paper never asks that rival for the rest."""
    path, model = tmp_path / "old", dual()

    def stop(progress):
        half = "SELECT 1 FROM votes WHERE part = 'estimation' GROUP BY input, stage, sigma HAVING sum(stop - start) < ?"
        with Ledger.open(path) as ledger:
            rivals = "SELECT count(DISTINCT sigma) FROM votes WHERE stage = 'class' GROUP BY input"
            several = max((row[0] for row in ledger.database.rows(rivals)), default=0) > 1
            if several and list(ledger.database.rows(half, (PLAN.n,))):
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(path, model, report=stop)
    settings = {"plan": PLAN, "alpha": 0.01, "seed": 4, "indices": range(8)}
    for reuse, name in ((path, "new"), (None, "afresh")):
        again = dual()
        certify_together([Certification(again, again.rule("paper"), tmp_path / name, reuse)], DATA, **settings)
    with Ledger.open(tmp_path / "new") as new, Ledger.open(tmp_path / "afresh") as afresh:
        assert verify(new) == []
        assert [c.certificate for c in new.certificates().values()] == [
            c.certificate for c in afresh.certificates().values()
        ]


def test_seed_is_that_of_the_run_gone_on_with_or_reused_and_else_a_secret(tmp_path):
    def seed_of(path, **options):
        run(path, dual(), seed=options.pop("seed", None), **options)
        with Ledger.open(path) as ledger:
            return ledger.header.seed

    first, second = seed_of(tmp_path / "a", indices=[0]), seed_of(tmp_path / "b", indices=[0])
    assert first != second
    assert min(first, second) > 2**64  # but for a chance of 2^-63
    assert seed_of(tmp_path / "a", indices=[0, 1]) == first
    assert seed_of(tmp_path / "c", indices=[0], reuse=tmp_path / "a") == first
    assert seed_of(tmp_path / "d", indices=[0], seed=0) == 0
    with pytest.raises(ForeignLedger, match=f"seed is {first:#x} on record but 0 was given"):
        seed_of(tmp_path / "a", indices=[0], seed=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"plan": SamplingPlan(40, PLAN.n)}, "n0 is 30 on record but 40 was given", id="another n0"),
        pytest.param({"indices": [7]}, "no votes of the router at sigma 1 on the inputs asked for", id="other inputs"),
    ],
)
def test_nothing_to_take_over_is_said(options, message, tmp_path):
    old = run(tmp_path / "old", dual(), indices=range(7), **ALL)
    with pytest.raises(ForeignLedger, match=message):
        together(tmp_path / "new", dual(), reuse=old, **ALL, **options)
    assert not (tmp_path / "new" / "0.ledger").exists()


def test_an_adaptive_run_takes_nothing_over(tmp_path):
    from dualrs.policy import Grid

    old = run(tmp_path / "old", dual(), **ALL)
    plan = SamplingPlan(PLAN.n0, 400, (100, 200, 400))
    with pytest.raises(BadSetting, match="decides from vote to vote"):
        together(tmp_path / "new", dual(), reuse=old, plan=plan, target=Grid())


def test_a_network_that_changed_in_secret_is_found(tmp_path):
    old = run(tmp_path / "old", dual(), **ALL)
    changed = deep(seed=7)
    changed.shift = 0.1
    with pytest.raises(ForeignLedger, match="was not written by this model"):
        together(tmp_path / "new", dual(deep(seed=9), changed), reuse=old, **ALL)


def test_answers_of_shared_copies_are_those_of_the_whole_module():
    from dualrs.models.denoise import answer_together
    from dualrs.models.noisy import NoisyModel

    front = Blur()
    modules = [Denoised(front, deep(seed=1)), deep(seed=2), Denoised(front, deep(seed=3))]
    noisy = torch.from_numpy(np.random.default_rng(1).normal(size=(5, 1, 6, 6)).astype(np.float32))
    found = answer_together([NoisyModel("n", m) for m in modules], noisy, 0.5)
    for module, logits in zip(modules, found, strict=True):
        expected = module(noisy, 0.5) if isinstance(module, Denoised) else module(noisy)
        assert torch.equal(logits, expected)
