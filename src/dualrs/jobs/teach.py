"""Votes to train with: the labels of a router, and the sigmas that it assigns."""

from pathlib import Path
from typing import Unpack

from dualrs.data.dataset import Dataset
from dualrs.errors import BadData, TooFewVotes
from dualrs.jobs.certify import Certification, Run, certify_together
from dualrs.jobs.model import Model
from dualrs.theory.budget import ErrorBudget, smallest_n
from dualrs.votes import SamplingPlan


def label_dataset(
    model: Model, dataset: Dataset, path: Path, *, n: int, alpha: float, reuse: Path | None = None, **run: Unpack[Run]
) -> int:
    """Collect the votes of every expert at its sigma on the inputs at ``indices``; resumed like `certify_dataset`.

    ``reuse`` is an earlier ledger of labels: the votes of every expert that it holds at the same sigma are copied and
    not drawn again. Returns how many votes were copied.
    """
    if dataset.labels is None:
        raise BadData(
            f"the dataset {dataset.name} has no labels, and a router learns from the radius of the true class"
        )
    check_labels(n, alpha)
    plan = SamplingPlan(0, n)
    return certify_together([Certification(model, None, path, reuse)], dataset, plan=plan, alpha=alpha, **run)


def check_labels(n: int, alpha: float) -> None:
    """Refuse so few votes that no label could have a radius."""
    needed = smallest_n(ErrorBudget(alpha).alpha)
    if n < needed:
        raise TooFewVotes(f"n = {n} gives no radius at alpha = {alpha:g}, even if all votes agree; take n >= {needed}")


def assign_dataset(model: Model, dataset: Dataset, path: Path, *, n: int, alpha: float, **run: Unpack[Run]) -> None:
    """Collect the votes of the router at sigma_e on the inputs at ``indices``; resumed like `certify_dataset`.

    `dualrs.training.assigned` reads the sigma of each input from them. Labels are not needed. Any n will do: training
    takes undecided inputs too.
    """
    plan, alpha = SamplingPlan(0, n), ErrorBudget(alpha).alpha
    certify_together([Certification(model, None, path)], dataset, plan=plan, alpha=alpha, **run)
