"""The attacks inside training methods raise what they say they raise, and stay where they may."""

from dataclasses import replace

import pytest
import torch
from exercises import INPUTS, SIGMA, exercise, network
from torch import nn

from dualrs.errors import BadModel
from dualrs.training.front import Front
from dualrs.training.losses import log_softmax
from dualrs.training.methods import METHODS, choose
from dualrs.training.methods.ascent import norms, steepest
from dualrs.training.methods.cat_rs import CatRS, divergence
from dualrs.training.methods.easy_focus import EasyFocus
from dualrs.training.methods.smoothadv import SmoothAdv, smoothed_loss
from dualrs.training.methods.smoothmix import SmoothMix
from dualrs.training.noise import OneOf
from dualrs.training.pupil import Pupil

VOTES = torch.tensor([[1.0, 0, 0, 0], [0.3, 0.3, 0.3, 0.1], [0, 0.5, 0.5, 0], [0.9, 0.1, 0, 0], [0, 0, 0.2, 0.8]])


@pytest.fixture
def given():
    """An exercise, and noise for eight copies."""
    ours = exercise(network(5.0))
    return ours, ours.noise(8)


def loss_at(ours, noise, moved):
    return smoothed_loss(ours, ours.logits(ours.clean + moved + noise)).detach()


def test_pgd_raises_the_loss_of_the_mean_answer_within_its_ball_and_the_image(given):
    ours, noise = given
    moved = SmoothAdv(steps=10, reach=0.3).pgd(ours, noise, 0.3)
    assert (loss_at(ours, noise, moved) > loss_at(ours, noise, 0)).all()
    assert (norms(moved) <= 0.3 + 1e-6).all()
    assert ((ours.clean + moved >= -1e-6) & (ours.clean + moved <= 1 + 1e-6)).all()


def test_ddn_finds_small_changes_of_the_answer_and_leaves_images_where_it_finds_none(given):
    ours, noise = given
    ours = replace(ours, labels=ours.logits(ours.clean + noise).argmax(-1).mode(dim=0).values)
    moved = SmoothAdv(steps=10, attack="ddn").ddn(ours, noise, 2.0)
    changed = (norms(moved) > 0).flatten()
    assert changed.any()
    answers = ours.logits(ours.clean + moved + noise).argmax(-1).mode(dim=0).values
    assert torch.equal(answers != ours.labels, changed)
    assert (norms(moved) <= 2.0 + 1e-6).all()
    assert not SmoothAdv(steps=2, attack="ddn").ddn(ours, noise, 1e-4).any()


def test_adversary_of_smoothmix_raises_the_loss_without_a_ball(given):
    ours, noise = given
    first, last = SmoothMix(pace=0.2).adversaries(ours, noise)
    losses = [loss_at(ours, noise, moved) for moved in (0, first, last)]
    assert (losses[0] < losses[1]).all()
    assert (losses[1] < losses[2]).all()
    assert (norms(first) <= 0.2 + 1e-6).all()
    assert (norms(last) > 0.2).any()


def test_noise_of_cat_rs_diverges_more_and_keeps_mean_and_size(given):
    ours, noise = given
    worse = CatRS(reach=0.5).worsened(ours, noise, VOTES)
    before, after = (divergence(VOTES, ours.logits(ours.clean + n)).detach() for n in (noise, worse))
    assert (after > before).float().mean() > 0.9  # bringing it back to its size takes a little off
    assert after.mean() > before.mean()
    assert torch.allclose(worse.mean((-3, -2, -1)), noise.mean((-3, -2, -1)), atol=1e-6)
    assert norms(worse) == pytest.approx(norms(noise), rel=0.15)  # centred after it was measured: 12 numbers are few


def test_noise_of_easy_focus_raises_each_loss_at_its_length_until_the_answer_is_wrong(given):
    ours, noise = given
    worse = EasyFocus(pace=0.1, steps=4).worsened(ours, noise)

    def losses(n):
        return ours.cross_entropy(log_softmax(ours.logits(ours.clean + n))).detach()

    wrong = ours.logits(ours.clean + noise).argmax(-1) != ours.labels
    assert wrong.any()
    assert torch.equal(worse[wrong], noise[wrong])  # nothing to find
    assert (losses(worse)[~wrong] > losses(noise)[~wrong]).all()
    assert torch.allclose(norms(worse), norms(noise))


def test_first_wrong_iterate_is_kept(given):
    ours, noise = given
    one, more = (EasyFocus(pace=0.5, steps=steps).worsened(ours, noise) for steps in (1, 6))
    found = ours.logits(ours.clean + one).argmax(-1) != ours.labels
    assert found.any()
    assert torch.equal(more[found], one[found])


def test_where_nothing_rises_the_direction_is_random_and_of_length_one():
    ours = exercise(network())
    flat = steepest(ours, lambda at: 0 * at.sum((1, 2, 3)), ours.clean)
    assert torch.allclose(norms(flat), torch.ones(()).double())
    assert not torch.allclose(flat[0], flat[1])


def test_attack_grows_over_the_first_epochs():
    shares = [exercise(network(), epoch=epoch).ramp(10) for epoch in (0, 4, 9, 30)]
    assert shares == [0.1, 0.5, 1.0, 1.0]


class Normalised(nn.Module):
    """With statistics that an attack must not touch."""

    def __init__(self):
        super().__init__()
        self.norm, self.rest = nn.BatchNorm2d(3).double(), network(5.0)
        self.modes = []

    def forward(self, x):
        self.modes.append((self.training, x.requires_grad))
        return self.rest(self.norm(x))


@pytest.mark.parametrize("name", METHODS)
def test_attacks_run_in_evaluation_mode_and_steps_in_training_mode(name):
    net = Normalised().train()
    known = {"teacher's votes": (100 * VOTES).to(torch.int16)}
    choose(name, OneOf((0.25,)), 150, {}).loss(exercise(net, known=known)).backward()
    assert net.training
    assert all(training != attacked for training, attacked in net.modes)
    assert net.norm.num_batches_tracked == sum(training for training, _ in net.modes)
    assert all(p.grad is not None for p in net.parameters())


# Through a denoiser


class Halving(nn.Module):
    def forward(self, noisy, sigma):
        return noisy / 2


class Stopping(nn.Module):
    def forward(self, noisy, sigma):
        return noisy.detach()


def behind(denoiser, net):
    pupil = Pupil("classifier", net, Front(denoiser))
    return replace(exercise(net), respond=pupil)


def test_gradient_passes_through_the_denoiser_where_it_is_asked_for():
    net = network(5.0)
    ours, plain = behind(Halving(), net), exercise(net)
    steep = steepest(ours, lambda at: smoothed_loss(ours, ours.logits(at[None])), ours.clean)
    half = steepest(plain, lambda at: smoothed_loss(plain, plain.logits(at[None] / 2)), plain.clean)
    assert torch.allclose(steep, half)
    seen = ours.respond.front(ours.clean.requires_grad_(False), ours.sigma)
    assert not seen.requires_grad


def test_clean_images_among_noisy_ones_bypass_the_denoiser_and_pass_a_gradient():
    images = torch.rand(2, 3, 2, 2).requires_grad_()
    seen = Front(Halving())(images, torch.tensor([0.0, 0.5]))
    assert torch.equal(seen[0], images[0])
    assert torch.equal(seen[1], images[1] / 2)
    (gradient,) = torch.autograd.grad(seen.sum(), [images])
    assert gradient[0].unique().tolist() == [1.0]
    assert gradient[1].unique().tolist() == [0.5]


def test_denoiser_that_passes_no_gradient_on_is_refused_by_methods_that_need_one():
    ours = behind(Stopping(), network())
    with pytest.raises(BadModel, match="passes none on"):
        SmoothAdv().loss(ours)
    with pytest.raises(BadModel, match="passes none on"):  # not even the weights ask for one
        steepest(ours, lambda at: at.detach().sum((1, 2, 3)), ours.clean)
    assert choose("macer", OneOf((SIGMA,)), 150, {}).losses(ours).shape == (INPUTS,)
