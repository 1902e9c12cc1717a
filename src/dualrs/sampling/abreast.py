"""Abreast: how a CPU's threads are put to use: several batches at once, all threads on one batch, or one thread alone.

Enters: networks and the machine that runs them. Leaves: how many batches the machine runs at once, on how many threads.

Threads that share a batch wait for one another after every layer. Beside other work on the machine each wait is as long
as that work's turn, and networks come to a halt; batches of their own they answer as fast as the machine has time.
"""

import time
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from math import inf
from threading import Barrier

import torch
from torch import Tensor

from dualrs.data.images import Pixels
from dualrs.models.noisy import NoisyModel
from dualrs.sampling.auxiliary import VoteRandomness
from dualrs.sampling.batches import noisy_copies, trial_votes
from dualrs.sampling.machine import Machine, on_threads
from dualrs.sampling.work import Slot
from dualrs.votes import Part, Stream

Networks = Sequence[tuple[NoisyModel, Slot]]

_SHORT, _LONG = 0.001, 1.0  # seconds of a batch: too short for Python to keep several going, too long to try it often
_PAIRS = 3  # of batches, answered at once and one after the other

_QUICK = 0.005  # seconds of a batch
_TRIALS = 12  # in turns on one thread and on several, of which the quickest count: it takes some to settle
_HOPELESS = 0.5  # seconds of the first trial that make others needless: no busy machine slows a quick network so much
_GAIN = 1.5  # that several threads must bring


def settle_threads(machine: Machine, networks: Networks, pixels: Pixels, *, pure: bool) -> None:
    """Decide it for networks that were tried; those that are not ``pure`` answer one batch at a time."""
    machine.at_once = 1
    if machine.most_at_once > 1 and pure and _alike_at_once(machine, networks, pixels):
        machine.at_once = machine.most_at_once
    elif machine.threads is None and machine.device.type == "cpu" and torch.get_num_threads() > 1:
        machine.threads = 1 if all(_one_thread_will_do(machine, *network, pixels) for network in networks) else None


def _alike_at_once(machine: Machine, networks: Networks, pixels: Pixels) -> bool:
    """Whether networks answer two batches at once, to the bit, as one after the other, and are not too short for it."""
    with on_threads(None), ThreadPoolExecutor(2) as pool:
        try:
            seconds = [_seconds_if_alike(machine, *network, pixels, pool) for network in networks]
        except Exception:  # memory that is enough for one at a time, say, as which each was tried before
            return False
    return _SHORT < max(seconds) < inf


def _seconds_if_alike(machine: Machine, model: NoisyModel, slot: Slot, pixels: Pixels, pool: Executor) -> float:
    """What a batch takes by itself; infinite if it is long, or if a network answers two at once in another way."""
    stage, sigma = slot
    stream, size = Stream(stage, Part.SELECTION, sigma), machine.batch_size
    rows, votes = noisy_copies(pixels, stream, 2 * size), trial_votes(pixels, stream, 2 * size)

    def answer(first: int, together: Barrier | None = None) -> tuple[Tensor, float]:
        threads = None if together is None else machine.share_of(machine.most_at_once)
        with machine.inference(threads):
            images = machine.images(rows[first : first + size], pixels.shape)
            if together is not None:
                together.wait(_LONG)
            began = time.perf_counter()
            logits = model(images, sigma, VoteRandomness(votes[first : first + size], images.device))
            return logits, time.perf_counter() - began

    alone = [answer(first) for first in (0, size)]
    if max(seconds for _, seconds in alone) > _LONG:
        return inf
    for _ in range(_PAIRS):
        beside = pool.map(answer, (0, size), [Barrier(2)] * 2)
        if not all(torch.equal(one, other) for (one, _), (other, _) in zip(alone, beside, strict=True)):
            return inf
    return min(seconds for _, seconds in alone)


def _one_thread_will_do(machine: Machine, model: NoisyModel, slot: Slot, pixels: Pixels) -> bool:
    """Whether a network is so quick that threads lose in waiting for one another what they gain by working together.

    On a machine with other work they lose much more: each waits until all have had their turn.
    """
    stage, sigma = slot
    stream = Stream(stage, Part.SELECTION, sigma)
    noisy = machine.images(noisy_copies(pixels, stream, machine.batch_size), pixels.shape)
    votes = trial_votes(pixels, stream, machine.batch_size)

    def seconds() -> float:
        began = time.perf_counter()
        model(noisy, sigma, VoteRandomness(votes, noisy.device))
        return time.perf_counter() - began

    alone = together = inf
    with machine.inference():
        for trial in range(_TRIALS):
            with on_threads(1):
                alone = min(alone, seconds())
            if alone > max(_QUICK, _HOPELESS / 4**trial):  # the quickest of more trials is closer to the truth
                return False
            together = min(together, seconds())
    return alone < _GAIN * together
