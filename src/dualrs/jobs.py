"""Jobs: certify or label a dataset into a ledger, resuming where an earlier run was cut off.

Enters: a smoothed model, a dataset, a file name. Leaves: the ledger, complete for the inputs asked for.
"""

import datetime
import platform
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import numpy as np

from dualrs.certificates import Rule
from dualrs.collect import Finish, Input, Report, collect
from dualrs.data.dataset import Dataset
from dualrs.data.images import Pixels
from dualrs.errors import BadData, BadSetting, ForeignLedger, TooFewVotes
from dualrs.policy import Policy, certify_policy, label_policy
from dualrs.sampling.noise import NOISE
from dualrs.smoothed import Pool, SmoothedModel
from dualrs.storage.header import LABELS, Header
from dualrs.storage.ledger import Ledger
from dualrs.theory.budget import smallest_n
from dualrs.votes import Counts, SamplingPlan, Stage, Tally, Unit


def certify_dataset(
    model: SmoothedModel,
    dataset: Dataset,
    path: Path,
    *,
    plan: SamplingPlan,
    alpha: float,
    rule: Rule,
    seed: int,
    indices: Sequence[int],
    command: str = "",
    report: Report | None = None,
) -> None:
    """Certify the inputs at ``indices`` into the ledger at ``path``; what is there already is kept and not redone.

    Votes are committed batch by batch. The votes of a run that was killed at any moment, and resumed, are those of
    an unbroken one.
    """
    rule.check(plan, alpha)
    with _open(model, dataset, path, rule.name, alpha, plan, seed, indices, command) as ledger:
        header = ledger.header

        def finish(input_id: str, tally: Tally, seconds: float) -> None:
            votes = header.streams.gather([tally], plan)
            ledger.conclude(input_id, rule.certify(votes, alpha)[0], seconds)

        policy = certify_policy(header.streams, plan, rule, alpha)
        _collect(model, dataset, ledger, indices, ledger.concluded(), policy, finish, report)


def label_dataset(
    model: Pool,
    dataset: Dataset,
    path: Path,
    *,
    n: int,
    alpha: float,
    seed: int,
    indices: Sequence[int],
    command: str = "",
    report: Report | None = None,
) -> None:
    """Collect the votes of every expert at its sigma on the inputs at ``indices``; resumed like `certify_dataset`."""
    if dataset.labels is None:
        raise BadData(
            f"the dataset {dataset.name} has no labels, and a router learns from the radius of the true class"
        )
    plan = SamplingPlan(0, n)
    needed = smallest_n(alpha)
    if n < needed:
        raise TooFewVotes(f"n = {n} gives no radius at alpha = {alpha:g}, even if all votes agree; take n >= {needed}")
    with _open(model, dataset, path, LABELS, alpha, plan, seed, indices, command) as ledger:
        done = set(ledger.complete(n * len(model.sigmas)))
        policy = label_policy(ledger.header.streams)
        _collect(model, dataset, ledger, indices, done, policy, lambda input_id, tally, seconds: None, report)


@contextmanager
def _open(
    model: SmoothedModel,
    dataset: Dataset,
    path: Path,
    rule: str,
    alpha: float,
    plan: SamplingPlan,
    seed: int,
    indices: Sequence[int],
    command: str,
) -> Iterator[Ledger]:
    """The ledger of this very run, with its inputs, after a look at whether the model still votes as it did."""
    if not len(indices):
        raise BadSetting("there are no inputs to sample")
    if (earlier := Ledger.header_of(path)) is not None:
        model.engine.keep_shape(earlier.batch_size)
    first = dataset.image(indices[0])
    model.engine.prepare(first)
    header = Header(
        rule=rule,
        alpha=alpha,
        seed=seed,
        n0=plan.n0,
        n=plan.n,
        sigmas=model.sigmas,
        sigma_e=model.sigma_e,
        classes=model.streams.classes,
        image_shape=first.shape,
        batch_size=model.engine.batch_size,
        dtype=model.engine.dtype,
        device=model.engine.device.type,
        models=_fingerprints(model),
        dataset=dataset.name,
        dataset_fingerprint=dataset.fingerprint,
        noise=NOISE,
        versions={"python": platform.python_version()} | {p: version(p) for p in ("dualrs", "torch", "numpy", "scipy")},
        command=command,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )
    with Ledger.create_or_resume(path, header) as ledger:
        _shake_hands(model, dataset, ledger)
        labels = dataset.labels
        ledger.add_inputs((dataset.ids[i], i, None if labels is None else labels[i]) for i in dict.fromkeys(indices))
        ledger.commit()
        yield ledger


def _collect(
    model: SmoothedModel,
    dataset: Dataset,
    ledger: Ledger,
    indices: Sequence[int],
    done: Collection[str],
    policy: Policy,
    finish: Finish,
    report: Report | None,
) -> None:
    wanted = [*dict.fromkeys(indices)]
    remaining = [i for i in wanted if dataset.ids[i] not in done]
    inputs = (Input(dataset.ids[i], dataset.image(i)) for i in remaining)
    collect(
        model.engine, inputs, policy, ledger.header.plan, ledger.header.seed,
        finish=finish, store=ledger, report=report, done=len(wanted) - len(remaining),
    )  # fmt: skip


def _fingerprints(model: SmoothedModel) -> dict[str, str]:
    once = {network: network.fingerprint for network in set(model.models.values())}  # experts may share one network
    return {
        "router" if stage is Stage.ROUTER else f"class {sigma!r}": once[network]
        for (stage, sigma), network in model.models.items()
    }


def _shake_hands(model: SmoothedModel, dataset: Dataset, ledger: Ledger) -> None:
    """Draw one recorded unit of each stream again: what a header cannot tell (code, kernels), votes do."""
    units = {found[0]: found[1] for stream in ledger.header.streams.answers if (found := ledger.first_unit(stream))}
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
