"""Jobs: certify, label or assign a dataset into a ledger, resuming where an earlier run was cut off.

Enters: a smoothed model, a dataset, a file name. Leaves: the ledger, complete for the inputs asked for.
"""

import datetime
import platform
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import numpy as np

from dualrs.certificates import Rule, check_predict
from dualrs.collect import Finish, Input, Report, collect
from dualrs.data.dataset import Dataset
from dualrs.data.images import Pixels
from dualrs.errors import BadData, BadSetting, ForeignLedger, TooFewVotes
from dualrs.policy import Policy, assign_policy, certify_policy, complete_policy, label_policy
from dualrs.sampling.noise import NOISE
from dualrs.smoothed import Pool, RouterAlone, SmoothedModel
from dualrs.storage.header import ALL, ASSIGNED, LABELS, NEEDED, Header
from dualrs.storage.ledger import Ledger
from dualrs.theory.budget import ErrorBudget, smallest_n
from dualrs.votes import Counts, Part, SamplingPlan, Stage, Stream, Tally, Unit

# Of two ledgers of labels: what decides no vote of an expert that both have. Pixels and ids are in the fingerprint of
# the dataset, so its name may differ.
_FREE_TO_DIFFER = ("alpha", "sigmas", "models", "dataset")


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
    all_votes: bool = False,
    command: str = "",
    report: Report | None = None,
) -> None:
    """Certify the inputs at ``indices`` into the ledger at ``path``; what is there already is kept and not redone.

    ``all_votes`` asks every candidate at its sigma, not only those that the rule can use, so that every other way to
    certify can be derived from the ledger. With one sigma there is nothing more to ask.

    Votes are committed batch by batch. The votes of a run that was killed at any moment, and resumed, are those of
    an unbroken one.
    """
    rule.check(plan, alpha)
    votes_asked = ALL if all_votes and model.sigma_e is not None else NEEDED
    header = _header(model, dataset, path, rule.name, alpha, plan, seed, indices, command, votes=votes_asked)
    with _open(model, dataset, path, header, indices) as ledger:

        def finish(input_id: str, tally: Tally, seconds: float) -> None:
            votes = header.streams.gather([tally], plan)
            ledger.conclude(input_id, rule.certify(votes, alpha)[0], seconds)

        complete = header.votes == ALL
        policy = complete_policy(header.streams) if complete else certify_policy(header.streams, plan, rule, alpha)
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
    reuse: Path | None = None,
    command: str = "",
    report: Report | None = None,
) -> int:
    """Collect the votes of every expert at its sigma on the inputs at ``indices``; resumed like `certify_dataset`.

    ``reuse`` is an earlier ledger of labels: the votes of every expert that it holds at the same sigma are copied and
    not drawn again. Returns how many votes were copied.
    """
    if dataset.labels is None:
        raise BadData(
            f"the dataset {dataset.name} has no labels, and a router learns from the radius of the true class"
        )
    plan = SamplingPlan(0, n)
    needed = smallest_n(ErrorBudget(alpha).alpha)
    if n < needed:
        raise TooFewVotes(f"n = {n} gives no radius at alpha = {alpha:g}, even if all votes agree; take n >= {needed}")
    header = _header(model, dataset, path, LABELS, alpha, plan, seed, indices, command, reuse)
    streams = [] if reuse is None else _reusable(model, dataset, path, header, indices, reuse)
    with _open(model, dataset, path, header, indices) as ledger:
        taken = 0 if reuse is None else _take_over(ledger, reuse, streams)
        _collect_all(model, dataset, ledger, indices, label_policy(header.streams), report)
    return taken


def assign_dataset(
    model: RouterAlone,
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
    """Collect the votes of the router at sigma_e on the inputs at ``indices``; resumed like `certify_dataset`.

    `dualrs.report.assigned` reads the sigma of each input from them. Labels are not needed.
    """
    plan = SamplingPlan(0, n)
    check_predict(plan, alpha, stages=1)
    header = _header(model, dataset, path, ASSIGNED, alpha, plan, seed, indices, command)
    with _open(model, dataset, path, header, indices) as ledger:
        _collect_all(model, dataset, ledger, indices, assign_policy(header.streams), report)


def _header(
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
) -> Header:
    """What this run is; the shape of its batches is that of the ledger it goes on with or, if new, reuses."""
    if not len(indices):
        raise BadSetting("there are no inputs to sample")
    earlier = Ledger.header_of(path)
    if earlier is None and reuse is not None:
        earlier = _recorded(reuse)
    if earlier is not None:
        model.engine.keep_shape(earlier.batch_size)
    first = dataset.image(indices[0])
    model.engine.prepare(first)
    return Header(
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
        votes=votes,
        versions={"python": platform.python_version()} | {p: version(p) for p in ("dualrs", "torch", "numpy", "scipy")},
        command=command,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )


@contextmanager
def _open(
    model: SmoothedModel, dataset: Dataset, path: Path, header: Header, indices: Sequence[int]
) -> Iterator[Ledger]:
    """The ledger of this very run, with its inputs, after a look at whether the model still votes as it did."""
    with Ledger.create_or_resume(path, header) as ledger:
        _shake_hands(model, dataset, ledger, header.streams.answers)
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


def _collect_all(
    model: SmoothedModel,
    dataset: Dataset,
    ledger: Ledger,
    indices: Sequence[int],
    policy: Policy,
    report: Report | None,
) -> None:
    """Collect for a job whose product is the votes themselves."""
    done = set(ledger.complete())
    _collect(model, dataset, ledger, indices, done, policy, lambda input_id, tally, seconds: None, report)


def _recorded(path: Path) -> Header:
    """The header of a ledger that is only read."""
    with Ledger.open(path) as ledger:
        ledger.trust_header()
        return ledger.header


def _reusable(
    model: Pool, dataset: Dataset, path: Path, header: Header, indices: Sequence[int], reuse: Path
) -> list[Stream]:
    """The streams of an earlier ledger of labels that hold the votes this run would draw; refuses one without any.

    Nothing is written yet: a refusal leaves no ledger behind.
    """
    if reuse.resolve() == path.resolve():
        raise BadSetting(f"{reuse} cannot be reused for itself; the same command goes on with it anyway")
    with Ledger.open(reuse) as old:
        old.trust_header()
        if old.header.rule != LABELS:
            raise ForeignLedger(f"{reuse} holds {old.header.contents}, not labels; only labels can be reused")
        if differences := old.header.differences(header, apart_from=_FREE_TO_DIFFER):
            raise ForeignLedger(
                f"no votes of {reuse} can be reused: {'; '.join(differences)}. Label with the same settings, or afresh"
            )
        asked = {dataset.ids[i] for i in indices}
        streams, reasons = [], []
        for sigma in header.sigmas:
            stream, name = Stream(Stage.CLASS, Part.ESTIMATION, sigma), _model_name(Stage.CLASS, sigma)
            if name not in old.header.models:
                reasons.append(f"it has no votes at sigma {sigma:g}")
            elif old.header.models[name] != header.models[name]:
                reasons.append(f"at sigma {sigma:g} another network voted")
            elif not asked & old.sampled(stream):
                reasons.append(f"at sigma {sigma:g} it has no votes on the inputs asked for")
            else:
                streams.append(stream)
        if not streams:
            raise ForeignLedger(f"no votes of {reuse} can be reused: {'; '.join(reasons)}. Label afresh")
        _shake_hands(model, dataset, old, streams)
        return streams


def _take_over(ledger: Ledger, reuse: Path, streams: Collection[Stream]) -> int:
    with Ledger.open(reuse) as old:
        return ledger.take_over(old, streams)


def _fingerprints(model: SmoothedModel) -> dict[str, str]:
    once = {network: network.fingerprint for network in set(model.models.values())}  # experts may share one network
    return {_model_name(stage, sigma): once[network] for (stage, sigma), network in model.models.items()}


def _model_name(stage: Stage, sigma: float) -> str:
    """What a header calls the network at a stage and sigma."""
    return "router" if stage is Stage.ROUTER else f"class {sigma!r}"


def _shake_hands(model: SmoothedModel, dataset: Dataset, ledger: Ledger, streams: Iterable[Stream]) -> None:
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
