"""Smoothed and DualSmoothed as a user meets them: what certify and predict return, and what is refused.

Networks answer by comparing pixels with thresholds, or by sums of integers in doubles: nothing rounds, so that a
slow loop over single noisy copies must give the same votes to the last one.
"""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from dualrs import ABSTAIN, Certificate, Certificates, DualSmoothed, Outcome, Prediction, Predictions, Smoothed
from dualrs.certificates import predict, predict_dual
from dualrs.errors import (
    BadImage,
    BadModel,
    BadSetting,
    BatchDependent,
    InputQuantized,
    NonDeterministic,
    NonFiniteLogits,
    TooFewVotes,
    TrainingMode,
)
from dualrs.policy import Grid, Tolerance
from dualrs.sampling.noise import NoiseSource, draw_block
from dualrs.schemes import DualVotes, rule
from dualrs.smoothed import Cascade, Pool, RouterAlone, certify_dataset
from dualrs.votes import BLOCK, Part, Purpose, SamplingPlan, Stage, Stream, Votes
from small import Small

SIGMAS, SIGMA_E = (0.25, 0.5, 1.0), 1.0
IMAGES = np.random.default_rng(0).integers(0, 256, (6, 1, 4, 4), dtype=np.uint8)


class Sums(nn.Module):
    """Integer sums of integer pixels, in doubles: the same logits to the last bit in any batch."""

    def __init__(self, answers, seed):
        super().__init__()
        weights = np.random.default_rng(seed).integers(-4, 5, (16, answers))
        self.register_buffer("weights", torch.tensor(weights, dtype=torch.float64))
        self.register_buffer("shift", torch.arange(answers) / 4 - 128 * self.weights.sum(dim=0))
        self.eval()

    def forward(self, x):
        return (x.flatten(1).double() * 255).round() @ self.weights + self.shift


class Threshold(nn.Module):
    """The number of cuts that one pixel exceeds; remembers how many different noisy copies it has seen."""

    def __init__(self, pixel, *cuts, answers=None):
        super().__init__()
        self.pixel, self.cuts, self.answers = pixel, torch.tensor(cuts), answers or len(cuts) + 1
        self.seen = set()
        self.eval()

    def forward(self, x):
        self.seen.update(row.tobytes() for row in x.flatten(1).numpy())
        above = x.flatten(1)[:, self.pixel, None] > self.cuts
        return nn.functional.one_hot(above.sum(dim=1), self.answers).float()


class Always(nn.Module):
    """One answer whatever the image."""

    def __init__(self, answer, answers=3):
        super().__init__()
        self.register_buffer("logits", nn.functional.one_hot(torch.tensor(answer), answers).float())
        self.eval()

    def forward(self, x):
        return self.logits.expand(len(x), -1)


class BySigma(nn.Module):
    """The answer is the place of sigma among the candidates."""

    def forward(self, x, sigma):
        return Always(SIGMAS.index(sigma))(x)


class Untouchable(nn.Module):
    """A network that must not be called."""

    def forward(self, x):
        raise AssertionError("the network was called")


def dual(router=None, classifier=None, sigmas=SIGMAS, sigma_e=SIGMA_E, batch_size=100, **options):
    router = Sums(3, seed=1) if router is None else router
    classifier = Sums(3, seed=2) if classifier is None else classifier
    return DualSmoothed(router, classifier, sigmas, sigma_e, batch_size=batch_size, **options)


def fields(certificates):
    """What certificates claim, field by field; votes alone know of no seed."""
    return [{name: value for name, value in vars(c).items() if name != "seed"} for c in certificates]


# What comes back


@pytest.mark.parametrize("model", [dual(), Smoothed(Sums(3, 2), 0.5, batch_size=100)], ids=["two stages", "one sigma"])
class TestShapes:
    def test_one_image_gives_one_certificate(self, model):
        certificate = model.certify(IMAGES[0], n=100, alpha=0.05, seed=0)
        assert isinstance(certificate, Certificate)
        assert isinstance(certificate.radius, float)
        assert isinstance(certificate.prediction, int)

    def test_batch_gives_a_row_for_each(self, model):
        certificates = model.certify(IMAGES, n=100, alpha=0.05, seed=0)
        assert isinstance(certificates, Certificates)
        assert len(certificates) == 6
        assert certificates.radius.shape == (6,)
        assert vars(certificates[3]) == vars(model.certify(IMAGES[3], n=100, alpha=0.05, seed=0))

    def test_batch_of_one_is_a_batch(self, model):
        assert isinstance(model.certify(IMAGES[:1], n=100, alpha=0.05, seed=0), Certificates)
        assert isinstance(model.predict(IMAGES[:1], n=100, seed=0), Predictions)

    def test_predict_gives_the_same_forms(self, model):
        prediction = model.predict(IMAGES[0], n=200, seed=0)
        assert isinstance(prediction, Prediction)
        predictions = model.predict(IMAGES, n=200, seed=0)
        assert isinstance(predictions, Predictions)
        assert predictions[0] == prediction

    @pytest.mark.parametrize(
        "same",
        [
            pytest.param(torch.from_numpy(IMAGES), id="a torch tensor"),
            pytest.param(IMAGES / 255, id="doubles"),
            pytest.param(torch.from_numpy(IMAGES) / 255, id="floats"),
            pytest.param((torch.from_numpy(IMAGES) / 255).half(), id="half precision"),
        ],
    )
    def test_images_of_any_kind_are_the_same_images(self, model, same):
        assert fields(model.certify(same, n=100, alpha=0.05, seed=0)) == fields(
            model.certify(IMAGES, n=100, alpha=0.05, seed=0)
        )

    def test_results_do_not_depend_on_order_or_company(self, model):
        whole = fields(model.certify(IMAGES, n=100, alpha=0.05, seed=0))
        order = [4, 0, 5, 2, 1, 3]
        assert fields(model.certify(IMAGES[order], n=100, alpha=0.05, seed=0)) == [whole[i] for i in order]
        assert fields(model.certify(IMAGES[2:4], n=100, alpha=0.05, seed=0)) == whole[2:4]
        assert list(model.predict(IMAGES[order], n=100, seed=0)) == [
            model.predict(IMAGES[i], n=100, seed=0) for i in order
        ]

    def test_equal_images_in_a_batch_are_sampled_once_and_get_equal_certificates(self, model):
        votes = []
        twice = model.certify(
            np.concatenate([IMAGES[:2]] * 2), n=100, alpha=0.05, seed=0, progress=lambda p: votes.append(p.votes)
        )
        once_votes = []
        once = model.certify(IMAGES[:2], n=100, alpha=0.05, progress=lambda p: once_votes.append(p.votes), seed=0)
        assert fields(twice) == fields(once) * 2
        assert votes[-1] == once_votes[-1]

    def test_seed_decides_the_noise(self, model):
        first, again, other = (fields(model.certify(IMAGES, n=100, alpha=0.05, seed=s)) for s in (7, 7, 8))
        assert first == again
        assert first != other

    def test_id_decides_the_noise_and_the_place_does_not(self, model):
        copies = np.concatenate([IMAGES[:1]] * 3)
        named = fields(model.certify(copies, n=100, alpha=0.05, ids=["a", "b", 3], seed=0))
        assert fields(model.certify(copies, n=100, alpha=0.05, ids=["3", "a", "b"], seed=0)) == [named[2], *named[:2]]
        assert len({c["r_c"] for c in named} | {c["r_sigma"] for c in named}) > 2

    def test_batch_size_changes_nothing(self, model):
        other = dual(batch_size=37) if isinstance(model, DualSmoothed) else Smoothed(Sums(3, 2), 0.5, batch_size=37)
        assert fields(other.certify(IMAGES, n=100, alpha=0.05, seed=0)) == fields(
            model.certify(IMAGES, n=100, alpha=0.05, seed=0)
        )

    def test_progress_is_told_to_the_end(self, model):
        inputs = []
        model.certify(IMAGES, n=100, alpha=0.05, progress=lambda p: inputs.append(p.inputs), seed=0)
        assert inputs[0] == 0
        assert inputs[-1] == 6
        assert inputs == sorted(inputs)


def test_image_off_the_grid_is_certified_at_the_nearest_grey_levels():
    model = Smoothed(Sums(3, 2), 0.5, batch_size=100)
    with pytest.warns(InputQuantized, match="centred there"):
        shifted = model.certify(np.clip(IMAGES / 255 + 0.3 / 255, 0, 1), n=100, alpha=0.05, seed=0)
    assert fields(shifted) == fields(model.certify(IMAGES, n=100, alpha=0.05, seed=0))


# Against a slow loop


def slow_votes(network, stage, sigma, answers, plan, names, seed, noise_of=None, purpose=Purpose.CERTIFY):
    """Votes of one network, one noisy copy at a time, counted in Python; on the noise of another stage, if named."""
    tables = {}
    for part in Part:
        rows = []
        for name, image in zip(names, IMAGES, strict=True):
            counts = Counter()
            for vote in range(plan.votes(part)):
                block, offset = divmod(vote, BLOCK)
                noise = draw_block(
                    NoiseSource(purpose, seed), name, image, Stream(noise_of or stage, part, sigma), block
                )[offset]
                noisy = (torch.from_numpy(noise).view(1, *image.shape) + torch.from_numpy(image)).float() / 255
                counts[int(network(noisy).argmax())] += 1
            rows.append([counts[a] for a in range(answers)])
        tables[part] = np.array(rows, dtype=np.int64)
    return Votes(sigma, tables[Part.SELECTION], tables[Part.ESTIMATION], plan)


NAMES = [f"image {i}" for i in range(6)]
PLAN = SamplingPlan(n0=30, n=220)
ROUTER, CLASSIFIER = Sums(3, seed=6), Sums(3, seed=4)


@pytest.fixture(scope="module")
def slow():
    """All votes of both stages, every expert included, each on noise of its own."""
    experts = [slow_votes(CLASSIFIER, Stage.CLASS, s, 3, PLAN, NAMES, seed=5) for s in SIGMAS]
    return DualVotes(slow_votes(ROUTER, Stage.ROUTER, SIGMA_E, 3, PLAN, NAMES, seed=5), tuple(experts))


@pytest.fixture(scope="module")
def slow_shared(slow):
    """The same, but the expert at sigma_e votes on the router's noisy copies."""
    shared = slow_votes(CLASSIFIER, Stage.CLASS, SIGMA_E, 3, PLAN, NAMES, seed=5, noise_of=Stage.ROUTER)
    return DualVotes(slow.router, (*slow.experts[:-1], shared))


@pytest.fixture(params=["slow", "slow_shared"], ids=["own noise", "shared noise"])
def shared_and_votes(request):
    """Whether the stages share their copies, and all votes of both."""
    return request.param == "slow_shared", request.getfixturevalue(request.param)


@pytest.mark.parametrize("name", ["paper", "paper-1:4", "nosplit", "fusion", "fusion-pair"])
@pytest.mark.parametrize("alpha", [0.001, 0.2])
def test_certify_is_the_rule_applied_to_the_votes(name, alpha, shared_and_votes):
    share, votes = shared_and_votes
    model = dual(ROUTER, CLASSIFIER, share=share)
    certificates = model.certify(IMAGES, n=220, n0=30, alpha=alpha, rule=name, seed=5, ids=NAMES)
    # Under fusion the model left experts out that could not help; the radius must be that with all of them sampled.
    expected = rule(name).certify(votes, alpha)
    assert certificates.radius.tolist() == expected.radius.tolist()
    assert certificates.prediction.tolist() == expected.prediction.tolist()
    assert certificates.sigma_c.tolist() == expected.sigma_c.tolist()
    assert certificates.r_c.tolist() == expected.r_c.tolist()
    assert certificates.outcome.tolist() == expected.outcome.tolist()


def test_slow_votes_are_worth_the_comparison(shared_and_votes):
    """Several sigmas chosen, several classes, certificates and abstentions: nothing is compared with itself only."""
    certificates = rule("fusion").certify(shared_and_votes[1], 0.2)
    assert len(set(certificates.sigma_c)) > 1
    assert len(set(certificates.prediction)) > 2
    assert 0 < certificates.abstained.sum() < 6


def test_sharing_changes_the_votes_of_the_expert_at_sigma_e_and_nothing_else(slow, slow_shared):
    assert (slow.experts[-1].selection != slow_shared.experts[-1].selection).any()
    assert (slow.experts[-1].estimation != slow_shared.experts[-1].estimation).any()
    settings = {"n": 220, "n0": 30, "alpha": 0.2, "rule": "nosplit", "seed": 5, "ids": NAMES}
    apart, together = (dual(ROUTER, CLASSIFIER, share=s).certify(IMAGES, **settings) for s in (False, True))
    assert apart.r_sigma.tolist() == together.r_sigma.tolist()
    assert apart.sigma_c.tolist() == together.sigma_c.tolist()
    at_sigma_e = apart.sigma_c == SIGMA_E
    assert at_sigma_e.any()
    assert (apart.r_c != together.r_c).tolist() == at_sigma_e.tolist()


def test_stages_share_their_noise_by_default():
    settings = {"n": 220, "n0": 30, "alpha": 0.2, "seed": 5, "ids": NAMES}
    by_default, shared = (
        dual(ROUTER, CLASSIFIER, **options).certify(IMAGES, **settings) for options in ({}, {"share": True})
    )
    assert fields(by_default) == fields(shared)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_one_sigma_is_cohen_applied_to_the_votes(sigma, slow):
    certificates = Smoothed(CLASSIFIER, sigma).certify(IMAGES, n=220, n0=30, alpha=0.05, seed=5, ids=NAMES)
    assert fields(certificates) == fields(rule("cohen").certify(slow.experts[SIGMAS.index(sigma)], 0.05))


@pytest.mark.parametrize("share", [False, True], ids=["own noise", "shared noise"])
def test_predict_is_the_test_applied_to_the_estimation_votes(share):
    """On noise of its own: what was certified and what is predicted have no copy in common."""
    settings = {"plan": PLAN, "names": NAMES, "seed": 5, "purpose": Purpose.PREDICT}
    router = slow_votes(ROUTER, Stage.ROUTER, SIGMA_E, 3, **settings)
    noise_of = {SIGMA_E: Stage.ROUTER} if share else {}
    experts = [slow_votes(CLASSIFIER, Stage.CLASS, s, 3, noise_of=noise_of.get(s), **settings) for s in SIGMAS]
    votes = DualVotes(router, tuple(experts))
    for alpha in (0.001, 0.3):
        found = dual(ROUTER, CLASSIFIER, share=share).predict(IMAGES, n=220, alpha=alpha, seed=5, ids=NAMES)
        assert list(found) == list(predict_dual(votes, alpha))
        found = Smoothed(CLASSIFIER, 0.5).predict(IMAGES, n=220, alpha=alpha, seed=5, ids=NAMES)
        assert list(found) == list(predict(votes.experts[1], alpha))


# Experts, sigmas and who is asked


def test_module_with_a_parameter_sigma_is_told_the_chosen_one():
    for place, sigma in enumerate(SIGMAS):
        model = dual(Always(place), BySigma().eval())
        certificate = model.certify(IMAGES[0], n=100, seed=0)
        assert (certificate.prediction, certificate.sigma_c) == (place, sigma)


def test_expert_of_the_chosen_sigma_answers():
    experts = {0.5: Always(2), 1.0: Always(0), 0.25: Always(1)}  # in no order
    for place, answer in enumerate((1, 2, 0)):
        certificate = dual(Always(place), experts).certify(IMAGES[0], n=100, seed=0)
        assert (certificate.prediction, certificate.sigma_c) == (answer, SIGMAS[place])


def test_candidates_keep_the_order_in_which_they_were_given():
    model = dual(Always(0), BySigma().eval(), sigmas=(1.0, 0.25, 0.5))
    assert model.certify(IMAGES[0], n=100, seed=0).sigma_c == 1.0


def experts_seen(router, rule_name, experts=None):
    experts = experts or {s: Threshold(1, -9.0, answers=3) for s in SIGMAS}
    model = dual(router, experts)
    model.engine.prepare(IMAGES[0])
    for expert in experts.values():
        expert.seen.clear()
    certificate = model.certify(np.full((1, 4, 4), 128, np.uint8), n=300, n0=50, alpha=0.01, rule=rule_name, seed=0)
    return certificate, [len(experts[s].seen) for s in SIGMAS]


def test_fusion_asks_only_the_experts_that_could_help():
    sure, hesitant = Threshold(0, -9.0, 9.0), Threshold(0, -9.0, 0.7)  # of 0.5; between 0.5 and 1.0
    assert experts_seen(sure, "fusion")[1] == [0, 350, 0]
    assert experts_seen(hesitant, "paper")[1] == [0, 350, 0]
    # The rival gets estimation votes only; 0.25 is ruled out by the router from farther than the class can reach.
    certificate, votes = experts_seen(hesitant, "fusion")
    assert votes == [0, 350, 300]
    assert certificate.radius > experts_seen(hesitant, "paper")[0].radius


def test_expert_that_disagrees_is_asked_and_limits_the_radius():
    experts = {
        0.25: Threshold(1, -9.0, answers=3),
        0.5: Threshold(1, -9.0, answers=3),
        1.0: Threshold(1, 9.0, answers=3),
    }
    certificate, votes = experts_seen(Threshold(0, -9.0, 0.7), "fusion", experts)
    assert votes == [0, 350, 300]
    assert certificate.limited_by == "rival 1"


def test_fusion_is_the_default_of_two_stages_and_cohen_of_one():
    assert dual().rule().name == "fusion"
    assert fields(dual().certify(IMAGES, n=100, seed=0)) == fields(dual().certify(IMAGES, n=100, rule="fusion", seed=0))
    assert Smoothed(Sums(3, 2), 0.5).rule().name == "cohen"


def test_undecided_stages_abstain_and_say_which():
    coin = Threshold(0, 0.5001)
    image = np.full((1, 4, 4), 128, np.uint8)
    routed = dual(coin, {0.25: Always(0), 1.0: Always(1)}, sigmas=(0.25, 1.0)).certify(image, n=100, seed=0)
    assert (routed.prediction, routed.radius, routed.outcome) == (ABSTAIN, 0.0, Outcome.ROUTER_UNDECIDED)
    classed = dual(Always(0), coin).certify(image, n=100, seed=0)
    assert (classed.prediction, classed.radius, classed.outcome) == (ABSTAIN, 0.0, Outcome.CLASS_UNDECIDED)


# Adaptive


ADAPTIVE = {"n": 800, "n0": 30, "alpha": 0.01, "seed": 5, "budget": "adaptive"}


@pytest.mark.parametrize(
    "model",
    [dual(ROUTER, CLASSIFIER), dual(ROUTER, CLASSIFIER, share=False), Smoothed(CLASSIFIER, 0.5, batch_size=100)],
    ids=["two stages", "two stages apart", "one sigma"],
)
class TestAdaptive:
    def test_certificates_do_not_depend_on_order_or_company(self, model):
        whole = fields(model.certify(IMAGES, ids=NAMES, **ADAPTIVE))
        order = [4, 0, 5, 2, 1, 3]
        shuffled = model.certify(IMAGES[order], ids=[NAMES[i] for i in order], **ADAPTIVE)
        assert fields(shuffled) == [whole[i] for i in order]
        assert fields([model.certify(IMAGES[3], ids=[NAMES[3]], **ADAPTIVE)]) == [whole[3]]

    def test_fewer_votes_serve_the_grid_as_well(self, model):
        votes = {"fixed": [], "adaptive": []}
        found = {
            budget: model.certify(
                IMAGES,
                ids=NAMES,
                **(ADAPTIVE | {"budget": budget}),
                progress=lambda p, v=votes[budget]: v.append(p.votes),
            )
            for budget in votes
        }
        assert votes["adaptive"][-1] < votes["fixed"][-1]
        for radius in (0.0, 0.25, 0.5):
            fixed, adaptive = (((c.radius > 0) & (c.radius >= radius)).sum() for c in found.values())
            assert abs(int(fixed) - int(adaptive)) <= 1

    def test_grid_of_the_tables_is_the_default(self, model):
        by_default, given = (model.certify(IMAGES, ids=NAMES, **ADAPTIVE, **t) for t in ({}, {"target": Grid()}))
        assert fields(by_default) == fields(given)

    def test_target_decides_when_to_stop(self, model):
        radii = [
            model.certify(IMAGES, ids=NAMES, **ADAPTIVE, target=t).radius.sum()
            for t in (Tolerance(5.0), Tolerance(0.2), Tolerance(1e-6))
        ]
        assert radii[0] <= radii[1] <= radii[2]
        assert radii[0] < radii[2]


def test_more_than_one_look_needs_more_than_a_block_of_votes():
    """With n of one block there is nothing to stop at: the same votes, and the same certificates."""
    small = {"n": 100, "alpha": 0.05, "seed": 0, "ids": NAMES}
    fixed, adaptive = (dual().certify(IMAGES, **small, budget=b, rule="nosplit") for b in ("fixed", "adaptive"))
    assert fields(fixed) == fields(adaptive)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        pytest.param({"budget": "frugal"}, "the budget is 'fixed' or 'adaptive', got 'frugal'", id="an unknown budget"),
        pytest.param({"target": Grid()}, "a target is for budget='adaptive'", id="a target of a fixed n"),
        pytest.param(
            {"budget": "fixed", "target": Tolerance(0.1)}, "a target is for budget='adaptive'", id="a tolerance of one"
        ),
        pytest.param({"budget": "adaptive", "n": 9}, r"take n >= 1[01]", id="n too small for alpha"),
    ],
)
def test_impossible_budget_is_refused_before_the_network_is_called(settings, message):
    with pytest.raises(BadSetting, match=message):
        Smoothed(Untouchable().eval(), 0.5).certify(IMAGES, **settings)
    with pytest.raises(BadSetting, match=message):
        dual(Untouchable().eval(), Untouchable().eval()).certify(IMAGES, **settings)


# Misuse: settings


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        pytest.param(
            {"sigma_e": 0.5}, BadSetting, "sigma_e = 0.5 lies below the largest candidate", id="sigma_e too low"
        ),
        pytest.param({"sigmas": (0.5, 0.25, 0.5)}, BadSetting, "must be different", id="a sigma twice"),
        pytest.param(
            {"sigmas": (0.5,)}, BadSetting, "at least two candidate sigmas; for one, use Smoothed", id="one sigma"
        ),
        pytest.param({"sigmas": ()}, BadSetting, "at least two", id="no sigma"),
        pytest.param({"sigmas": (0.25, 0)}, BadSetting, "candidate sigma must be positive", id="sigma zero"),
        pytest.param({"sigmas": (0.25, -0.5)}, BadSetting, "must be positive", id="a negative sigma"),
        pytest.param({"sigmas": (0.25, float("nan"))}, BadSetting, "must be positive", id="a sigma that is no number"),
        pytest.param({"sigmas": (0.25, 64.0)}, BadSetting, "at most 8, in units of pixel", id="a sigma in grey levels"),
        pytest.param(
            {"sigma_e": float("inf")}, BadSetting, "sigma_e must be positive and at most 8", id="infinite sigma_e"
        ),
        pytest.param({"sigma_e": float("nan")}, BadSetting, "sigma_e must be", id="a sigma_e that is no number"),
        pytest.param(
            {"classifier": {0.25: Always(0), 0.5: Always(0)}}, BadSetting, "experts for sigmas", id="an expert missing"
        ),
        pytest.param(
            {"classifier": dict.fromkeys((*SIGMAS, 2.0), Always(0))},
            BadSetting,
            "experts for sigmas",
            id="an expert extra",
        ),
        pytest.param(
            {"classifier": dict.fromkeys(("0.25", "0.5", "1.0"), Always(0))}, BadSetting, "experts", id="sigmas as text"
        ),
        pytest.param(
            {"classifier": {0.25: Always(0), 0.5: Always(0), "1.0": Always(0)}}, BadSetting, "experts", id="one as text"
        ),
        pytest.param({"classifier": {}}, BadSetting, "experts for sigmas", id="no experts at all"),
        pytest.param({"router": lambda x: x}, BadModel, "router must be a torch.nn.Module", id="a router of no module"),
        pytest.param(
            {"classifier": {0.25: Always(0), 0.5: None, 1.0: Always(0)}},
            BadModel,
            "expert for sigma 0.5 must be a torch",
            id="an expert of no module",
        ),
        pytest.param(
            {"router": Always(0).train()}, TrainingMode, "the router is in training mode", id="a router in training"
        ),
        pytest.param(
            {"classifier": dict.fromkeys(SIGMAS, nn.Sequential(Always(0).train()))},
            TrainingMode,
            "expert for sigma 0.25 is in training mode",
            id="an expert in training",
        ),
        pytest.param({"batch_size": 0}, BadSetting, "batch size", id="no batch"),
        pytest.param({"dtype": "int8"}, BadSetting, "unknown dtype", id="an unknown dtype"),
        pytest.param({"device": "abacus"}, BadSetting, "unknown device", id="an unknown device"),
    ],
)
def test_impossible_two_stages_are_refused(settings, error, message):
    with pytest.raises(error, match=message):
        dual(**settings)


@pytest.mark.parametrize("sigma", [0, -0.25, float("nan"), float("inf"), 25.5], ids=lambda s: f"sigma {s}")
def test_impossible_sigma_is_refused(sigma):
    with pytest.raises(BadSetting, match="sigma must be positive and at most 8"):
        Smoothed(Always(0), sigma)


UNTOUCHED = [
    pytest.param(
        {"n": 9}, TooFewVotes, r"n = 9 cannot certify anything .* take n >= 1[01]", id="n too small for alpha"
    ),
    pytest.param({"n": 0}, BadSetting, "n must be at least 1", id="no estimation votes"),
    pytest.param({"n": -1}, BadSetting, "n must be at least 1", id="a negative number of votes"),
    pytest.param({"n0": 0}, BadSetting, "n0 must be at least 1", id="no selection votes"),
    pytest.param({"n0": -1}, BadSetting, "n0 must not be negative", id="a negative number of selection votes"),
    pytest.param({"alpha": 0}, BadSetting, "alpha must lie strictly between 0 and 1", id="alpha zero"),
    pytest.param({"alpha": 1}, BadSetting, "alpha must lie strictly", id="alpha one"),
    pytest.param({"alpha": float("nan")}, BadSetting, "alpha must lie strictly", id="an alpha that is no number"),
]
UNTOUCHED_DUAL = [
    *UNTOUCHED,
    pytest.param({"n": 10, "rule": "paper"}, TooFewVotes, r"take n >= 11", id="n too small for half of alpha"),
    pytest.param({"rule": "best"}, BadSetting, "unknown rule 'best'; the rules are cohen, paper", id="an unknown rule"),
    pytest.param({"rule": "cohen"}, BadSetting, "cohen is for one sigma; .*use paper, nosplit or fusion", id="cohen"),
    pytest.param({"rule": "paper-1:0"}, BadSetting, "positive share of alpha", id="a stage without a share"),
]


@pytest.mark.parametrize(("settings", "error", "message"), UNTOUCHED)
def test_impossible_settings_are_refused_before_the_network_is_called(settings, error, message):
    with pytest.raises(error, match=message):
        Smoothed(Untouchable().eval(), 0.5).certify(IMAGES, **settings)


@pytest.mark.parametrize(("settings", "error", "message"), UNTOUCHED_DUAL)
def test_impossible_settings_are_refused_before_either_network_is_called(settings, error, message):
    with pytest.raises(error, match=message):
        dual(Untouchable().eval(), Untouchable().eval()).certify(IMAGES, **settings)


def test_fewest_votes_that_can_certify_do():
    assert not Smoothed(Always(1), 0.5).certify(IMAGES[0], n=10, n0=1, seed=0).abstained


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        pytest.param({"n": 0}, "n must be at least 1", id="no votes"),
        pytest.param({"alpha": 0}, "alpha must lie", id="alpha zero"),
        pytest.param({"alpha": 1.5}, "alpha must lie", id="alpha above one"),
    ],
)
def test_impossible_prediction_is_refused_before_the_network_is_called(settings, message):
    with pytest.raises(BadSetting, match=message):
        Smoothed(Untouchable().eval(), 0.5).predict(IMAGES, **settings)


def test_rule_of_two_stages_is_refused_for_one_sigma():
    with pytest.raises(BadSetting, match=r"rule 'fusion' needs a router; .*rule cohen"):
        Smoothed(Always(0), 0.5).rule("fusion")


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        pytest.param(["a", "b"], "2 ids for 3 images", id="an id too few"),
        pytest.param([1, 2, 3, 4], "4 ids for 3 images", id="an id too many"),
        pytest.param([], "0 ids for 3 images", id="no ids"),
        pytest.param(["a", "b", "a"], "ids must be different: .* share their noise", id="an id twice"),
        pytest.param([1, 2, "1"], "ids must be different", id="a number and its text"),
    ],
)
@pytest.mark.parametrize("method", ["certify", "predict"])
def test_wrong_ids_are_refused(ids, message, method):
    with pytest.raises(BadSetting, match=message):
        getattr(Smoothed(Untouchable().eval(), 0.5), method)(IMAGES[:3], ids=ids)


# Misuse: images and networks, through the front door


@pytest.mark.parametrize("method", ["certify", "predict"])
@pytest.mark.parametrize(
    ("images", "message"),
    [
        pytest.param(np.full((1, 4, 4), np.nan), "NaN or infinite", id="not a number"),
        pytest.param(IMAGES.astype(np.float32), "divide by 255", id="floats from 0 to 255"),
        pytest.param(IMAGES / 127.5 - 1, "before normalisation", id="normalised"),
        pytest.param(IMAGES[0, 0], "expected an image", id="no channels"),
        pytest.param(IMAGES[:0], "expected an image", id="an empty batch"),
        pytest.param(IMAGES.astype(int), "must be uint8", id="wide integers"),
        pytest.param(IMAGES.tolist(), "what was given is a list; expected", id="a list"),
    ],
)
def test_bad_images_are_refused_before_the_network_is_called(images, message, method):
    with pytest.raises(BadImage, match=message):
        getattr(Smoothed(Untouchable().eval(), 0.5), method)(images)


class Calling(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function
        self.eval()

    def forward(self, x):
        return self.function(x.flatten(1))


@pytest.mark.parametrize("method", ["certify", "predict"])
@pytest.mark.parametrize(
    ("function", "error"),
    [
        pytest.param(lambda x: x.sum(dim=1), BadModel, id="one number an image"),
        pytest.param(lambda x: (x, x), BadModel, id="a tuple"),
        pytest.param(lambda x: x * torch.nan, NonFiniteLogits, id="not a number"),
        pytest.param(lambda x: x - x.mean(dim=0), BatchDependent, id="batch statistics"),
        pytest.param(lambda x: nn.functional.dropout(x, training=True), NonDeterministic, id="dropout"),
    ],
)
def test_networks_that_cannot_vote_are_refused(function, error, method):
    with pytest.raises(error, match="the classifier"):
        getattr(Smoothed(Calling(function), 0.5, batch_size=20), method)(IMAGES)
    with pytest.raises(error, match="the router"):
        getattr(dual(Calling(function), batch_size=20), method)(IMAGES)


def test_network_that_went_back_to_training_is_refused():
    network = nn.Sequential(nn.Flatten(), nn.Linear(16, 3)).eval()
    model = Smoothed(network, 0.5)
    model.certify(IMAGES[0], n=100, seed=0)
    network.train()
    with pytest.raises(TrainingMode):
        model.certify(IMAGES[0], n=100, seed=0)


@pytest.mark.parametrize("answers", [2, 4])
def test_router_needs_an_answer_for_each_candidate(answers):
    with pytest.raises(BadModel, match=f"the router has {answers} answers, but there are 3 candidate sigmas"):
        dual(Always(0, answers)).certify(IMAGES, n=100, seed=0)


def test_experts_need_the_same_classes():
    experts = {0.25: Always(0, 3), 0.5: Always(0, 4), 1.0: Always(0, 3)}
    with pytest.raises(BadModel, match=r"different numbers of classes: \[3, 4\]"):
        dual(Always(0), experts).certify(IMAGES, n=100, seed=0)


def test_model_is_of_use_again_after_bad_images():
    model = dual()
    with pytest.raises(BadImage):
        model.certify(IMAGES.astype(np.float32), n=100, seed=0)
    assert len(model.certify(IMAGES, n=100, seed=0)) == 6


# Halves of a model, for training


@pytest.mark.parametrize(
    ("half", "message"),
    [
        pytest.param(RouterAlone(Always(0), SIGMAS, SIGMA_E), "a router alone has no rule", id="router"),
        pytest.param(Pool(Always(0), SIGMAS), "a pool of experts has no rule", id="pool"),
    ],
)
def test_half_of_a_model_names_no_class(half, message):
    with pytest.raises(BadSetting, match=message):
        half.rule("fusion")
    with pytest.raises(BadSetting, match=message):
        half.predict(IMAGES, seed=0)


@pytest.mark.parametrize(
    ("sigmas", "sigma_e", "message"),
    [
        pytest.param((0.5,), 1.0, "at least two candidate sigmas", id="one candidate"),
        pytest.param((0.5, 0.5), 1.0, "must be different", id="equal candidates"),
        pytest.param((0.5, 1.0), 0.9, "lies below the largest candidate sigma", id="sigma_e too small"),
        pytest.param((0.5, 1.0), 9.0, "sigma_e must be positive and at most", id="sigma_e too large"),
        pytest.param((0.0, 1.0), 1.0, "each candidate sigma must be positive", id="no noise"),
    ],
)
def test_impossible_router_is_refused(sigmas, sigma_e, message):
    with pytest.raises(BadSetting, match=message):
        RouterAlone(Always(0), sigmas, sigma_e)


def test_router_alone_has_its_own_streams_only():
    model = RouterAlone(Always(0), SIGMAS, SIGMA_E)
    model.engine.prepare(IMAGES[0])
    assert {stream.stage for stream in model.scheme.streams} == {Stage.ROUTER}
    wrong = RouterAlone(Always(0, answers=2), SIGMAS, SIGMA_E)
    wrong.engine.prepare(IMAGES[0])
    with pytest.raises(BadModel, match="the router has 2 answers"):
        _ = wrong.scheme


class Wrapped(nn.Module):
    def __init__(self, network, wrap):
        super().__init__()
        self.network, self.wrap = network, wrap
        self.eval()

    def forward(self, x):
        return self.wrap(self.network(x))


@pytest.mark.parametrize("wrap", [lambda x: {"logits": x}, lambda x: SimpleNamespace(logits=x, loss=None)])
def test_outputs_with_logits_are_taken_as_they_are(wrap):
    network, image = Small(), np.full((1, 6, 6), 90, np.uint8)
    for kind in (lambda net: Smoothed(net, 0.25), lambda net: Cascade(net, (0.25, 0.5))):
        plain, wrapped = (kind(net).certify(image, n=100, seed=0) for net in (network, Wrapped(network, wrap)))
        assert plain == wrapped


def test_an_image_of_pillow_is_one_image_and_a_list_several():
    pixels, model = np.full((1, 6, 6), 90, np.uint8), Smoothed(Small(), 0.25)
    expected = model.certify(pixels, n=100, seed=0)
    assert model.certify(Image.fromarray(pixels[0]), n=100, seed=0) == expected
    assert list(model.certify([Image.fromarray(pixels[0]), pixels], n=100, seed=0)) == [expected, expected]
    assert model.predict(Image.fromarray(pixels[0]), n=100, seed=0) == model.predict(pixels, n=100, seed=0)


def test_a_dataset_of_torch_is_certified_with_its_labels(tmp_path):
    data = TensorDataset(torch.arange(72, dtype=torch.uint8).view(2, 1, 6, 6), torch.tensor([2, 0]))
    for name, source in (("data", data), ("loader", DataLoader(data, batch_size=1))):
        sample = certify_dataset(Smoothed(Small(), 0.25), source, tmp_path / f"{name}.ledger", n=100, seed=0)
        assert sample.labels == [2, 0]
