"""Networks for testing the engine: one whose answers do not depend on rounding, and ones that remember their batches.

Also the slow way to the same votes: noise drawn by its address, one vote at a time, counted in Python.
"""

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

from dualrs.models.noisy import NoisyModel
from dualrs.sampling.engine import Engine
from dualrs.sampling.noise import NoiseSource, draw_block
from dualrs.sampling.work import Request
from dualrs.votes import BLOCK, Part, Purpose, Stage, Stream, Unit


class Exact(nn.Module):
    """Two layers of small integers over integer pixels, in doubles: no sum is ever rounded, in whatever order."""

    def __init__(self, pixels, answers=3, seed=0):
        super().__init__()
        draw = np.random.default_rng(seed).integers
        first = draw(-3, 4, (pixels, 12))
        self.register_buffer("first", torch.tensor(first, dtype=torch.float64))
        self.register_buffer("shift", torch.tensor(draw(-50, 51, 12) - 128 * first.sum(0), dtype=torch.float64))
        self.register_buffer("second", torch.tensor(draw(-3, 4, (12, answers)), dtype=torch.float64))
        self.register_buffer("no_ties", torch.arange(answers, dtype=torch.float64) / 8)
        self.eval()

    def forward(self, x):
        levels = (x.flatten(1).double() * 255).round()
        return (levels @ self.first + self.shift).relu() @ self.second + self.no_ties


class Watched(nn.Module):
    """Remembers every batch that a network is shown."""

    def __init__(self, network):
        super().__init__()
        self.network = network
        self.batches = []
        self.sigmas = []
        self.eval()

    def forward(self, x):
        self.batches.append(x.flatten(1).numpy().copy())
        return self.network(x)

    def rows(self):
        """The bytes of every row that was shown, without the padding: what repeats the first row at the end."""
        return [row.tobytes() for batch in self.batches for row in batch[: filled(batch)]]


class WatchedWithSigma(Watched):
    """The same for a network that is told the sigma."""

    def forward(self, x, sigma):
        self.sigmas.append(sigma)
        return super().forward(x)


def filled(batch):
    """How many rows of a batch are no padding, given that noise never repeats."""
    padded = 0
    while padded < len(batch) - 1 and np.array_equal(batch[-1 - padded], batch[0]):
        padded += 1
    return len(batch) - padded


def source(seed):
    return NoiseSource(Purpose.CERTIFY, seed)


def noisy_rows(seed, input_id, stream, start, stop, image):
    """The rows that votes ``start`` to ``stop`` must see, drawn one at a time: float32, (votes, pixels)."""
    rows = []
    for vote in range(start, stop):
        block, offset = divmod(vote, BLOCK)
        noise = draw_block(source(seed), input_id, image, stream, block)[offset]
        rows.append((noise.astype(np.int64) + image.reshape(-1)).astype(np.float32) / np.float32(255))
    return np.stack(rows)


def slow_counts(network, seed, unit, image, answers):
    """Counts of a unit, shape (blocks, answers), one noisy copy at a time."""
    counts = np.zeros((unit.blocks, answers), dtype=np.int64)
    for number, row in enumerate(noisy_rows(seed, unit.input_id, unit.stream, unit.start, unit.stop, image)):
        logits = network(torch.from_numpy(row).view(1, *image.shape))
        counts[number // BLOCK, int(logits.argmax())] += 1
    return counts


def images(count, shape=(1, 4, 4), seed=0):
    return dict(
        zip(
            map(str, range(count)),
            np.random.default_rng(seed).integers(0, 256, (count, *shape), dtype=np.uint8),
            strict=True,
        )
    )


def unit(input_id, votes, stage=Stage.CLASS, part=Part.ESTIMATION, sigma=0.5, start=0):
    return Unit(input_id, Stream(stage, part, sigma), start, start + votes)


def engine(models, first, **options):
    """An engine that has had its preflight, with what watched networks saw of it forgotten."""
    made = Engine({slot: NoisyModel(f"{slot[0]} at {slot[1]}", m) for slot, m in models.items()}, **options)
    made.prepare(first)
    for module in models.values():
        if isinstance(module, Watched):
            module.batches.clear()
            module.sigmas.clear()
    return made


@dataclass
class Asking:
    """A `Work` that asks for given units, input by input, and keeps their counts."""

    images: dict
    units: list
    follow_up: dict = field(default_factory=dict)  # from a delivered unit to further ones
    counts: dict = field(default_factory=dict)
    seconds: dict = field(default_factory=dict)
    batches: int = 0

    def __post_init__(self):
        by_input = {}
        for u in self.units:
            by_input.setdefault(u.input_id, []).append(u)
        self._supply = iter(by_input.values())

    def more(self):
        units = next(self._supply, None)
        return units and [Request(u) for u in units]

    def pixels(self, input_id):
        return self.images[input_id]

    def deliver(self, request, counts, seconds):
        unit, member = request.unit, request.member
        assert member == 0
        assert unit not in self.counts, "a unit was delivered twice"
        self.counts[unit] = counts
        self.seconds[unit] = seconds
        return [Request(u) for u in self.follow_up.get(unit, ())]

    def batch_done(self):
        self.batches += 1
