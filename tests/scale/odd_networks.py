"""Small networks for workers: one whose answers do not depend on rounding, and ones that fail in some way.

Also works that ask for units and keep the counts, as `collect` does.
"""

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import nn

from dualrs.models.noisy import NoisyModel
from dualrs.sampling.counting import count
from dualrs.sampling.engine import Engine
from dualrs.sampling.noise import NoiseSource
from dualrs.sampling.work import Request
from dualrs.votes import Part, Purpose, Stage, Stream, Unit

SHAPE = (1, 4, 4)
BAD = 7  # grey level of the one odd image; the noise at SIGMA stays far from that of others
SIGMA = 0.01
SEED = 3
SOURCE = NoiseSource(Purpose.CERTIFY, SEED)


class Exact(nn.Module):
    """Small integers over integer pixels, in doubles: no sum is ever rounded, in whatever order."""

    def __init__(self, answers=3, seed=0, pause=0.0):
        super().__init__()
        weights = np.random.default_rng(seed).integers(-3, 4, (16, answers))
        self.register_buffer("weights", torch.tensor(weights, dtype=torch.float64))
        self.register_buffer("no_ties", torch.arange(answers, dtype=torch.float64) / 8)
        self.pause = pause
        self.eval()

    def forward(self, x):
        time.sleep(self.pause)
        levels = (x.flatten(1).double() * 255).round()
        return (levels - levels.mean(1, keepdim=True).round()) @ self.weights + self.no_ties


class Poisoned(Exact):
    """NaN on noisy copies of a dark image."""

    def forward(self, x):
        dark = x.flatten(1).mean(1, keepdim=True) < 30 / 255
        return super().forward(x).masked_fill(dark, float("nan"))


class Deadly(Exact):
    """Ends its process at the sight of a dark image."""

    def forward(self, x):
        if (x.flatten(1).mean(1) < 30 / 255).any():
            os._exit(1)
        return super().forward(x)


class Hungry(Exact):
    """Runs out of memory once in its life, whichever process it lives in."""

    def __init__(self, flag):
        super().__init__()
        self.flag = Path(flag)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls > 10 and first_to_come(self.flag):
            raise torch.OutOfMemoryError("out of memory")
        return super().forward(x)


class Tight(Exact):
    """Fits into memory only in small batches; smaller in the process that has it first, as on another machine."""

    def __init__(self, flag):
        super().__init__()
        self.flag = Path(flag)
        self.most = None

    def forward(self, x):
        if self.most is None:
            self.most = 40 if first_to_come(self.flag) else 80
        if len(x) > self.most:
            raise torch.OutOfMemoryError("out of memory")
        return super().forward(x)


class Different(Exact):
    """Counts otherwise in the process that has it first."""

    def __init__(self, flag):
        super().__init__()
        self.flag = Path(flag)
        self.shift = None

    def forward(self, x):
        if self.shift is None:
            self.shift = int(first_to_come(self.flag))
        return super().forward(x).roll(self.shift, dims=1)


class Answering(nn.Module):
    """Always gives one answer; another once it is compiled."""

    def __init__(self):
        super().__init__()
        self.answer = 0
        self.eval()

    def compile(self):
        self.answer = 1

    def forward(self, x):
        return nn.functional.one_hot(torch.full((len(x),), self.answer), 3).double()


class Starving(Exact):
    """Runs out of memory in every process, once it has been tried."""

    calls = 0
    tried = 8  # times: two, and six batches of trial copies

    def forward(self, x):
        if self.calls == 0 and torch.get_num_threads() > 1:
            self.tried += 24  # in twelve turns, on one thread and on all
        self.calls += 1
        if self.calls > self.tried:
            raise MemoryError
        return super().forward(x)


def first_to_come(flag):
    try:
        flag.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def images(count, odd=None):
    """Bright images, one of them dark."""
    made = np.random.default_rng(0).integers(100, 256, (count, *SHAPE), dtype=np.uint8)
    if odd is not None:
        made[odd] = BAD
    return {f"image {k}": image for k, image in enumerate(made)}


def engine(network, batch_size=50, sigma=SIGMA):
    """An engine with one network."""
    return Engine({(Stage.CLASS, sigma): NoisyModel("classifier", network)}, batch_size=batch_size)


@dataclass
class Asking:
    """Asks for so many votes on each image, in units of 100; keeps their counts, and calls ``each`` between units."""

    images: dict
    votes: int = 200
    sigma: float = SIGMA
    each: object = None
    counts: dict = field(default_factory=dict)
    reported: int = 0

    def __post_init__(self):
        self._names = iter(self.images)

    def more(self):
        name = next(self._names, None)
        stream = Stream(Stage.CLASS, Part.ESTIMATION, self.sigma)
        return None if name is None else [Request(Unit(name, stream, k, k + 100)) for k in range(0, self.votes, 100)]

    def pixels(self, input_id):
        return self.images[input_id]

    def deliver(self, request, counts, seconds):
        assert request not in self.counts, "a unit was delivered twice"
        self.counts[request] = counts
        if self.each is not None:
            self.each(len(self.counts))
        return ()

    def batch_done(self):
        self.reported = len(self.counts)


def alone(work, network=None):
    """The same work, done by one process with an engine."""
    again = Asking(work.images, work.votes, work.sigma)
    made = engine(network or Exact(), sigma=work.sigma)
    made.prepare(next(iter(work.images.values())))
    count([made], again, SOURCE)
    return again


def same_counts(one, other):
    assert one.counts.keys() == other.counts.keys()
    for request, counts in one.counts.items():
        np.testing.assert_array_equal(counts, other.counts[request])
