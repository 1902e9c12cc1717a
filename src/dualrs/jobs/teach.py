"""Votes to train with: the labels of a router, and the sigmas that it assigns."""

from collections.abc import Sequence
from pathlib import Path

from dualrs.certificates import check_predict
from dualrs.data.dataset import Dataset
from dualrs.errors import BadData, TooFewVotes
from dualrs.jobs.model import Model
from dualrs.jobs.opening import Asked, earlier_header, header_of, open_ledger, settled_seed, wanted_inputs
from dualrs.jobs.recount import noise_of
from dualrs.jobs.reuse import reusable, take_over
from dualrs.sampling.collect import Report, collect
from dualrs.schemes import Assigned, Labels, Lesson
from dualrs.storage.lease import Lease
from dualrs.storage.ledger import Ledger
from dualrs.theory.budget import ErrorBudget, smallest_n
from dualrs.votes import SamplingPlan


def label_dataset(
    model: Model,
    dataset: Dataset,
    path: Path,
    *,
    n: int,
    alpha: float,
    seed: int | None = None,
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
    with Lease(path) as lease:
        earlier = earlier_header(path, reuse)
        asked = Asked(Labels.name, alpha, plan, settled_seed(seed, [earlier]), indices, command)
        header = header_of(model, dataset, asked, earlier)
        streams = [] if reuse is None else reusable(model, dataset, path, header, indices, reuse)
        with open_ledger(model, dataset, lease, header, indices, reuse=reuse, report=report) as ledger:
            taken = 0 if reuse is None else take_over(ledger, reuse, streams)
            _collect_all(model, dataset, ledger, indices, report)
    return taken


def assign_dataset(
    model: Model,
    dataset: Dataset,
    path: Path,
    *,
    n: int,
    alpha: float,
    seed: int | None = None,
    indices: Sequence[int],
    command: str = "",
    report: Report | None = None,
) -> None:
    """Collect the votes of the router at sigma_e on the inputs at ``indices``; resumed like `certify_dataset`.

    `dualrs.training.assigned` reads the sigma of each input from them. Labels are not needed.
    """
    plan = SamplingPlan(0, n)
    check_predict(plan, alpha, stages=1)
    with Lease(path) as lease:
        earlier = earlier_header(path)
        asked = Asked(Assigned.name, alpha, plan, settled_seed(seed, [earlier]), indices, command)
        header = header_of(model, dataset, asked, earlier)
        with open_ledger(model, dataset, lease, header, indices, report=report) as ledger:
            _collect_all(model, dataset, ledger, indices, report)


def _collect_all(
    model: Model,
    dataset: Dataset,
    ledger: Ledger,
    indices: Sequence[int],
    report: Report | None,
) -> None:
    """Collect for a job whose product is the votes themselves."""
    header = ledger.header
    assert isinstance(header.scheme, Lesson), "such a run has no rule"
    inputs, done = wanted_inputs(dataset, indices, set(ledger.complete()))
    collect(
        model.engine, inputs, header.scheme.wanted(header.plan), header.plan, noise_of(header),
        finish=lambda input_id, tally, seconds: None, store=ledger, report=report, done=done,
    )  # fmt: skip
