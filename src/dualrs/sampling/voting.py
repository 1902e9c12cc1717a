"""Voting: networks answer the batches of a run, one after the other or, on a CPU, several at once.

Enters: batches, as integer noise and the runs of votes that they hold. Leaves: what each network answers to each row.
"""

import time
from collections.abc import Collection
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from dualrs.errors import NonFiniteLogits
from dualrs.models.denoise import answer_together
from dualrs.models.randomness import Randomness
from dualrs.sampling.batches import NoiseRows, Piece
from dualrs.sampling.lanes import Lane, Run
from dualrs.sampling.machine import Machine
from dualrs.sampling.noise import Int16s
from dualrs.sampling.preflight import check_finite

_AHEAD = 3  # batches that are packed, and their noise drawn, before the network wants them


class Voted(NamedTuple):
    """The answers to a batch, of each of its networks, and how many seconds of the whole machine they took."""

    answers: list[NDArray[np.int64]]
    seconds: float


@dataclass
class Batch:
    """A batch on its way: votes that were asked for, others that fill it up, and the noise of all of them."""

    lane: Lane
    asked: list[Run]
    more: list[Run]
    pieces: list[Piece]
    randomness: Randomness | None
    begun: Future[Voted] | None = None


class Hands:
    """What has batches voted on: this thread or, where the machine runs several at once, a thread of ``pool`` for each.

    One batch by itself has this thread, and all threads of the processor. Answers are the same to the bit, which was
    tried before (see `abreast`).
    """

    def __init__(self, machine: Machine, noise: NoiseRows, pool: Executor) -> None:
        self._machine, self._noise, self._pool = machine, noise, pool

    @property
    def ahead(self) -> int:
        """How many batches may be under way; of several at once one more than run, so that no hand is empty."""
        return _AHEAD if self._machine.at_once == 1 else self._machine.at_once + 1

    @property
    def wanted(self) -> int:
        """How many of them are worth beginning an input for.

        A GPU wants noise to be drawn before. One batch at a time on a CPU does not: inputs come to an end sooner.
        """
        return 1 if self._machine.at_once == 1 and self._machine.device.type == "cpu" else self.ahead

    def begin(self, under_way: Collection[Batch]) -> None:
        """Begin what can be voted on beside something else."""
        if self._machine.at_once > 1 and len(under_way) > 1:
            for batch in under_way:
                if batch.begun is None:
                    batch.begun = self._pool.submit(self._vote, batch, self._machine.at_once)

    def finish(self, batch: Batch) -> Voted:
        """The answers to a batch, as soon as they are here."""
        return self._vote(batch, 1) if batch.begun is None else batch.begun.result()

    def _vote(self, batch: Batch, at_once: int) -> Voted:
        rows = self._noise.fill(batch.pieces)
        began = time.perf_counter()
        answers = _answers(self._machine, batch, rows, None if at_once == 1 else self._machine.share_of(at_once))
        return Voted(answers, (time.perf_counter() - began) / at_once)


def _answers(machine: Machine, batch: Batch, rows: Int16s, threads: int | None) -> list[NDArray[np.int64]]:
    """What each of the lane's networks answers to each row of a batch; an error names the inputs it is about.

    Where a network has no finite answer to a row for which nobody asked, that is -1.
    """
    lane, asked, shape = batch.lane, sum(run.votes for run in batch.asked), batch.pieces[0].image.shape
    try:
        with machine.settled(threads):
            tables = answer_together(lane.models, machine.images(rows, shape), lane.sigma, batch.randomness)
            answers = []
            for model, logits in zip(lane.models, tables, strict=True):
                check_finite(logits[:asked], model.name)
                answers.append(logits.argmax(dim=1))
                if asked < len(logits):
                    answers[-1][asked:][~torch.isfinite(logits[asked:]).all(dim=1)] = -1
            return [each.cpu().numpy() for each in answers]
    except NonFiniteLogits as error:
        inputs = np.repeat([run.order.unit.input_id for run in batch.asked], [run.votes for run in batch.asked])
        bad = ~torch.isfinite(torch.cat(tables, dim=1)).all(dim=1).cpu().numpy()[:asked]
        raise NonFiniteLogits(f"{error}, of input {', '.join(sorted(set(inputs[bad]))[:5])}") from error
