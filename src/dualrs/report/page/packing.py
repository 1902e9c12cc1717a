"""Packing: the votes of a run as the script of the page reads them.

Enters: a ledger. Leaves: for each network and sigma the counts of every input, those without votes left out, in steps:
up to these numbers of votes the script can take n, or in an adaptive run look. Everything after the votes is
arithmetic, and the page does it itself.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dualrs.storage.ledger import Ledger
from dualrs.votes import BLOCK, PLAIN, Counts, Part, SamplingPlan, Stream

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
        np.add.at(found, np.searchsorted(ends, starts, side="right"), counts)
    if not plan.adaptive and len(steps) > 1 and _weight(kept) > _MOST:
        steps = steps[-1:]
        for stream, rows in kept.items():
            kept[stream] = [None if counts is None else counts.sum(axis=0, keepdims=True) for counts in rows]
    core = kept.pop(PLAIN, None)
    networks = [stream for stream in kept if stream.part is Part.SELECTION]
    return {
        "steps": steps,
        "networks": [
            {"stage": selection.stage, "sigma": selection.sigma, "answers": ledger.rows.answers[selection]}
            | {part: [*map(_sparse, kept[Stream(selection.stage, part, selection.sigma)])] for part in Part}
            for selection in networks
        ],
        "core": None if core is None else [-1 if counts is None else int(counts.argmax()) for counts in core],
    }


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
