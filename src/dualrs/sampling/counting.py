"""Counting: the networks of a panel answer noisy copies, batch by batch, and their answers are counted.

Enters: engines, the members of a panel, and a `Work` that asks them for units of votes. Leaves: the counts of each.

A batch takes what a lane holds, from as many inputs, sigmas and stages as needed; new inputs are begun only when no
lane can fill a batch. Every batch has one fixed shape, because kernels may round differently for another shape; where
not enough is asked for, votes that may be asked for next fill it (see `spare`), or else the first row again. Noise is
addressed (see `noise`), and so is what networks draw for themselves (see `auxiliary`): votes do not depend on any of
this. Threads draw it while the network runs on an earlier batch. On the CPU no input is begun for the sake of that:
those begun come to an end sooner.
"""

import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from dualrs.errors import BadSetting, NonFiniteLogits
from dualrs.models.denoise import answer_together
from dualrs.models.randomness import Randomness
from dualrs.sampling.auxiliary import VoteRandomness, votes_of
from dualrs.sampling.batches import NoiseRows, Piece
from dualrs.sampling.lanes import Lane, Lanes, Order, Run
from dualrs.sampling.machine import Machine
from dualrs.sampling.noise import Int16s, NoiseSource
from dualrs.sampling.preflight import check_finite
from dualrs.sampling.spare import Spare
from dualrs.sampling.work import Work

if TYPE_CHECKING:
    from dualrs.sampling.engine import Engine

_AHEAD = 3  # batches that are packed, and their noise drawn, before the network wants them
_MOST_THREADS = 8  # that draw noise; fewer where torch has a smaller share of the cores


def count(panel: Sequence["Engine"], work: Work, source: NoiseSource) -> None:
    """Count every unit that a work asks of the members of a panel, until it asks no more, on noise of one source.

    Units that several members want of the same noisy copies at the same time are voted on together: the copies are
    drawn, and denoised, once.
    """
    machine = _machine_of(panel)
    lanes, spare = Lanes(panel), Spare()
    ahead: deque[tuple[Lane, list[Run], list[Run], list[Piece]]] = deque()
    threads = min(_MOST_THREADS, machine.noise_threads)

    with ThreadPoolExecutor(threads, thread_name_prefix="dualrs-noise") as pool:
        noise = NoiseRows(source, machine.batch_size, pool)
        try:
            while True:
                while len(ahead) < _AHEAD and (lane := _next_lane(lanes, work, machine, spare, under_way=bool(ahead))):
                    asked = lane.pack(machine.batch_size)
                    more = spare.fill(asked, machine.batch_size - _rows(asked))
                    images = [work.pixels(run.order.unit.input_id) for run in (*asked, *more)]
                    ahead.append((lane, asked, more, noise.order([*asked, *more], images)))
                if not ahead:
                    return
                lane, asked, more, pieces = ahead.popleft()
                rows, shape, runs = noise.fill(pieces), pieces[0].image.shape, [*asked, *more]
                began = time.perf_counter()
                randomness = _randomness(machine, lane, runs, work, source)
                answers = _answers(machine, lane, asked, rows, shape, randomness)
                _keep(spare, more, answers, _rows(asked))
                _deliver(_finished(asked, answers, time.perf_counter() - began), lanes, work, spare)
                work.batch_done()
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


def _next_lane(lanes: Lanes, work: Work, machine: Machine, spare: Spare, *, under_way: bool) -> Lane | None:
    """The lane to take the next batch from: one that fills it or, when no input is left, the fullest."""
    may_begin = not under_way or machine.device.type != "cpu"
    while not (full := lanes.fullest(machine.batch_size)):
        requests = work.more() if may_begin else None
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


def _answers(
    machine: Machine,
    lane: Lane,
    runs: Sequence[Run],
    rows: Int16s,
    shape: tuple[int, ...],
    randomness: Randomness | None,
) -> list[NDArray[np.int64]]:
    """What each of the lane's networks answers to each row of a batch; an error names the inputs it is about.

    Where a network has no finite answer to a row beyond the ``runs``, for which nobody asked, that is -1.
    """
    asked = _rows(runs)
    try:
        with machine.settled():
            tables = answer_together(lane.models, machine.images(rows, shape), lane.sigma, randomness)
            answers = []
            for model, logits in zip(lane.models, tables, strict=True):
                check_finite(logits[:asked], model.name)
                answers.append(logits.argmax(dim=1))
                if asked < len(logits):
                    answers[-1][asked:][~torch.isfinite(logits[asked:]).all(dim=1)] = -1
            return [each.cpu().numpy() for each in answers]
    except NonFiniteLogits as error:
        inputs = np.repeat([run.order.unit.input_id for run in runs], [run.votes for run in runs])
        bad = ~torch.isfinite(torch.cat(tables, dim=1)).all(dim=1).cpu().numpy()[:asked]
        raise NonFiniteLogits(f"{error}, of input {', '.join(sorted(set(inputs[bad]))[:5])}") from error


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
