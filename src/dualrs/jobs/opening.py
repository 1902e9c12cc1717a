"""How a job begins: what its run is, the ledger of this very run, and the inputs that are left."""

import datetime
import platform
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import islice
from pathlib import Path

from dualrs.data.classes import class_names, demand_fit, numbered_as
from dualrs.data.dataset import Dataset
from dualrs.data.images import Pixels
from dualrs.errors import BadModel, BadSetting, NonFiniteLogits
from dualrs.jobs.model import Model
from dualrs.jobs.recount import model_name
from dualrs.policy import Target
from dualrs.sampling.auxiliary import RANDOMNESS
from dualrs.sampling.collect import Input
from dualrs.sampling.noise import fresh_seed
from dualrs.schemes import NEEDED, POLICY
from dualrs.storage.header import Header
from dualrs.storage.ledger import Ledger, demand_current
from dualrs.votes import SamplingPlan, Stage

_TRIED = 3  # inputs, before networks that fail on every one of them are refused


@dataclass(frozen=True)
class Asked:
    """What a job is asked for, besides its model and its data; no rule where its votes are to train with."""

    rule: str
    alpha: float
    plan: SamplingPlan
    seed: int
    indices: Sequence[int]
    command: str = ""
    votes: str = NEEDED
    target: Target | None = None
    tuned: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not len(self.indices):
            raise BadSetting("there are no inputs to sample")


def earlier_header(path: Path, reuse: Path | None = None) -> Header | None:
    """The header of the run that a job goes on with or, if it is new, reuses; refuses one of an older format."""
    earlier, source = Ledger.header_of(path), path
    if earlier is None and reuse is not None:
        with Ledger.open(reuse) as ledger:
            ledger.trust_header()
            earlier, source = ledger.header, reuse
    if earlier is not None:
        demand_current(earlier, source)
    return earlier


def settled_seed(seed: int | None, earlier: Iterable[Header | None]) -> int:
    """The seed that was given, else that of a run which is gone on with, else one that nobody knows."""
    if seed is not None:
        return seed
    return next((header.seed for header in earlier if header is not None), fresh_seed())


def header_of(model: Model, dataset: Dataset, asked: Asked, earlier: Header | None) -> Header:
    """What this run is; the shape of its batches, and whether stages share noise, are those of an earlier part."""
    if earlier is not None:
        model.engine.keep_shape(earlier.batch_size)
        model.engine.keep_noise(earlier.noise)
    tried = _preflight(model, dataset, asked.indices)
    adaptive = asked.target is not None
    named = names_of_model(model) or class_names(dataset)
    if model.scheme.classes:
        demand_fit(dataset, model.scheme.classes)
    return Header(
        rule=asked.rule or model.scheme.name,
        alpha=asked.alpha,
        seed=asked.seed,
        n0=asked.plan.n0,
        n=asked.plan.n,
        scheme=model.scheme,
        image_shape=tried.shape,
        batch_size=model.engine.batch_size,
        dtype=model.engine.dtype,
        device=model.engine.device.type,
        models=fingerprints(model),
        identity=answers_of(model, dataset, tried),
        dataset=dataset.name,
        dataset_fingerprint=dataset.fingerprint,
        noise=model.engine.noise,
        randomness=RANDOMNESS if any(network.takes_randomness for network in model.models.values()) else "",
        votes=asked.votes,
        looks=asked.plan.looks if adaptive else (),
        target=str(asked.target) if adaptive else "",
        policy=POLICY if adaptive else "",
        versions={"python": platform.python_version()} | {p: version(p) for p in ("dualrs", "torch", "numpy", "scipy")},
        command=asked.command,
        tuned=asked.tuned,
        class_names=named if len(named) == model.scheme.classes else (),
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )


def level_batches(
    models: Sequence[Model], earlier: Sequence[Header | None], dataset: Dataset, indices: Sequence[int]
) -> None:
    """Have models that vote together do so in batches of one shape, those of them that were not asked for another.

    That is the shape of a run that is gone on with. If all are new, it is the smallest of those that suit one of them.
    """
    if len(models) < 2:
        return
    begun = {header.batch_size for header in earlier if header is not None}
    if not begun:
        for model in models:
            _preflight(model, dataset, indices)
    size = min(begun or {model.engine.batch_size for model in models})
    for model in models:
        if model.engine.asked_size is None and (begun or model.engine.batch_size != size):
            model.engine.keep_shape(size)


def numbered_for(model: Model, dataset: Dataset) -> Dataset:
    """The dataset with its labels numbered as the networks of a model number their classes."""
    return numbered_as(dataset, names_of_model(model))


def names_of_model(model: Model) -> tuple[str, ...]:
    """What the networks of a model call their classes; empty if none says. Experts have to agree."""
    named = {network.classes for (stage, _), network in model.models.items() if stage is Stage.CLASS} - {()}
    if len(named) > 1:
        first, second, *_ = sorted(named)
        place = next((k for k, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]), 0)
        raise BadModel(
            f"the networks number their classes differently: class {place} is {first[place]} for one and "
            f"{second[place]} for another; take networks that were trained with the same numbers"
        )
    return named.pop() if named else ()


def _preflight(model: Model, dataset: Dataset, indices: Sequence[int]) -> Pixels:
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


def fingerprints(model: Model) -> dict[str, str]:
    """The fingerprint of each network, by the name that a header gives it."""
    once = {network: network.fingerprint for network in set(model.models.values())}  # experts may share one network
    return {model_name(stage, sigma): once[network] for (stage, sigma), network in model.models.items()}


def answers_of(model: Model, dataset: Dataset, tried: Pixels) -> dict[str, str]:
    """What the networks answer: on the first image of the dataset, which all shards of a run have in common."""
    first = dataset.image(0)
    if first.shape != tried.shape:  # a folder of images of several sizes
        first = tried * 0
    return {model_name(stage, sigma): said for (stage, sigma), said in model.engine.identify(first).items()}


def name_inputs(ledger: Ledger, dataset: Dataset, indices: Sequence[int]) -> None:
    """Put the inputs of a run into its ledger."""
    labels = dataset.labels
    ledger.add_inputs((dataset.ids[i], i, None if labels is None else labels[i]) for i in dict.fromkeys(indices))
    ledger.commit()


def wanted_inputs(dataset: Dataset, indices: Sequence[int], *done: Collection[str]) -> tuple[Iterator[Input], int]:
    """The inputs that not every one of some runs has done, in order, and how many each has done, summed."""
    wanted = [dataset.ids[i] for i in dict.fromkeys(indices)]
    left = [i for i in dict.fromkeys(indices) if not all(dataset.ids[i] in ids for ids in done)]
    finished = sum(name in ids for name in wanted for ids in done)
    return (Input(dataset.ids[i], dataset.image(i)) for i in left), finished
