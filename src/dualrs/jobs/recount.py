"""Recorded votes, drawn again: what a header cannot tell of a model, its votes do.

Enters: a model, its data, units of a ledger with their counts. Leaves: the units that came out differently.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path

import numpy as np

from dualrs.data.dataset import Dataset
from dualrs.data.images import Pixels
from dualrs.errors import ForeignLedger, LedgerError
from dualrs.jobs.model import Model
from dualrs.sampling.collect import Progress, Report
from dualrs.sampling.noise import FIRST_NOISE, NoiseSource
from dualrs.sampling.work import Request
from dualrs.storage.header import Header
from dualrs.storage.ledger import Ledger
from dualrs.votes import Counts, Stage, Stream, Unit

Recorded = Mapping[Unit, Counts]

_STREAMS = 32  # that are enough, if there are many more


def model_name(stage: Stage, sigma: float, known: Collection[str] = ()) -> str:
    """What a header calls the network at a stage and sigma; among ``known`` names, that of the stage if it has one."""
    name = "router" if stage is Stage.ROUTER else f"class {sigma!r}"
    named = [other for other in known if other.partition(" ")[0] == stage]
    return named[0] if name not in known and len(named) == 1 else name


def noise_of(header: Header) -> NoiseSource:
    """The source of the noise that a run draws, or drew."""
    return NoiseSource(header.scheme.purpose, header.seed, by_name=header.noise.startswith(FIRST_NOISE))


def demand_same(
    model: Model,
    dataset: Dataset,
    ledger: Ledger,
    streams: Collection[Stream],
    *,
    inputs: Collection[str] = (),
    unfinished: bool = False,
    reuse: Path | None = None,
    report: Report | None = None,
) -> None:
    """Refuse a ledger whose votes this model would not draw: one unit of each stream is drawn again.

    So is one unit of each stream on each of ``inputs``.
    With ``unfinished`` so is every unit of the inputs that are not done, because votes will be added to these, and a
    certificate is about one model; but for whole streams that another ledger, ``reuse``, has too: they were taken from
    there.
    """
    wanted = [(stream, name) for stream in streams for name in (None, *inputs)]
    first = [found for pair in wanted if (found := ledger.first_unit(*pair))]
    # Where every input has streams of its own, some of them tell as much of the network as all.
    units = dict(first if inputs else first[:: max(1, len(first) // _STREAMS)])
    if unfinished:
        with ExitStack() as stack:
            other = None if reuse is None else stack.enter_context(Ledger.open(reuse))
            for unit, counts in ledger.unfinished_units():
                if other is None or not (other.has(unit, counts) and other.has_stream(unit.input_id, unit.stream)):
                    units[unit] = counts
    for unit in recount(model, dataset, ledger, units, report):
        raise ForeignLedger(
            f"{ledger.path} was not written by this model: votes {unit.start} to {unit.stop} of the "
            f"{unit.stream.stage} at sigma {unit.stream.sigma:g} on input {unit.input_id} came out differently. "
            "The code, a library or the hardware has changed; give another file name to start afresh"
        )


def recount(
    model: Model, dataset: Dataset, ledger: Ledger, units: Recorded, report: Report | None = None
) -> list[Unit]:
    """Draw some units of a ledger again; those that came out differently."""
    position = {row.id: row.position for row in ledger.inputs()}
    for name in {unit.input_id for unit in units}:
        if name not in position:
            raise LedgerError(f"{ledger.path}: input {name} has votes but is not among the inputs; `dualrs verify` it")
        if not (0 <= position[name] < len(dataset.ids) and dataset.ids[position[name]] == name):
            raise ForeignLedger(f"{ledger.path}: {dataset.name} has no input {name} at {position[name]}: other data")
    again = _Recount(units, lambda name: dataset.image(position[name]), report)
    model.engine.counter([model.engine], again, noise_of(ledger.header))
    return again.different


class _Recount:
    """The engine's `Work` of counting some units once more."""

    def __init__(self, units: Recorded, image: Callable[[str], Pixels], report: Report | None) -> None:
        self.different: list[Unit] = []
        self.pixels = lru_cache(maxsize=64)(image)
        self._recorded, self._report = units, report
        self._supply: Iterator[Unit] = iter(units)
        self._progress = Progress(to_check=sum(unit.votes for unit in units))

    def more(self) -> Sequence[Request] | None:
        unit = next(self._supply, None)
        return None if unit is None else [Request(unit)]

    def deliver(self, request: Request, counts: Counts, seconds: float) -> Sequence[Request]:
        if not np.array_equal(counts, self._recorded[request.unit]):
            self.different.append(request.unit)
        self._progress.checked += request.unit.votes
        return ()

    def batch_done(self) -> None:
        if self._report is not None:
            self._report(self._progress)
