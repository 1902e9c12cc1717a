"""How a job begins: what its run is, the ledger of this very run, and the inputs that are left."""

import datetime
import platform
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import islice
from pathlib import Path

import numpy as np

from dualrs.collect import Input
from dualrs.data.dataset import Dataset
from dualrs.data.images import Pixels
from dualrs.errors import BadSetting, ForeignLedger, NonFiniteLogits
from dualrs.policy import POLICY, Target
from dualrs.smoothed import SmoothedModel
from dualrs.storage.header import NEEDED, Header
from dualrs.storage.ledger import Ledger
from dualrs.votes import Counts, SamplingPlan, Stage, Stream, Unit

_TRIED = 3  # inputs, before networks that fail on every one of them are refused


def header_of(
    model: SmoothedModel,
    dataset: Dataset,
    path: Path,
    rule: str,
    alpha: float,
    plan: SamplingPlan,
    seed: int,
    indices: Sequence[int],
    command: str,
    reuse: Path | None = None,
    votes: str = NEEDED,
    target: Target | None = None,
) -> Header:
    """What this run is; the shape of its batches is that of the ledger it goes on with or, if new, reuses."""
    if not len(indices):
        raise BadSetting("there are no inputs to sample")
    earlier = Ledger.header_of(path)
    if earlier is None and reuse is not None:
        earlier = recorded(reuse)
    if earlier is not None:
        model.engine.keep_shape(earlier.batch_size)
        model.engine.keep_noise(earlier.noise)
    tried = _preflight(model, dataset, indices)
    return Header(
        rule=rule,
        alpha=alpha,
        seed=seed,
        n0=plan.n0,
        n=plan.n,
        sigmas=model.sigmas,
        sigma_e=model.sigma_e,
        classes=model.streams.classes,
        image_shape=tried.shape,
        batch_size=model.engine.batch_size,
        dtype=model.engine.dtype,
        device=model.engine.device.type,
        models=_fingerprints(model),
        dataset=dataset.name,
        dataset_fingerprint=dataset.fingerprint,
        noise=model.engine.noise,
        votes=votes,
        looks=plan.looks if target is not None else (),
        target="" if target is None else str(target),
        policy="" if target is None else POLICY,
        thresholds=model.thresholds,
        versions={"python": platform.python_version()} | {p: version(p) for p in ("dualrs", "torch", "numpy", "scipy")},
        command=command,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )


def _preflight(model: SmoothedModel, dataset: Dataset, indices: Sequence[int]) -> Pixels:
    """Have the networks tried on the first input, or on the next if that alone is to blame; the image that served.

    An input without finite logits says nothing against the network, and what becomes of it is settled when its turn
    comes: workers leave it out, one process stops there and names it.
    """
    failures: dict[str, NonFiniteLogits] = {}
    for index in islice(dict.fromkeys(indices), _TRIED):
        pixels = dataset.image(index)
        try:
            model.engine.prepare(pixels)
        except NonFiniteLogits as error:
            failures[dataset.ids[index]] = error
        else:
            return pixels
    first = next(iter(failures.values()))
    raise NonFiniteLogits(
        f"{first}, of every input tried ({', '.join(failures)}); check the network's weights and precision"
    ) from first


@contextmanager
def open_ledger(
    model: SmoothedModel, dataset: Dataset, path: Path, header: Header, indices: Sequence[int]
) -> Iterator[Ledger]:
    """The ledger of this very run, with its inputs, after a look at whether the model still votes as it did."""
    with Ledger.create_or_resume(path, header) as ledger:
        shake_hands(model, dataset, ledger, header.streams.answers)
        labels = dataset.labels
        ledger.add_inputs((dataset.ids[i], i, None if labels is None else labels[i]) for i in dict.fromkeys(indices))
        ledger.commit()
        yield ledger


def recorded(path: Path) -> Header:
    """The header of a ledger that is only read."""
    with Ledger.open(path) as ledger:
        ledger.trust_header()
        return ledger.header


def _fingerprints(model: SmoothedModel) -> dict[str, str]:
    once = {network: network.fingerprint for network in set(model.models.values())}  # experts may share one network
    return {model_name(stage, sigma): once[network] for (stage, sigma), network in model.models.items()}


def model_name(stage: Stage, sigma: float) -> str:
    """What a header calls the network at a stage and sigma."""
    return "router" if stage is Stage.ROUTER else f"class {sigma!r}"


def shake_hands(model: SmoothedModel, dataset: Dataset, ledger: Ledger, streams: Iterable[Stream]) -> None:
    """Draw one recorded unit of some streams again: what a header cannot tell (code, kernels), votes do."""
    units = {found[0]: found[1] for stream in streams if (found := ledger.first_unit(stream))}
    position = {row.id: row.position for row in ledger.inputs()}
    images = {u.input_id: dataset.image(position[u.input_id]) for u in units}
    again = _Recount(iter(units), images)
    model.engine.run(again, ledger.header.seed)
    for unit, counts in units.items():
        if not np.array_equal(again.counts[unit], counts):
            raise ForeignLedger(
                f"{ledger.path} was not written by this model: votes {unit.start} to {unit.stop} of the "
                f"{unit.stream.stage} at sigma {unit.stream.sigma:g} on input {unit.input_id} came out differently. "
                "The code, a library or the hardware has changed; give another file name to start afresh"
            )


@dataclass
class _Recount:
    """The engine's `Work` of counting some units once more."""

    units: Iterator[Unit]
    images: Mapping[str, Pixels]
    counts: dict[Unit, Counts] = field(default_factory=dict)

    def more(self) -> Sequence[Unit] | None:
        unit = next(self.units, None)
        return None if unit is None else [unit]

    def pixels(self, input_id: str) -> Pixels:
        return self.images[input_id]

    def deliver(self, unit: Unit, counts: Counts, seconds: float) -> Sequence[Unit]:
        self.counts[unit] = counts
        return ()

    def batch_done(self) -> None:
        pass


def wanted_inputs(dataset: Dataset, indices: Sequence[int], *done: Collection[str]) -> tuple[Iterator[Input], int]:
    """The inputs that not every one of some runs has done, in order, and how many each has done, summed."""
    wanted = [dataset.ids[i] for i in dict.fromkeys(indices)]
    left = [i for i in dict.fromkeys(indices) if not all(dataset.ids[i] in ids for ids in done)]
    finished = sum(name in ids for name in wanted for ids in done)
    return (Input(dataset.ids[i], dataset.image(i)) for i in left), finished
