"""What an adaptive run would have taken, and certified, where every vote is known.

    python -m benchmarks.replay LEDGER [RULE]        # a ledger of `dualrs certify --all-votes` or `dualrs panel`

Votes are addressed: an adaptive run draws the first votes of the same streams. So its decisions can be played on the
votes of a full run, without a network, and the two compared input by input. What is left of the time of a run is that
of its decisions.
"""

import sys
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table

from dualrs.certificates import Certificate, Rule
from dualrs.policy import Grid
from dualrs.schemes import Cascade, CascadeVotes, Scheme, Several, rule
from dualrs.storage import Ledger
from dualrs.theory.looks import planned_looks
from dualrs.theory.radius import RADII
from dualrs.votes import BLOCK, Counts, Policy, SamplingPlan, Stream, Tally

_WIDTH = 120  # of the table, also where a terminal is narrower or there is none


class Replay(NamedTuple):
    """Two runs, with a fixed n and adaptive: arrays are (runs, inputs)."""

    radii: NDArray[np.float64]  # of the right class; -1: another, or none
    votes: NDArray[np.int64]
    seconds: NDArray[np.float64]  # of the processor, for an input: (runs,)


def replay(path: Path, chosen: Rule[Any]) -> Replay:
    """Play both runs on every input of a ledger."""
    with Ledger.open(path) as ledger:
        header, inputs = ledger.header, [row for row in ledger.inputs() if row.id in ledger.concluded()]
        scheme = kind_for(header.scheme, chosen)
        fixed = SamplingPlan(header.n0, header.n)
        looks = SamplingPlan(header.n0, header.n, planned_looks(header.n))
        ways: list[tuple[Policy, SamplingPlan]] = [
            (scheme.policy(fixed, chosen, header.alpha), fixed),
            (scheme.policy(looks, chosen, header.alpha, target=Grid()), looks),
        ]
        radii, votes = np.empty((2, len(inputs))), np.empty((2, len(inputs)), dtype=np.int64)
        seconds = np.zeros(2)
        for i, row in enumerate(track(inputs, "replaying", console=Console(stderr=True))):
            parts: dict[Stream, list[Counts]] = defaultdict(list)  # block after block, as units come in order
            for unit, counts in ledger.units(row.id):
                parts[unit.stream].append(counts)
            known = {stream: np.concatenate(blocks) for stream, blocks in parts.items()}
            for way, (policy, plan) in enumerate(ways):
                began = time.process_time()
                taken = play(policy, plan, known)
                found: Certificate = chosen.certify(scheme.gather([taken], plan), header.alpha)[0]
                seconds[way] += time.process_time() - began
                radii[way, i] = found.radius if found.prediction == row.label else -1
                votes[way, i] = sum(int(c.sum()) for parts in taken.counts.values() for c in parts.values())
    return Replay(radii, votes, seconds / len(inputs))


def kind_for(scheme: Scheme[Any], chosen: Rule[Any]) -> Scheme[Any]:
    """The kind of run that a rule is for: of a run with a router, its experts alone make a cascade."""
    if chosen.reads is not CascadeVotes or not isinstance(scheme, Several):
        return scheme
    return Cascade(scheme.sigmas, scheme.classes, confidences=scheme.confidences)


def play(policy: Policy, plan: SamplingPlan, known: Mapping[Stream, Counts]) -> Tally:
    """The votes that a policy takes, if these are the ones it would draw."""
    taken = Tally()
    for wanted in policy(taken):
        for stream, upto in wanted.items():
            for unit in plan.units("", stream, upto):
                taken.add(unit, known[stream][unit.start // BLOCK : -(-unit.stop // BLOCK)])
    return taken


def main() -> None:
    """Print votes per input, and certified accuracy at the radii of the tables."""
    path = Path(sys.argv[1])
    for name in sys.argv[2:] or ("paper", "nosplit", "fusion", "cascade"):
        radii, votes, seconds = replay(path, rule(name))
        table = Table("", "votes an input", *(f"{r:g}" for r in RADII), title=f"{path.name}, rule {name}")
        for way, of_way, drawn in zip(("fixed n", "adaptive"), radii, votes, strict=True):
            accuracy = [f"{100 * np.mean((of_way > 0) & (of_way >= r)):.1f}" for r in RADII]
            table.add_row(way, f"{drawn.mean():,.0f}", *accuracy)
        wide = Console(width=max(Console().width, _WIDTH))
        wide.print(table, f"{votes.shape[1]} inputs; {votes[0].mean() / votes[1].mean():.2f} times fewer votes")
        wide.print(f"decisions and certificate: {' and '.join(f'{1e3 * s:.1f}' for s in seconds)} ms an input")


if __name__ == "__main__":
    main()
