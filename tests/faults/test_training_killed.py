"""A training in a real process, really killed: kill -9 at every kind of moment, and compared with an unbroken one.

On one CPU thread a training is determined to the last bit, so weights are compared as bytes.
"""

import csv
import multiprocessing
import random
import signal
import time

import pytest
from killed_training import train

from dualrs.models.card import Card
from dualrs.models.weights import load_weights
from dualrs.training.methods import METHODS

PATIENCE = 60.0  # seconds until the test gives up on a moment
PAUSE = 0.03
PROCESSES = multiprocessing.get_context("forkserver")  # each starts clean, and imports are done once
PROCESSES.set_forkserver_preload(["dualrs.training.base", "torch._dynamo"])  # the optimizer imports it


def start(kind, out, pause):
    process = PROCESSES.Process(target=train, args=(kind, out, pause))
    process.start()
    return process


def finish(kind, out):
    process = start(kind, out, pause=0)
    process.join(PATIENCE)
    assert process.exitcode == 0


def rows(out):
    """The log but for its times."""
    log = out.with_suffix(".log.csv")
    if not log.exists():
        return []
    with log.open(newline="") as file:
        return [(row["step"], row["epoch"], row["loss"], row["rate"]) for row in csv.DictReader(file)]


def half(path):
    return any(path.parent.glob(f".{path.name}.*"))


MOMENTS = {
    "at the start": lambda out: True,
    "in the middle of the first checkpoint": lambda out: half(out.with_suffix(".checkpoint")),
    "after a checkpoint": lambda out: out.with_suffix(".checkpoint").exists(),
    "after ten steps": lambda out: len(rows(out)) > 0,
    "after twenty steps": lambda out: len(rows(out)) > 1,
    "in the middle of the weights": half,
    "between weights and card": lambda out: out.exists(),
    "between card and the end": lambda out: out.with_suffix(".json").exists(),
}


@pytest.mark.parametrize("kind", ["denoiser", "classifier", "router"])
def test_killed_training_ends_like_an_unbroken_one(tmp_path, kind):
    _kill_at_every_moment(tmp_path, kind, MOMENTS)


@pytest.mark.parametrize("method", METHODS)
def test_killed_training_by_a_method_ends_like_an_unbroken_one(tmp_path, method):
    """With SGD; and, of some, with votes that were counted before a checkpoint by weights that are gone."""
    names = ("in the middle of the first checkpoint", "after a checkpoint", "after ten steps", "after twenty steps")
    _kill_at_every_moment(tmp_path, method, {name: MOMENTS[name] for name in names})


def _kill_at_every_moment(tmp_path, kind, moments):
    unbroken, out = tmp_path / "unbroken" / "x.safetensors", tmp_path / "killed" / "x.safetensors"
    delay = random.Random(5)
    for name, moment in moments.items():
        process = start(kind, out, PAUSE)
        deadline = time.monotonic() + PATIENCE
        while not moment(out):
            assert process.is_alive(), f"it ended before: {name}"
            assert time.monotonic() < deadline, f"never reached: {name}"
            time.sleep(0.002)
        time.sleep(delay.uniform(0, PAUSE))
        process.kill()
        process.join(PATIENCE)
        assert process.exitcode == -signal.SIGKILL, name
    finish(kind, out)
    finish(kind, unbroken)
    assert out.read_bytes() == unbroken.read_bytes()
    assert rows(out) == rows(unbroken)
    assert [row[0] for row in rows(out)] == ["10", "20", "24"]
    cards = [Card.read(path.with_suffix(".json")).model_copy(update={"cost": ""}) for path in (out, unbroken)]
    assert cards[0] == cards[1]
    load_weights(out)
    assert sorted(p.name for p in out.parent.iterdir()) == ["x.json", "x.log.csv", "x.safetensors"]
