"""Schedules: rates, optimizers, batches of copies, and the names of those that were there before."""

import pytest
import torch
from torch import nn

from dualrs.errors import BadModel, BadSetting
from dualrs.training.schedule import Schedule, are_moments


def test_rate_drops_to_a_tenth_at_given_epochs_as_the_field_trains():
    schedule = Schedule(epochs=150, rate=0.1, optimizer="sgd", drop_at=(50, 100))
    rates = {epoch: schedule.rate_at(10 * epoch, 10) for epoch in (0, 49, 50, 99, 100, 149)}
    assert list(rates.values()) == pytest.approx([0.1, 0.1, 0.01, 0.01, 0.001, 0.001])


def test_drops_take_the_place_of_halving():
    assert Schedule(epochs=9, rate=1.0, halve_every=1, drop_at=(5,)).rate_at(40, 10) == 1.0


def test_sgd_has_momentum_decays_everything_and_does_not_clip():
    schedule, layer = Schedule(rate=0.1, weight_decay=1e-4, optimizer="sgd"), nn.Linear(2, 2)
    optimizer = schedule.optimizer_of(layer)
    (group,) = optimizer.param_groups
    assert isinstance(optimizer, torch.optim.SGD)
    assert (group["momentum"], group["weight_decay"], len(group["params"])) == (0.9, 1e-4, 2)
    assert schedule.clip == float("inf")
    assert Schedule().clip == 1.0


def test_adamw_does_not_decay_biases():
    groups = Schedule(weight_decay=0.3).optimizer_of(nn.Linear(2, 2)).param_groups
    assert [(group["weight_decay"], group["params"][0].ndim) for group in groups] == [(0.3, 2), (0.0, 1)]


def test_nothing_to_train_is_refused():
    with pytest.raises(BadModel, match="nothing to train"):
        Schedule(optimizer="sgd").optimizer_of(nn.Flatten())


def test_schedule_of_an_earlier_version_has_its_old_name():
    assert list(Schedule().settings) == ["epochs", "batch_size", "rate", "weight_decay", "seed", "halve_every"]
    assert Schedule(optimizer="sgd", drop_at=(5,)).settings["drop_at"] == (5,)


def test_a_batch_of_copies_has_fewer_images():
    assert Schedule(batch_size=256).of_copies(4).batch_size == 64
    assert Schedule(batch_size=7).of_copies(1).batch_size == 7
    for size, copies in ((256, 3), (16, 16), (8, 16)):
        with pytest.raises(BadSetting, match=f"{size} noisy images cannot be made of {copies} copies"):
            Schedule(batch_size=size).of_copies(copies)


@pytest.mark.parametrize("field", [{"optimizer": "adam"}, {"drop_at": (-1,)}])
def test_schedule_that_makes_no_sense_is_refused(field):
    with pytest.raises(BadSetting):
        Schedule(**field)


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_moments_are_told_from_those_of_the_other_optimizer(optimizer):
    states = {}
    for name in ("adamw", "sgd"):
        layer = nn.Linear(2, 2)
        made = Schedule(optimizer=name).optimizer_of(layer)
        layer(torch.ones(1, 2)).sum().backward()
        made.step()
        states[name] = made.state_dict()["state"]
    ours = Schedule(optimizer=optimizer).optimizer_of(nn.Linear(2, 2))
    assert are_moments(states[optimizer], ours)
    assert not are_moments(states["sgd" if optimizer == "adamw" else "adamw"], ours)
    assert not are_moments({7: states[optimizer][0]}, ours)
    assert not are_moments({"0": states[optimizer][0]}, ours)
