"""How votes are packed: orders wait in lanes, runs of votes make batches, and noise fills the rows.

Enters: units of votes for one network. Leaves: batches of one fixed shape, as integer pixels plus noise.
"""

import math
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from dualrs.data.images import Pixels
from dualrs.models.noisy import NoisyModel
from dualrs.sampling.noise import Int16s, draw_block
from dualrs.votes import BLOCK, Counts, Stream, Unit


@dataclass
class Order:
    """A unit on its way through batches."""

    unit: Unit
    counts: Counts
    asked: int = 0  # votes packed into batches
    counted: int = 0
    seconds: float = 0.0


@dataclass
class Run:
    """Votes ``first`` to ``last`` (exclusive) of an order, in consecutive rows of a batch."""

    order: Order
    first: int
    last: int


@dataclass
class Lane:
    """Orders for one network, in order of arrival."""

    model: NoisyModel
    sigma: float
    orders: deque[Order] = field(default_factory=deque)
    waiting: int = 0  # votes not yet packed


def pack(lane: Lane, batch_size: int) -> list[Run]:
    """Take up to a batch of votes from the head of a lane."""
    runs: list[Run] = []
    room = batch_size
    while room and lane.orders:
        order = lane.orders[0]
        take = min(room, order.unit.votes - order.asked)
        first = order.unit.start + order.asked
        runs.append(Run(order, first, first + take))
        order.asked += take
        lane.waiting -= take
        room -= take
        if order.asked == order.unit.votes:
            lane.orders.popleft()
    return runs


class NoiseRows:
    """Fills batches with noisy pixels, in the order in which the batches were packed."""

    def __init__(self, seed: int, batch_size: int) -> None:
        self._seed = seed
        self._batch_size = batch_size
        self._cut: dict[tuple[str, Stream], tuple[int, Int16s]] = {}  # blocks that a batch's end cut in two

    def fill(self, runs: list[Run], images: list[Pixels]) -> Int16s:
        """Noisy pixels, shape (batch size, pixels); rows beyond the runs repeat the first."""
        rows = np.empty((self._batch_size, images[0].size), dtype=np.int16)
        row = 0
        for run, image in zip(runs, images, strict=True):
            flat = image.reshape(-1)
            vote = run.first
            while vote < run.last:
                block, offset = divmod(vote, BLOCK)
                take = min(BLOCK - offset, run.last - vote)
                noise = self._block(run.order.unit, block, flat.size, ends=vote + take)
                np.add(noise[offset : offset + take], flat, out=rows[row : row + take])
                vote += take
                row += take
        rows[row:] = rows[0]
        return rows

    def _block(self, unit: Unit, block: int, pixels: int, ends: int) -> Int16s:
        key = (unit.input_id, unit.stream)
        kept = self._cut.pop(key, None)
        noise = (
            kept[1]
            if kept is not None and kept[0] == block
            else draw_block(self._seed, unit.input_id, unit.stream, block, pixels)
        )
        if ends % BLOCK and ends < unit.stop:
            self._cut[key] = (block, noise)
        return noise


def noisy_copies(pixels: Pixels, stream: Stream, count: int) -> Int16s:
    """Noisy copies for the preflight, under an address that no input has."""
    blocks = [draw_block(0, "", stream, b, pixels.size) for b in range(math.ceil(count / BLOCK))]
    return np.concatenate(blocks)[:count] + pixels.reshape(-1).astype(np.int16)
