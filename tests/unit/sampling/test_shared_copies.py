"""Networks that vote on the same noisy copies: denoised once for all heads, with the votes each would have alone."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from watched_networks import Asking, Exact, Watched, engine, images, noisy_rows, slow_counts, source, unit

from dualrs import DualSmoothed
from dualrs.errors import BadModel, BadSetting, NonFiniteLogits
from dualrs.models.denoise import Denoised, answer_together
from dualrs.models.noisy import NoisyModel
from dualrs.sampling.counting import count
from dualrs.sampling.work import Request
from dualrs.votes import Part, Stage

IMAGES = images(3)
SEED = 4
ROUTER, EXPERT, OTHER = (Stage.ROUTER, 1.0), (Stage.CLASS, 1.0), (Stage.CLASS, 0.5)


class Denoiser(nn.Module):
    """Rounds down to even grey levels, exactly; remembers the batches that it sees."""

    def __init__(self):
        super().__init__()
        self.batches = []
        self.eval()

    def forward(self, noisy, sigma):
        self.batches.append((sigma, noisy.flatten(1).numpy().copy()))
        return ((noisy * 255).round() / 2).floor() * 2 / 255


class WithSigma(nn.Module):
    """A head that is told the sigma."""

    def __init__(self, network):
        super().__init__()
        self.network, self.told = network, []
        self.eval()

    def forward(self, x, sigma):
        self.told.append(sigma)
        return self.network(x)


def behind(denoiser, seed, answers=3):
    return Denoised(denoiser, Exact(16, answers, seed))


def asked(votes=230, stages=(ROUTER, EXPERT), parts=tuple(Part)):
    return [unit(name, votes, stage, part, sigma) for name in IMAGES for stage, sigma in stages for part in parts]


def run(models, units, **options):
    work = Asking(IMAGES, units)
    count([engine(models, IMAGES["0"], **options)], work, source(SEED))
    return work


def on_noise_of(stage, u):
    return replace(u, stream=replace(u.stream, stage=stage))


# Votes


@pytest.mark.parametrize("batch_size", [37, 100, 512])
def test_router_and_expert_at_its_sigma_vote_on_the_routers_noise(batch_size):
    """Against one copy at a time: drawn by the router's address, denoised, and shown to either head."""
    denoiser = Denoiser()
    models = {ROUTER: behind(denoiser, 1, answers=2), EXPERT: behind(denoiser, 2), OTHER: behind(denoiser, 2)}
    units = asked(stages=(ROUTER, EXPERT, OTHER))
    counted = run(models, units, batch_size=batch_size).counts
    for u in units:
        network = models[u.stream.stage, u.stream.sigma]
        source = on_noise_of(Stage.ROUTER, u) if u.stream.sigma == 1.0 else u
        answers = 2 if u.stream.stage is Stage.ROUTER else 3
        by_hand = slow_counts(lambda x, m=network: m(x, sigma=1.0), SEED, source, IMAGES[u.input_id], answers)
        np.testing.assert_array_equal(counted[u], by_hand)


def test_expert_apart_votes_on_noise_of_its_own_and_nothing_else_changes():
    units = asked(stages=(ROUTER, EXPERT, OTHER))
    models = {ROUTER: Exact(16, seed=1), EXPERT: Exact(16, seed=2), OTHER: Exact(16, seed=2)}
    together, apart = (run(models, units, batch_size=64, share=share).counts for share in (True, False))
    for u in units:
        same = np.array_equal(together[u], apart[u])
        assert same == ((u.stream.stage, u.stream.sigma) != EXPERT)
        if not same:
            np.testing.assert_array_equal(apart[u], slow_counts(models[EXPERT], SEED, u, IMAGES[u.input_id], 3))


def test_votes_are_the_same_whether_both_ask_at_once_or_one_after_the_other():
    models = {ROUTER: Exact(16, seed=1), EXPERT: Exact(16, seed=2)}
    at_once = run(models, asked(), batch_size=64).counts
    for stage in (ROUTER, EXPERT):
        alone = run(models, asked(stages=[stage]), batch_size=64).counts
        for u, counts in alone.items():
            np.testing.assert_array_equal(counts, at_once[u])


def test_selection_and_estimation_share_no_copy():
    """Sharing is between stages: what selects is seen by no bound of either."""
    seen = {}
    for part in Part:
        watched = Watched(Exact(16))
        run({ROUTER: watched, EXPERT: Exact(16, seed=2)}, asked(parts=[part]), batch_size=64)
        seen[part] = set(watched.rows())
    assert not seen[Part.SELECTION] & seen[Part.ESTIMATION]


def test_both_networks_see_the_very_same_rows():
    router, expert = Watched(Exact(16, seed=1)), Watched(Exact(16, seed=2))
    run({ROUTER: router, EXPERT: expert}, asked(), batch_size=64)
    assert router.rows() == expert.rows()
    expected = {
        row.tobytes()
        for u in asked(stages=[ROUTER])
        for row in noisy_rows(SEED, u.input_id, u.stream, 0, 230, IMAGES[u.input_id])
    }
    assert set(router.rows()) == expected


# What it costs


@pytest.mark.parametrize(("share", "times"), [(True, 1), (False, 2)], ids=["shared", "apart"])
def test_denoiser_sees_every_joint_batch_once(share, times):
    denoiser = Denoiser()
    models = {ROUTER: behind(denoiser, 1), EXPERT: behind(denoiser, 2)}
    made = engine(models, IMAGES["0"], batch_size=64, share=share)
    denoiser.batches.clear()
    work = Asking(IMAGES, asked())
    count([made], work, source(SEED))
    copies = 230 * len(IMAGES) * len(Part)
    assert len(denoiser.batches) == times * math.ceil(copies / 64)
    assert work.batches == len(denoiser.batches)


def test_time_of_a_joint_batch_is_counted_once():
    class Slow(Exact):
        def forward(self, x):
            torch.zeros(300, 300) @ torch.zeros(300, 300)
            return super().forward(x)

    work = run({ROUTER: Slow(16, seed=1), EXPERT: Slow(16, seed=2)}, asked(500), batch_size=100)
    pairs = {(u.input_id, u.stream.part): u for u in work.seconds if u.stream.stage is Stage.ROUTER}
    for u in pairs.values():
        twin = replace(u, stream=replace(u.stream, stage=Stage.CLASS))
        assert work.seconds[u] == work.seconds[twin] > 0


@pytest.mark.parametrize("share", [True, False], ids=["shared", "apart"])
@pytest.mark.parametrize("name", ["fusion", "nosplit"])
def test_batches_of_an_adaptive_run_are_nearly_full(name, share):
    """Many inputs at different looks, sigmas and stages, behind a denoiser, so that no two sigmas share a batch."""
    inputs, batch_size = 120, 256
    denoiser = Denoiser()
    model = DualSmoothed(
        behind(denoiser, 1), behind(denoiser, 2), (0.25, 0.5, 1.0), 1.0, batch_size=batch_size, share=share
    )
    pictures = np.stack(list(images(inputs).values()))
    model.engine.prepare(pictures[0])
    denoiser.batches.clear()
    votes = []
    model.certify(
        pictures, n=800, alpha=0.001, rule=name, budget="adaptive", ids=range(inputs),
        progress=lambda p: votes.append(p.votes),
    )  # fmt: skip
    # A row repeats only as padding: noise of sixteen pixels never does.
    used = sum(len({row.tobytes() for row in batch}) for _, batch in denoiser.batches)
    slots = batch_size * len(denoiser.batches)
    assert used >= 0.9 * slots
    if not share:  # else a copy may have two votes
        assert 0.9 * slots <= votes[-1] <= used  # some are cast ahead, and not asked for in the end
    assert votes[-1] < inputs * 2 * 900  # it did stop early


# Several heads at once


def test_heads_behind_one_denoiser_answer_as_each_would_alone():
    denoiser, x = Denoiser(), torch.rand(20, 1, 4, 4)
    models = [NoisyModel(f"head {k}", behind(denoiser, k)) for k in range(3)]
    alone = [model(x, 0.5) for model in models]
    denoiser.batches.clear()
    together = answer_together(models, x, 0.5)
    assert len(denoiser.batches) == 1
    for one, other in zip(alone, together, strict=True):
        assert torch.equal(one, other)


def test_denoisers_that_differ_work_for_themselves():
    first, second, x = Denoiser(), Denoiser(), torch.rand(20, 1, 4, 4)
    modules = [behind(first, 1), behind(second, 2), Exact(16, seed=3), behind(first, 4)]
    models = [NoisyModel(f"head {k}", m) for k, m in enumerate(modules)]
    alone = [model(x, 0.5) for model in models]
    first.batches.clear()
    second.batches.clear()
    together = answer_together(models, x, 0.5)
    assert (len(first.batches), len(second.batches)) == (1, 1)
    assert all(torch.equal(one, other) for one, other in zip(alone, together, strict=True))


def test_head_is_told_the_sigma_of_the_copies():
    denoiser = Denoiser()
    told = WithSigma(Exact(16, seed=1))
    models = [NoisyModel("told", Denoised(denoiser, told)), NoisyModel("other", behind(denoiser, 2))]
    answer_together(models, torch.rand(5, 1, 4, 4), 0.75)
    assert told.told == [0.75]
    assert denoiser.batches[-1][0] == 0.75


def test_what_is_no_table_of_logits_is_refused_by_name():
    class Flat(nn.Module):
        def forward(self, x):
            return x.flatten(1).sum(dim=1)

    denoiser = Denoiser()
    models = [NoisyModel("good head", behind(denoiser, 1)), NoisyModel("flat head", Denoised(denoiser, Flat().eval()))]
    with pytest.raises(BadModel, match=r"the flat head returned shape \(5,\)"):
        answer_together(models, torch.rand(5, 1, 4, 4), 0.5)


def test_not_a_number_from_one_of_two_names_the_network_and_the_input():
    class Brittle(nn.Module):
        def forward(self, x):
            return Exact(16, seed=2)(x) + torch.where(x.mean(dim=(1, 2, 3)) > 1.4, torch.nan, 0.0)[:, None]

    pictures = {"0": IMAGES["0"] // 8, "1": IMAGES["1"] // 8, "2": np.full((1, 4, 4), 255, np.uint8)}
    made = engine({ROUTER: Exact(16, seed=1), EXPERT: Brittle().eval()}, pictures["0"], batch_size=64)
    work = Asking(
        pictures, [unit(n, 1000, *slot[:1], Part.ESTIMATION, 1.0) for n in pictures for slot in (ROUTER, EXPERT)]
    )
    with pytest.raises(NonFiniteLogits, match=r"the class at 1.0 returned NaN .* noisy copies, of input 2$"):
        count([made], work, source(SEED))
    assert not any(u.input_id == "2" for u in work.counts)


# Several engines


class Panel(Asking):
    """Requests of two members for the same units, the second member's first."""

    def __post_init__(self):
        super().__post_init__()
        self.of = {0: {}, 1: {}}

    def more(self):
        found = super().more()
        return found and [Request(unit, member) for unit, *_ in found for member in (1, 0)]

    def deliver(self, request, counts, seconds):
        assert request.unit not in self.of[request.member], "a unit was delivered twice"
        self.of[request.member][request.unit] = counts
        return ()


def test_members_of_a_panel_have_the_votes_that_each_would_have_alone():
    denoiser = Denoiser()
    models = [{ROUTER: behind(denoiser, k), EXPERT: behind(denoiser, 5, answers=2 + k)} for k in (1, 2)]
    panel = [engine(m, IMAGES["0"], batch_size=64) for m in models]
    denoiser.batches.clear()
    work = Panel(IMAGES, asked())
    count(panel, work, source(SEED))
    assert len(denoiser.batches) == math.ceil(230 * len(IMAGES) * len(Part) / 64), "once for all four networks"
    for member, m in enumerate(models):
        alone = run(m, asked(), batch_size=64).counts
        assert alone.keys() == work.of[member].keys()
        for u, counts in alone.items():
            np.testing.assert_array_equal(work.of[member][u], counts)


@pytest.mark.parametrize(
    ("options", "got"),
    [({"batch_size": 32}, "64 float32 cpu and 32 float32 cpu"), ({"dtype": "bfloat16"}, "float32 cpu and 64 bfloat16")],
    ids=["batch size", "precision"],
)
def test_members_of_a_panel_must_run_alike(options, got):
    panel = [engine({ROUTER: Exact(16)}, IMAGES["0"], **({"batch_size": 64} | o)) for o in ({}, options)]
    with pytest.raises(BadSetting, match=f"need one batch size, precision and device; got .*{got}"):
        count(panel, Asking(IMAGES, asked(stages=[ROUTER])), source(SEED))
