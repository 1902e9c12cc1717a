"""The training loop: stopped anywhere and resumed, it ends where an unbroken run ends."""

import math

import pytest
import torch
from torch import nn

from dualrs.errors import BadCheckpoint, BadSetting, DualrsError, NonFiniteLogits
from dualrs.training import loop
from dualrs.training.loop import Schedule, fit

GENERATOR = torch.Generator().manual_seed(0)
X = torch.randn(100, 5, generator=GENERATOR)
Y = X @ torch.randn(5, 1, generator=GENERATOR)
SCHEDULE = Schedule(epochs=4, batch_size=16, rate=0.05, weight_decay=0.0)


def network():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(5, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1))


class Stop(Exception):
    """The process is stopped."""


def train(model, path, stop_after=None, schedule=SCHEDULE, about="a test", every=0.0):
    """Fit with noise that the step's own generator draws, and a checkpoint after every step."""

    def loss(indices, generator):
        noise = 0.1 * torch.randn(len(indices), 1, generator=generator)
        return (model(X[indices]) - Y[indices] - noise).square().mean()

    losses = []

    def report(state):
        losses.append(state.loss)
        if stop_after is not None and state.step > stop_after:
            raise Stop

    before = loop._SECONDS_BETWEEN_CHECKPOINTS
    loop._SECONDS_BETWEEN_CHECKPOINTS = every
    try:
        return fit(model, loss, len(X), schedule, path, about=about, report=report), losses
    finally:
        loop._SECONDS_BETWEEN_CHECKPOINTS = before


def test_loss_falls_and_network_is_left_ready_for_use(tmp_path):
    model = network()
    _, losses = train(model, tmp_path / "c", schedule=Schedule(epochs=30, batch_size=16, rate=0.02))
    assert losses[-1] < 0.3 * losses[0]
    assert not model.training


@pytest.mark.parametrize("stops", [(1,), (5, 6, 13), (23,)], ids=str)
def test_stopped_and_resumed_ends_as_unbroken(tmp_path, stops):
    unbroken = network()
    train(unbroken, tmp_path / "unbroken")
    for stop in stops:
        with pytest.raises(Stop):
            train(network(), tmp_path / "broken", stop_after=stop)
    resumed = network()
    train(resumed, tmp_path / "broken")
    for (name, one), other in zip(unbroken.state_dict().items(), resumed.state_dict().values(), strict=True):
        assert torch.equal(one, other), name


def test_finished_training_is_not_done_again(tmp_path):
    first, _ = train(network(), tmp_path / "c")
    model = network()
    again, losses = train(model, tmp_path / "c")
    assert losses == []
    assert again >= first * 0.5  # the seconds of the first run, kept
    assert not model.training


@pytest.mark.parametrize(
    "other",
    [{"about": "another"}, {"schedule": Schedule(epochs=4, batch_size=16, rate=0.05, weight_decay=0.0, seed=1)}],
    ids=["another training", "another seed"],
)
def test_checkpoint_of_another_training_is_refused_and_kept(tmp_path, other):
    train(network(), tmp_path / "c")
    content = (tmp_path / "c").read_bytes()
    with pytest.raises(BadCheckpoint, match="belongs to another training"):
        train(network(), tmp_path / "c", **other)
    assert (tmp_path / "c").read_bytes() == content


def test_truncated_checkpoint_is_refused(tmp_path):
    train(network(), tmp_path / "c")
    (tmp_path / "c").write_bytes((tmp_path / "c").read_bytes()[:500])
    with pytest.raises(BadCheckpoint, match="not a whole checkpoint; delete it"):
        train(network(), tmp_path / "c")


class Trap:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def test_checkpoint_with_code_in_it_is_refused_and_not_run(tmp_path):
    torch.save({"identity": Trap(tmp_path / "sprung")}, tmp_path / "c")
    with pytest.raises(BadCheckpoint, match="not a whole checkpoint"):
        train(network(), tmp_path / "c")
    assert not (tmp_path / "sprung").exists()


def test_loss_that_is_not_a_number_stops_and_keeps_the_checkpoint(tmp_path):
    model = network()

    def loss(indices, generator):
        return model(X[indices]).sum() * math.nan

    with pytest.raises(NonFiniteLogits, match=r"the loss became nan at step 1.*lower the learning rate"):
        fit(model, loss, len(X), SCHEDULE, tmp_path / "c", about="a test")


@pytest.mark.parametrize(
    "field",
    [{"epochs": 0}, {"batch_size": 1}, {"rate": 0.0}, {"weight_decay": -1.0}, {"seed": -1}, {"halve_every": 0}],
    ids=str,
)
def test_senseless_schedules_are_refused(field):
    with pytest.raises(BadSetting, match="must be positive"):
        Schedule(**field)


def test_more_images_in_a_batch_than_there_are_is_refused(tmp_path):
    with pytest.raises(BadSetting, match="100 images do not fill one batch of 128"):
        train(network(), tmp_path / "c", schedule=Schedule(batch_size=128))


def test_rate_warms_up_and_ends_near_nothing():
    rates = [Schedule(epochs=10, rate=1.0).rate_at(step, 10) for step in range(100)]
    assert rates[0] == pytest.approx(0.1, abs=0.01)
    assert rates.index(max(rates)) in (9, 10)
    assert rates[-1] == pytest.approx(0, abs=0.02)


def test_rate_halves_every_so_many_epochs():
    schedule = Schedule(epochs=90, rate=0.01, halve_every=30)  # the paper's, on CIFAR-10
    rates = [schedule.rate_at(epoch * 7 + 3, 7) for epoch in (0, 29, 30, 59, 60, 89)]
    assert rates == pytest.approx([0.01, 0.01, 0.005, 0.005, 0.0025, 0.0025])


def test_full_disk_is_a_sentence_and_keeps_the_last_checkpoint(tmp_path, monkeypatch):
    with pytest.raises(Stop):
        train(network(), tmp_path / "c", stop_after=5)
    content = (tmp_path / "c").read_bytes()

    def full(*a, **k):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(DualrsError, match=r"cannot write .*No space left on device"):
        train(network(), tmp_path / "c")
    assert (tmp_path / "c").read_bytes() == content
    assert [p.name for p in tmp_path.iterdir()] == ["c"]
