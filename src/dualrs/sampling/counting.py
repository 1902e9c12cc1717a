"""Counting: the networks of a panel answer noisy copies, batch by batch, and their answers are counted.

Enters: engines, the members of a panel, and a `Work` that asks them for units of votes. Leaves: the counts of each.

A batch takes what a lane holds, from as many inputs, sigmas and stages as needed; new inputs are begun only when no
lane can fill a batch. Every batch has one fixed shape, because kernels may round differently for another shape; where
not enough is asked for, votes that may be asked for next fill it (see `spare`), or else the first row again. Noise is
addressed (see `noise`), and so is what networks draw for themselves (see `auxiliary`): votes do not depend on any of
this. Threads draw it while the network runs on an earlier batch, or on several (see `voting`).
"""

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualrs.errors import BadSetting
from dualrs.models.randomness import Randomness
from dualrs.sampling.auxiliary import VoteRandomness, votes_of
from dualrs.sampling.batches import NoiseRows
from dualrs.sampling.lanes import Lane, Lanes, Order, Run
from dualrs.sampling.machine import Machine, on_threads
from dualrs.sampling.noise import NoiseSource
from dualrs.sampling.spare import Spare
from dualrs.sampling.voting import Batch, Hands
from dualrs.sampling.work import Work

if TYPE_CHECKING:
    from dualrs.sampling.engine import Engine

_MOST_THREADS = 8  # that draw noise; fewer where torch has a smaller share of the cores


def count(panel: Sequence["Engine"], work: Work, source: NoiseSource) -> None:
    """Count every unit that a work asks of the members of a panel, until it asks no more, on noise of one source.

    Units that several members want of the same noisy copies at the same time are voted on together: the copies are
    drawn, and denoised, once.
    """
    machine = _machine_of(panel)
    lanes, spare = Lanes(panel), Spare()
    under_way: deque[Batch] = deque()
    threads = min(_MOST_THREADS, machine.noise_threads)

    with on_threads(None), _pool(threads, "noise") as drawing, _pool(machine.at_once, "votes") as voting:
        noise = NoiseRows(source, machine.batch_size, drawing)
        hands = Hands(machine, noise, voting)
        while True:
            while len(under_way) < hands.ahead and (lane := _next_lane(lanes, work, machine, spare, under_way, hands)):
                asked = lane.pack(machine.batch_size)
                more = spare.fill(asked, machine.batch_size - _rows(asked))
                runs = [*asked, *more]
                pieces = noise.order(runs, [work.pixels(run.order.unit.input_id) for run in runs])
                under_way.append(Batch(lane, asked, more, pieces, _randomness(machine, lane, runs, work, source)))
            if not under_way:
                return
            hands.begin(under_way)
            batch = under_way.popleft()
            answers, seconds = hands.finish(batch)
            _keep(spare, batch.more, answers, _rows(batch.asked))
            _deliver(_finished(batch.asked, answers, seconds), lanes, work, spare)
            work.batch_done()


@contextmanager
def _pool(threads: int, task: str) -> Iterator[Executor]:
    """Threads that leave what they have not begun, once they are not needed any more."""
    pool = ThreadPoolExecutor(threads, thread_name_prefix=f"dualrs-{task}")
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _machine_of(panel: Sequence["Engine"]) -> Machine:
    """The machine of all; refuses networks that cannot vote, or not beside those of the first."""
    first = panel[0].machine
    for engine in panel:
        for model in engine.models.values():
            model.demand_eval()
        ours, theirs = ((m.batch_size, m.dtype, m.device) for m in (engine.machine, first))
        if ours != theirs:
            raise BadSetting(
                "models that vote together need one batch size, precision and device; got "
                f"{' '.join(map(str, theirs))} and {' '.join(map(str, ours))}"
            )
    return first.beside(engine.machine for engine in panel)


def _next_lane(
    lanes: Lanes, work: Work, machine: Machine, spare: Spare, under_way: Collection[Batch], hands: Hands
) -> Lane | None:
    """The lane to take the next batch from: one that fills it or, when no input is left, the fullest."""
    while not (full := lanes.fullest(machine.batch_size)):
        requests = work.more() if len(under_way) < hands.wanted else None
        if requests is None:
            break
        _deliver(lanes.add(requests, spare.take), lanes, work, spare)
    # What is under way may bring more units.
    return full if full or under_way else lanes.fullest(1)


def _deliver(complete: list[Order], lanes: Lanes, work: Work, spare: Spare) -> None:
    """Hand over the counts of complete orders, and take in what is asked for next, which may be complete already."""
    while complete:
        order = complete.pop(0)
        for ballot in order.ballots:
            requests = work.deliver(ballot.request, ballot.counts, order.seconds / len(order.ballots))
            complete += lanes.add(requests, spare.take)


def _keep(spare: Spare, more: Sequence[Run], answers: Sequence[NDArray[np.int64]], row: int) -> None:
    """Keep the answers to the votes of a batch, from some row on, that nobody has asked for yet."""
    for run in more:
        spare.keep(run, [given[row : row + run.votes] for given in answers])
        row += run.votes


def _rows(runs: Sequence[Run]) -> int:
    return sum(run.votes for run in runs)


def _randomness(
    machine: Machine, lane: Lane, runs: Sequence[Run], work: Work, source: NoiseSource
) -> Randomness | None:
    """What the lane's networks draw from, if one does: of each vote its own; the padding repeats the first."""
    if not any(model.takes_randomness for model in lane.models):
        return None
    votes = []
    for run in runs:
        name, stream = run.order.unit.input_id, run.order.unit.stream
        votes += votes_of(source, name, work.pixels(name), stream, run.first, run.last)
    return VoteRandomness(votes + votes[:1] * (machine.batch_size - len(votes)), machine.device)


def _finished(runs: Sequence[Run], answers: Sequence[NDArray[np.int64]], seconds: float) -> list[Order]:
    """Count the answers to a batch, which took so many seconds; return the orders that are complete."""
    per_row = seconds / _rows(runs)
    row = 0
    for run in runs:
        order, votes = run.order, run.votes
        for ballot, given in zip(order.ballots, answers, strict=True):
            ballot.add(run.first - order.unit.start, given[row : row + votes])
        order.counted += votes
        order.seconds += votes * per_row
        row += votes
    return [run.order for run in runs if run.order.counted == run.order.unit.votes]
