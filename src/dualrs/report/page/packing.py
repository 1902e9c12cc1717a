"""Packing: the votes of a run as the script of the page reads them.

Enters: a ledger, or votes as they are gathered. Leaves: for each network and sigma the counts of every input, those
without votes left out, in steps: up to these numbers of votes the script can take n, or in an adaptive run look.
Everything after the votes is arithmetic, and the page does it itself. What a network without noise answers is apart,
with the radius that it states, if it does.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dualrs.storage.ledger import Ledger
from dualrs.storage.results import Sampled
from dualrs.votes import BINS, BLOCK, STEP, Counts, Part, SamplingPlan, Stage, Stream, Votes, plain

_STEPS = 6  # numbers of votes that may be chosen instead of n
_MOST = 2_000_000  # numbers in a page; with more, there are fewer steps

Json = dict[str, Any]


def offered(plan: SamplingPlan) -> tuple[int, ...]:
    """The looks of an adaptive run; else numbers of votes up to n: 100, 200, 500, 1,000 and so on."""
    if plan.adaptive:
        return plan.looks
    scale = [digit * 10**power for power in range(2, 10) for digit in (1, 2, 5)]
    return (*[n for n in scale if n < plan.n and n % BLOCK == 0][1 - _STEPS :], plan.n)


def pack(ledger: Ledger, ids: Sequence[str]) -> Json:
    """The votes on some inputs, network by network."""
    plan, steps = ledger.header.plan, offered(ledger.header.plan)
    place = {name: number for number, name in enumerate(ids)}
    kept: dict[Stream, list[Counts | None]] = {stream: [None] * len(ids) for stream in ledger.rows.answers}
    for unit, counts in ledger.units():
        if unit.input_id not in place:
            continue
        stream = unit.stream
        ends = (plan.n0,) if stream.part is Part.SELECTION else steps
        found = kept[stream][place[unit.input_id]]
        if found is None:
            found = np.zeros((len(ends), counts.shape[1]), dtype=np.int64)
            kept[stream][place[unit.input_id]] = found
        starts = unit.start + BLOCK * np.arange(len(counts))
        places, firsts = np.unique(np.searchsorted(ends, starts, side="right"), return_index=True)
        found[places] += np.add.reduceat(counts, firsts, axis=0, dtype=np.int64)
    if not plan.adaptive and len(steps) > 1 and _weight(kept) > _MOST:
        steps = steps[-1:]
        for stream, rows in kept.items():
            kept[stream] = [None if counts is None else counts.sum(axis=0, keepdims=True) for counts in rows]
    answers = ledger.rows.answers
    # A core network of ACES names a class alone; all others state a radius with it.
    states = {stage: answers.get(plain(stage)) != ledger.header.scheme.classes for stage in Stage}
    silent = {stage: _without_noise(kept.pop(plain(stage), None), states[stage]) for stage in Stage}
    networks = [stream for stream in kept if stream.part is Part.SELECTION]
    return {
        "steps": steps,
        "networks": [
            {"stage": selection.stage, "sigma": selection.sigma, "answers": answers[selection]}
            | {part: [*map(_sparse, kept[Stream(selection.stage, part, selection.sigma)])] for part in Part}
            for selection in networks
        ],
        "without_noise": silent,
    }


def pack_gathered(sampled: Sampled) -> Json:
    """Votes to look at, of a run whose rules the script does not know: those of each input's own sigmas, up to n."""

    def packed(stage: Stage, sigma: float, votes: Votes) -> Json:
        counts = {Part.SELECTION: votes.selection, Part.ESTIMATION: votes.estimation}
        rows = {part: [_sparse(row[None]) for row in counted] for part, counted in counts.items()}
        return {"stage": stage, "sigma": sigma, "answers": votes.selection.shape[1]} | rows

    view = sampled.view
    classes = [packed(Stage.CLASS, s, v) for s, v in zip(sampled.scheme.sigmas, view.experts, strict=True)]
    router = [] if view.router is None else [packed(Stage.ROUTER, view.router.sigma, view.router)]
    steps = (view.experts[0].plan.n,)
    return {"steps": steps, "networks": [*router, *classes], "without_noise": dict.fromkeys(Stage)}


def _without_noise(rows: list[Counts | None] | None, states: bool) -> Json | None:
    """What a network without noise answers to each input, negative where it was not asked, and the radius it states."""
    if rows is None:
        return None
    given = np.array([-1 if counts is None else int(counts.argmax()) for counts in rows], dtype=np.int64)
    if not states:
        return {"answer": given.tolist(), "radius": None}
    return {"answer": (given // BINS).tolist(), "radius": np.where(given < 0, 0.0, given % BINS * STEP).tolist()}


def _weight(kept: dict[Stream, list[Counts | None]]) -> int:
    """How many numbers `_sparse` would write."""
    return sum(
        int(counts.any(axis=0).sum()) * (len(counts) + 1)
        for rows in kept.values()
        for counts in rows
        if counts is not None
    )


def _sparse(counts: Counts | None) -> list[int]:
    """Answers that have votes, each followed by its counts from step to step."""
    if counts is None:
        return []
    answers = np.flatnonzero(counts.any(axis=0))
    return np.vstack([answers, counts[:, answers]]).T.reshape(-1).tolist()
