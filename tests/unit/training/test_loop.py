"""The training loop: stopped anywhere and resumed, it ends where an unbroken run ends."""

import csv
import math

import numpy as np
import pytest
import torch
from torch import nn

from dualrs.data.dataset import ArrayDataset
from dualrs.errors import BadCheckpoint, BadModel, BadSetting, DualrsError, NonFiniteLogits
from dualrs.training import loop
from dualrs.training.checkpoint import read_checkpoint, write_checkpoint
from dualrs.training.images import TrainingImages
from dualrs.training.loop import Task, fit
from dualrs.training.schedule import Schedule

GENERATOR = torch.Generator().manual_seed(0)
X = torch.randn(100, 5, generator=GENERATOR)
Y = X @ torch.randn(5, 1, generator=GENERATOR)
IDS = [f"train/{i:03d}" for i in range(len(X))]
IMAGES = TrainingImages(ArrayDataset(np.zeros((len(X), 1, 4, 4), dtype=np.uint8), [0] * len(X), ids=IDS))
SCHEDULE = Schedule(epochs=4, batch_size=16, rate=0.05, weight_decay=0.0)


def network():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(5, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 1))


class Stop(Exception):
    """The process is stopped."""


def train(model, path, stop_after=None, schedule=SCHEDULE, about="a test", every=0.0):
    """Fit with noise that the step's own generator draws, and a checkpoint after every step."""

    def loss(indices, generator):
        noise = 0.1 * torch.randn(len(indices), 1, generator=generator)
        return (model(X[indices]) - Y[indices] - noise).square().mean()

    states = []

    def report(state):
        states.append(state)
        if stop_after is not None and state.step > stop_after:
            raise Stop

    before = loop._SECONDS_BETWEEN_CHECKPOINTS
    loop._SECONDS_BETWEEN_CHECKPOINTS = every
    try:
        return fit(Task(model, IMAGES, loss, about), schedule, path, report=report), states
    finally:
        loop._SECONDS_BETWEEN_CHECKPOINTS = before


def test_loss_falls_and_network_is_left_ready_for_use(tmp_path):
    model = network()
    _, states = train(model, tmp_path / "c", schedule=Schedule(epochs=30, batch_size=16, rate=0.02))
    assert states[-1].loss < 0.3 * states[0].loss
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
    rows, expected = (read(tmp_path / f"{name}.log.csv") for name in ("broken", "unbroken"))
    assert [untimed(row) for row in rows] == [untimed(row) for row in expected]
    assert sorted(float(row["seconds"]) for row in rows) == [float(row["seconds"]) for row in rows]


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def untimed(row):
    return {key: value for key, value in row.items() if key not in ("images_per_second", "seconds")}


def test_log_has_a_row_every_ten_steps_and_one_for_the_last(tmp_path):
    _, states = train(network(), tmp_path / "c.checkpoint")
    rows = read(tmp_path / "c.log.csv")
    assert list(rows[0]) == ["step", "epoch", "loss", "rate", "images_per_second", "seconds"]
    assert [(row["step"], row["epoch"]) for row in rows] == [("10", "2"), ("20", "4"), ("24", "4")]
    for row in rows:
        state = states[int(row["step"]) - 1]
        assert float(row["loss"]) == pytest.approx(state.loss, rel=1e-5)
        assert float(row["rate"]) == pytest.approx(SCHEDULE.rate_at(state.step - 1, 6), rel=1e-5) == state.rate


def test_row_that_was_cut_off_in_the_middle_of_a_write_is_written_again(tmp_path):
    with pytest.raises(Stop):
        train(network(), tmp_path / "c", stop_after=19)
    log = tmp_path / "c.log.csv"
    assert [row["step"] for row in read(log)] == ["10", "20"]
    log.write_bytes(log.read_bytes()[:-3])
    train(network(), tmp_path / "c")
    assert [row["step"] for row in read(log)] == ["10", "20", "24"]
    assert all(row["seconds"] for row in read(log))


def test_log_of_an_earlier_training_does_not_stay(tmp_path):
    train(network(), tmp_path / "c")
    (tmp_path / "c").unlink()
    with pytest.raises(Stop):
        train(network(), tmp_path / "c", stop_after=11)
    assert [row["step"] for row in read(tmp_path / "c.log.csv")] == ["10"]


def test_seconds_add_up_and_speed_is_of_the_run(tmp_path, monkeypatch):
    """A clock that each step advances by a second, and 1,000 seconds between two runs."""
    clock = [0.0]
    monkeypatch.setattr(loop.time, "perf_counter", lambda: clock[0])
    model = network()

    def loss(indices, generator):
        clock[0] += 1
        return model(X[indices]).square().mean()

    def report(state):
        states.append(state)
        if state.step == 10 and clock[0] < 1000:
            raise Stop

    monkeypatch.setattr(loop, "_SECONDS_BETWEEN_CHECKPOINTS", 0)
    states, task = [], Task(model, IMAGES, loss, "a test")
    with pytest.raises(Stop):
        fit(task, SCHEDULE, tmp_path / "c", report=report)
    clock[0] += 1000
    assert fit(task, SCHEDULE, tmp_path / "c", report=report) == 24
    assert [s.seconds for s in states] == [*range(1, 11), *range(10, 25)]  # step 10 was lost and done again
    assert {s.images_per_second for s in states} == {16.0}


def test_finished_training_is_not_done_again(tmp_path):
    first, _ = train(network(), tmp_path / "c")
    model = network()
    again, states = train(model, tmp_path / "c")
    assert states == []
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


def checkpoint(path):
    train(network(), path)
    return read_checkpoint(path)


NOTHING = torch.zeros(0)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("network", None),
        ("network", {}),
        ("optimizer", 3),
        ("step", -1),
        ("seconds", math.nan),
        ("network/0.weight", "text"),
        ("network/0.weight", NOTHING),
        ("network/0.bias", torch.zeros(16, dtype=torch.complex64)),
        ("network/0.bias", torch.zeros(16, device="meta")),
        ("network/more", NOTHING),
        ("optimizer/state", None),
        ("optimizer/state/0", NOTHING),
        ("optimizer/state/99", {}),
        ("optimizer/state/0/step", ()),
        ("optimizer/state/0/exp_avg", NOTHING),
        ("optimizer/state/0/exp_avg_sq", None),
        ("optimizer/state/0/more", 1),
    ],
    ids=lambda value: str(value)[:30],
)
def test_checkpoint_that_does_not_fit_is_refused_and_nothing_of_it_is_taken(tmp_path, place, value):
    content = checkpoint(tmp_path / "c")
    *way, last = place.split("/")
    table = content
    for key in way:
        table = table[int(key) if key.isdecimal() else key]
    table[int(last) if last.isdecimal() else last] = value
    write_checkpoint(content, tmp_path / "c")
    model = network()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(BadCheckpoint, match="not a whole checkpoint; delete it"):
        train(model, tmp_path / "c")
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_rates_of_a_checkpoint_are_those_of_the_schedule(tmp_path):
    """Whatever the groups in a checkpoint say: all of it follows from settings that the identity names."""
    with pytest.raises(Stop):
        train(network(), tmp_path / "c", stop_after=9)
    content = read_checkpoint(tmp_path / "c")
    content["optimizer"]["param_groups"] = [{"betas": "none"}]
    write_checkpoint(content, tmp_path / "c")
    unbroken, resumed = network(), network()
    train(unbroken, tmp_path / "unbroken")
    train(resumed, tmp_path / "c")
    assert all(torch.equal(a, b) for a, b in zip(unbroken.parameters(), resumed.parameters(), strict=True))


def test_one_wrong_bit_is_refused_wherever_it_is(tmp_path):
    content = checkpoint(tmp_path / "c")
    whole = (tmp_path / "c").read_bytes()
    weights, moments = content["network"]["0.weight"], content["optimizer"]["state"][0]["exp_avg"]
    entry = whole.rindex(b"archive/data/1PK") - 8  # in the archive's directory, outside of all its checksums
    for place, bit in (
        (whole.index(weights.numpy().tobytes()) + 3, 1),
        (whole.index(moments.numpy().tobytes()), 1),
        (entry, 1 << 4),  # "this is a folder": torch then reads other numbers, without a word
    ):
        spoiled = bytearray(whole)
        spoiled[place] ^= bit
        (tmp_path / "c").write_bytes(spoiled)
        with pytest.raises(BadCheckpoint, match="not a whole checkpoint"):
            train(network(), tmp_path / "c")


def test_checkpoint_of_an_earlier_dualrs_is_refused_with_what_to_do(tmp_path):
    torch.save(checkpoint(tmp_path / "c"), tmp_path / "c")
    with pytest.raises(BadCheckpoint, match=r"delete it to begin anew \(.* or an earlier dualrs wrote it\)"):
        train(network(), tmp_path / "c")


class Trap:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def test_checkpoint_with_code_in_it_is_refused_and_not_run(tmp_path):
    write_checkpoint({"identity": Trap(tmp_path / "sprung")}, tmp_path / "c")
    with pytest.raises(BadCheckpoint, match="not a whole checkpoint"):
        train(network(), tmp_path / "c")
    assert not (tmp_path / "sprung").exists()


def test_loss_that_is_not_a_number_stops_before_it_spoils_the_weights(tmp_path):
    model = network()
    before = [p.clone() for p in model.parameters()]

    def loss(indices, generator):
        seen.append(indices)
        return model(X[indices]).sum() * math.nan

    seen = []
    with pytest.raises(NonFiniteLogits, match="the loss became nan at step 1,") as caught:
        fit(Task(model, IMAGES, loss, "a test"), SCHEDULE, tmp_path / "c")
    for one, other in zip(before, model.parameters(), strict=True):
        assert torch.equal(one, other)
    named = ", ".join(IDS[i] for i in seen[0][:8].tolist())
    assert f"on the images {named} and 8 more; there is no checkpoint yet." in str(caught.value)
    assert "lower the learning rate" in str(caught.value)
    assert not (tmp_path / "c").exists()


def spoiled_gradient(value):
    """A finite loss whose gradient is NaN."""
    return value + (value - value.detach()).sqrt()


@pytest.mark.parametrize(
    ("spoil", "what"),
    [(lambda value: value / 0, "the loss became inf"), (spoiled_gradient, "the norm of the loss's gradient became")],
    ids=["loss", "gradient"],
)
def test_last_good_checkpoint_is_named_and_kept(tmp_path, monkeypatch, spoil, what):
    model = network()

    def loss(indices, generator):
        seen.append(indices)
        value = (model(X[indices]) - Y[indices]).square().mean()
        return spoil(value) if len(seen) == 6 else value

    seen = []
    schedule = Schedule(epochs=2, batch_size=5)
    monkeypatch.setattr(loop, "_SECONDS_BETWEEN_CHECKPOINTS", 0)
    with pytest.raises(NonFiniteLogits, match=what) as caught:
        fit(Task(model, IMAGES, loss, "a test"), schedule, tmp_path / "c")
    named = ", ".join(IDS[i] for i in seen[5].tolist())
    where = f"at step 6, on the images {named}; the last good checkpoint is {tmp_path / 'c'}, of step 5."
    assert where in str(caught.value)
    kept = read_checkpoint(tmp_path / "c")
    assert kept["step"] == 5
    assert all(torch.isfinite(value).all() for value in kept["network"].values())


def test_network_without_anything_to_train_is_refused(tmp_path):
    with pytest.raises(BadModel, match="nothing to train"):
        train(network().requires_grad_(False), tmp_path / "c")


def test_randomness_of_the_caller_is_left_alone(tmp_path):
    torch.manual_seed(5)
    expected = torch.rand(3)
    model = network()
    torch.manual_seed(5)
    train(model, tmp_path / "c")
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize(
    "field",
    [{"epochs": 0}, {"batch_size": 1}, {"rate": 0.0}, {"weight_decay": -1.0}, {"seed": -1}, {"halve_every": -1}],
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
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c", "c.log.csv"]


def test_training_that_fails_at_its_first_step_leaves_no_file(tmp_path):
    def loss(indices, generator):
        raise BadModel("it answers nothing")

    with pytest.raises(BadModel):
        fit(Task(network(), IMAGES, loss, "a test"), SCHEDULE, tmp_path / "c")
    assert list(tmp_path.iterdir()) == []


def test_training_that_fails_when_it_goes_on_keeps_the_log_it_had(tmp_path):
    with pytest.raises(Stop):
        train(network(), tmp_path / "c", stop_after=12)
    before = (tmp_path / "c.log.csv").read_bytes()

    def loss(indices, generator):
        raise BadModel("it answers nothing")

    model = network()
    with pytest.raises(BadModel):
        fit(Task(model, IMAGES, loss, "a test"), SCHEDULE, tmp_path / "c")
    assert (tmp_path / "c.log.csv").read_bytes() == before
