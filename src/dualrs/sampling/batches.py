"""Batches: noise is drawn by threads, ahead of time, and fills the rows.

Enters: the runs of votes that a batch is packed from. Leaves: batches of one fixed shape, as integer pixels plus noise.
"""

from concurrent.futures import Executor, Future
from dataclasses import dataclass

import numpy as np

from dualrs.data.images import Pixels
from dualrs.sampling.auxiliary import Vote, votes_of
from dualrs.sampling.lanes import Run
from dualrs.sampling.noise import Int16s, NoiseSource, draw_block
from dualrs.votes import BLOCK, Purpose, Stream, Unit

_AT_ONCE = 1 << 14  # numbers: drawn in less time than a thread takes to wake
_TRIAL = NoiseSource(Purpose.TRIAL, seed=0)


@dataclass
class Piece:
    """Some copies of a drawn block of noise, for consecutive rows of a batch."""

    block: Future[Int16s]  # (copies, pixels)
    offset: int
    count: int
    image: Pixels


class NoiseRows:
    """Orders the noise of batches from a pool of threads, and fills batches with it."""

    def __init__(self, source: NoiseSource, batch_size: int, pool: Executor) -> None:
        self._source = source
        self._batch_size = batch_size
        self._pool = pool
        self._cut: dict[tuple[str, Stream], tuple[int, Future[Int16s]]] = {}  # blocks that a batch's end cut in two

    def order(self, runs: list[Run], images: list[Pixels]) -> list[Piece]:
        """Have the noise of a batch drawn."""
        pieces = []
        for run, image in zip(runs, images, strict=True):
            vote = run.first
            while vote < run.last:
                block, offset = divmod(vote, BLOCK)
                count = min(BLOCK - offset, run.last - vote)
                vote += count
                pieces.append(Piece(self._draw(run.order.unit, image, block, until=vote), offset, count, image))
        return pieces

    def fill(self, pieces: list[Piece]) -> Int16s:
        """Noisy pixels, shape (batch size, pixels); rows beyond the pieces repeat the first."""
        rows = np.empty((self._batch_size, pieces[0].image.size), dtype=np.int16)
        row = 0
        for piece in pieces:
            noise = piece.block.result()[piece.offset : piece.offset + piece.count]
            np.add(noise, piece.image.reshape(-1), out=rows[row : row + piece.count])
            row += piece.count
        rows[row:] = rows[0]
        return rows

    def _draw(self, unit: Unit, image: Pixels, block: int, until: int) -> Future[Int16s]:
        key = (unit.input_id, unit.stream)
        number, noise = self._cut.pop(key, (None, None))
        if noise is None or number != block:
            copies = min(BLOCK, unit.stop - block * BLOCK)  # what no vote will ask for is not drawn
            address = self._source, unit.input_id, image, unit.stream, block, copies
            if copies * image.size <= _AT_ONCE:
                noise = Future()
                noise.set_result(draw_block(*address))
            else:
                noise = self._pool.submit(draw_block, *address)
        if until % BLOCK and until < unit.stop:
            self._cut[key] = (block, noise)
        return noise


def noisy_copies(pixels: Pixels, stream: Stream, count: int) -> Int16s:
    """Noisy copies to try networks on, under an address that no vote has."""
    sizes = [min(BLOCK, count - first) for first in range(0, count, BLOCK)]
    blocks = [draw_block(_TRIAL, "", pixels, stream, number, copies) for number, copies in enumerate(sizes)]
    return np.concatenate(blocks) + pixels.reshape(-1).astype(np.int16)


def trial_votes(pixels: Pixels, stream: Stream, count: int) -> list[Vote]:
    """What networks draw from where they are tried on such copies."""
    return votes_of(_TRIAL, "", pixels, stream, 0, count)
