"""The losses of training methods: against slow formulas, against finite differences, and where numbers saturate."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from exercises import CLASSES, INPUTS, SIGMA, exercise, network
from scipy.stats import norm

from dualrs.training.methods import METHODS, choose
from dualrs.training.methods.cat_rs import CatRS
from dualrs.training.methods.easy_focus import EasyFocus, radius_weights
from dualrs.training.methods.macer import Macer
from dualrs.training.methods.smoothadv import SmoothAdv
from dualrs.training.methods.smoothmix import SmoothMix
from dualrs.training.noise import OneOf

VOTES = torch.tensor([[10, 0, 0, 0], [3, 3, 3, 1], [0, 5, 5, 0], [9, 1, 0, 0], [0, 0, 2, 8]], dtype=torch.int16)
KNOWN = {"teacher's votes": VOTES}
SOFT = torch.tensor(np.random.default_rng(3).dirichlet(np.ones(CLASSES), INPUTS))
WEIGHTS = torch.tensor([1.0, 2.0, 0.5, 1.5, 3.0])
every_method = pytest.mark.parametrize("name", METHODS)


def moved(exercise, *_):
    """In place of an attack: a shift that depends on nothing."""
    return 0.1 * torch.linspace(-1, 1, exercise.clean.numel()).view_as(exercise.clean).double()


@pytest.fixture
def no_attack(monkeypatch):
    """Attacks follow the weights by jumps; a loss's gradient takes what they found for given."""
    monkeypatch.setattr(SmoothAdv, "pgd", lambda self, *given: moved(*given))
    monkeypatch.setattr(SmoothAdv, "ddn", lambda self, *given: moved(*given))
    monkeypatch.setattr(SmoothMix, "adversaries", lambda self, *given: (moved(*given) / 3, moved(*given)))
    for kind in (CatRS, EasyFocus):
        monkeypatch.setattr(kind, "worsened", lambda self, exercise, noise, *_: noise + moved(exercise))


def method(name, **settings):
    return choose(name, OneOf((0.5,)), 150, settings)


# Slow formulas, from what the network answered


class Recorded:
    """A network that keeps what it was shown and what it answered."""

    def __init__(self, net):
        self.net, self.shown, self.answered = net, [], []

    def __call__(self, noisy):
        answer = self.net(noisy)
        self.shown.append(noisy.detach().numpy())
        self.answered.append(answer.detach().numpy().reshape(-1, INPUTS, CLASSES))
        return answer

    def eval(self):
        return self.net.eval()

    def train(self):
        return self.net.train()


def softmax(logits):
    powers = np.exp(logits - logits.max())
    return powers / powers.sum()


def kl(p, q):
    return sum(a * math.log(a / b) for a, b in zip(p, q, strict=True) if a > 0)


def of_gaussian(answers, labels, draws):
    return [-math.log(softmax(answers[0][0, i])[labels[i]]) for i in range(INPUTS)]


def of_consistency(answers, labels, draws, weight=10.0, entropy=0.5):
    losses = []
    for i in range(INPUTS):
        copies = [softmax(answers[0][j, i]) for j in range(2)]
        mean = sum(copies) / 2
        losses.append(
            np.mean([-math.log(copy[labels[i]]) for copy in copies])
            + weight * np.mean([kl(mean, copy) for copy in copies])
            - entropy * sum(p * math.log(p) for p in mean)
        )
    return losses


def of_noisy_copies(answers, labels, draws):
    copies = range(len(answers[0]))
    return [np.mean([-math.log(softmax(answers[0][j, i])[labels[i]]) for j in copies]) for i in range(INPUTS)]


def of_macer(answers, labels, draws, weight=4.0, beta=16.0, gamma=8.0):
    losses = []
    for i in range(INPUTS):
        mean = np.mean([softmax(answers[0][j, i]) for j in range(16)], axis=0)
        sharp = np.mean([softmax(beta * answers[0][j, i]) for j in range(16)], axis=0)
        second, first = np.sort(sharp)[-2:]
        gap = norm.ppf(first) - norm.ppf(second)
        counts = sharp.argmax() == labels[i] and gap <= gamma
        losses.append(-math.log(mean[labels[i]]) + (weight * SIGMA / 2 * (gamma - gap) if counts else 0))
    return losses


def of_smoothmix(answers, labels, draws, eta=5.0):
    share = draws(INPUTS) / 2
    losses = []
    for i in range(INPUTS):
        near, mixed = ([softmax(answers[k][j, i]) for j in range(2)] for k in (0, 1))
        mean = sum(near) / 2
        target = (1 - share[i]) * mean + share[i] / CLASSES
        divergence = np.mean([kl(target, copy) for copy in mixed]) * (mean.argmax() == labels[i])
        losses.append(np.mean([-math.log(copy[labels[i]]) for copy in near]) + eta * divergence)
    return losses


def of_cat_rs(answers, labels, draws, weight=1.0):
    chance = draws(4, INPUTS)
    losses = []
    for i in range(INPUTS):
        copies, attacked = ([softmax(answers[k][j, i]) for j in range(4)] for k in (0, 1))
        right = np.mean([copy.argmax() == labels[i] for copy in copies])
        learnt = max(1, sum(chance[j, i] < right for j in range(4)))
        costs = sorted(-math.log(copy[labels[i]]) for copy in copies)[:learnt]
        votes = VOTES[i].numpy() / VOTES[i].sum().item()
        worst = max(kl(votes, copy) for copy in attacked) * (learnt == 4)
        losses.append(sum(costs) / 4 + weight * worst)
    return losses


SLOW = {
    "gaussian": of_gaussian,
    "consistency": of_consistency,
    "smoothadv": of_noisy_copies,
    "macer": of_macer,
    "smoothmix": of_smoothmix,
    "cat-rs": of_cat_rs,
    "easy-focus": of_noisy_copies,
}


@every_method
@pytest.mark.parametrize("scale", [1.0, 20.0], ids=["soft", "sharp"])
def test_loss_is_that_of_the_slow_formula(name, scale, no_attack):
    trained, net = method(name), Recorded(network(scale))
    ours = exercise(net, known=KNOWN)
    again = torch.Generator().manual_seed(1)
    found = trained.losses(ours)
    torch.randn(trained.copies, *ours.clean.shape, generator=again)

    def draws(*shape):
        return torch.rand(shape, generator=again).numpy()

    expected = SLOW[name](net.answered, ours.labels.tolist(), draws)
    assert found.tolist() == pytest.approx(expected, rel=1e-6)
    ours = exercise(net, known=KNOWN)
    assert trained.loss(ours).item() == pytest.approx(np.mean(expected), rel=1e-6)


def test_slow_formulas_see_every_term(no_attack):
    """With these numbers the gates of macer, smoothmix and cat-rs are open for some inputs and closed for others."""
    for name, term in (("macer", "radius_weight"), ("smoothmix", "mix_weight"), ("cat-rs", "worst_weight")):
        net = network(20.0)
        whole, without = (
            replace(method(name), **change).losses(exercise(net, known=KNOWN)) for change in ({}, {term: 0.0})
        )
        differs = whole != without
        assert differs.any(), name
        assert not differs.all(), name


# Gradients


@every_method
@pytest.mark.parametrize("kind", ["classes", "distributions with weights"])
def test_gradient_is_that_of_finite_differences(name, kind, no_attack):
    trained, net = method(name), network(3.0)
    about = {"known": KNOWN} if kind == "classes" else {"soft": SOFT, "weights": WEIGHTS}
    loss = partial(lambda: trained.loss(exercise(net, **about)))
    gradients = torch.autograd.grad(loss(), list(net.parameters()))
    source, step = torch.Generator().manual_seed(0), 1e-6
    for parameter, gradient in zip(net.parameters(), gradients, strict=True):
        way = torch.randn(parameter.shape, generator=source, dtype=torch.float64)
        with torch.no_grad():
            parameter += step * way
            above = loss().item()
            parameter -= 2 * step * way
            below = loss().item()
            parameter += step * way
        assert (gradient * way).sum().item() == pytest.approx((above - below) / (2 * step), rel=1e-4, abs=1e-7)


# Saturated


@every_method
@pytest.mark.parametrize("scale", [1e3, 1e6], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_saturated_answers_leave_loss_and_gradient_finite(name, scale, dtype):
    net = network(scale).float()
    ours = exercise(net, known=KNOWN)
    ours = replace(ours, clean=ours.clean.float(), respond=lambda noisy, sigma: net(noisy.float()).to(dtype))
    value = method(name).loss(ours)
    gradients = torch.autograd.grad(value, list(net.parameters()))
    assert math.isfinite(value.item())
    assert all(gradient.isfinite().all() for gradient in gradients)


@pytest.mark.parametrize("logits", [[0.0, 0.0, 0.0, 0.0], [300.0, -300.0, 0.0, 0.0], [1e4, 1e4, 1e4, -1e4]])
def test_quantiles_of_macer_are_finite_at_the_edges(logits):
    given = torch.tensor(logits).expand(16, 1, 4).clone().requires_grad_()
    lacking = Macer().lacking(given, torch.tensor([0]))
    (gradient,) = torch.autograd.grad(lacking.sum(), [given])
    assert 0 <= lacking.item() <= 8
    assert gradient.isfinite().all()


# Other numbers of the papers


def test_radius_weights_are_the_published_ones():
    weights = radius_weights(16)
    assert [round(w, 3) for w in weights[12:].tolist()] == [0.154, 0.329, 0.526, 0.765, 1.108]
    assert (weights[:12] == weights[12]).all()


@pytest.mark.parametrize(
    ("name", "sigma", "settings"),
    [
        ("consistency", 0.25, {"copies": 2, "consistency_weight": 20.0, "entropy_weight": 0.5}),
        ("consistency", 0.5, {"consistency_weight": 10.0}),
        ("smoothadv", 0.25, {"copies": 4, "steps": 10, "reach": 1.0, "ramp": 10}),
        ("smoothadv", 0.5, {"copies": 8, "reach": 1.0}),
        ("smoothadv", 1.0, {"copies": 2, "reach": 2.0}),
        ("macer", 0.25, {"copies": 16, "radius_weight": 12.0, "sharpness": 16.0, "margin": 8.0, "deferred": 0}),
        ("macer", 0.5, {"radius_weight": 4.0, "deferred": 0}),
        ("macer", 1.0, {"radius_weight": 12.0, "deferred": 51}),
        ("smoothmix", 0.25, {"copies": 2, "steps": 4, "pace": 0.5, "one_step": False, "mix_weight": 5.0, "ramp": 10}),
        ("smoothmix", 0.5, {"pace": 1.0, "one_step": True}),
        ("smoothmix", 1.0, {"pace": 2.0, "one_step": True}),
        ("cat-rs", 0.25, {"copies": 4, "steps": 4, "reach": 1.0, "worst_weight": 0.5}),
        ("cat-rs", 0.5, {"worst_weight": 1.0}),
        ("cat-rs", 1.0, {"worst_weight": 2.0}),
        ("easy-focus", 0.25, {"copies": 4, "start": 60, "hopeless": 0.5, "pace": 0.25, "steps": 3, "renewed": 10}),
        ("easy-focus", 0.5, {"start": 70, "hopeless": 0.4, "pace": 0.25, "steps": 6}),
        ("easy-focus", 1.0, {"start": 60, "hopeless": 0.4, "pace": 0.5, "steps": 4}),
    ],
)
def test_settings_are_the_published_ones(name, sigma, settings):
    found = choose(name, OneOf((sigma,)), 150, {})
    assert {key: getattr(found, key) for key in settings} == settings


def test_other_sigmas_take_the_settings_of_the_nearest_and_several_those_of_the_middle_one():
    for sigma, known in ((0.0, 0.25), (0.12, 0.25), (0.36, 0.5), (0.75, 1.0), (3.0, 1.0)):
        assert choose("macer", OneOf((sigma,)), 150, {}) == choose("macer", OneOf((known,)), 150, {})
    assert choose("macer", OneOf((0.25, 0.5, 1.0)), 150, {}) == choose("macer", OneOf((0.5,)), 150, {})


def test_moments_scale_with_the_length_of_a_training():
    short = choose("easy-focus", OneOf((1.0,)), 15, {})
    assert (short.start, short.renewed) == (6, 1)
    assert choose("macer", OneOf((1.0,)), 30, {}).deferred == 10
    assert choose("smoothadv", OneOf((1.0,)), 30, {}).ramp == 2


# How many images pass, forward and back: the cost that documents state, in Gaussian epochs


@pytest.mark.parametrize(
    ("name", "costs"),
    [
        ("gaussian", (1, 1, 1)),
        ("consistency", (2, 2, 2)),
        ("smoothadv", (44, 88, 22)),
        ("macer", (16, 16, 16)),
        ("smoothmix", (12, 12, 12)),
        ("cat-rs", (24, 24, 24)),
        ("easy-focus", (11.2, 16.8, 13.6)),
    ],
)
def test_cost_of_a_method_is_the_stated_one(name, costs):
    for sigma, cost in zip((0.25, 0.5, 1.0), costs, strict=True):
        trained, passed = choose(name, OneOf((sigma,)), 150, {}), []
        for epoch in range(0, 150, 10):
            net = Recorded(network())
            trained.loss(exercise(net, known=KNOWN, epoch=epoch))
            passed.append(sum(len(shown) for shown in net.shown) / INPUTS)
        assert np.mean(passed) == pytest.approx(cost)
        assert trained.stretch(150) * passed[0] == pytest.approx(cost)


def test_a_training_that_attacks_from_the_start_is_not_stretched():
    assert EasyFocus(start=0).stretch(10) == 1
