"""Accuracy: the place where labels meet certificates.

Enters: results, of a ledger or of a peer's file. Leaves: fractions of inputs, and one average.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from dualrs.errors import BadTable
from dualrs.storage.results import Results
from dualrs.theory.radius import RADII


def certified_accuracy(results: Results, radii: Sequence[float] = RADII, strict: bool = False) -> NDArray[np.float64]:
    """Fraction of inputs with prediction == label, R > 0 and R >= r (``strict``: R > r), for each r; shape (radii,).

    Every input counts, abstentions as failures. At r = 0 this is the accuracy of the certified prediction; a claim
    about the input alone (`Results.plain`) counts there and nowhere else.
    """
    _demand_labels(results)
    return np.asarray(certified(results, radii, strict).mean(axis=1))


def certified(results: Results, radii: Sequence[float], strict: bool = False) -> NDArray[np.bool_]:
    """Which inputs `certified_accuracy` counts at each radius; shape (radii, inputs)."""
    claimed = results.radius > 0 if results.plain is None else (results.radius > 0) | results.plain
    reach = np.where(results.correct & claimed, results.radius, -np.inf)
    wanted = np.asarray(radii, dtype=np.float64)[:, None]
    return np.asarray(reach > wanted if strict else reach >= wanted)


def shown_radii(accuracies: Iterable[Sequence[float]], radii: Sequence[float]) -> int:
    """How many radii a table shows: up to one at which nobody has anything left."""
    reached = [place for accuracy in accuracies for place, share in enumerate(accuracy) if share > 0]
    return min(max(reached, default=0) + 2, len(radii))


def abstention(results: Results) -> float:
    """Fraction of inputs about which nothing is claimed; needs no labels."""
    _demand_rows(results)
    return float(results.abstained.mean())


def average_certified_radius(results: Results) -> float:
    """ACR: the mean over all inputs of R where the prediction is the label, and of 0 elsewhere.

    Easy inputs dominate it: a radius grows without bound as votes become unanimous, so a model can gain ACR on
    inputs that were safe anyway while it loses hard ones. Report certified accuracy beside it.
    """
    _demand_labels(results)
    return float(np.where(results.correct, np.maximum(results.radius, 0.0), 0.0).mean())


def _demand_rows(results: Results) -> None:
    if not len(results):
        raise BadTable("there are no results: no input has a certificate yet")


def _demand_labels(results: Results) -> None:
    _demand_rows(results)
    missing = results.ids[~results.labelled]
    if len(missing):
        raise BadTable(
            f"{len(missing)} of {len(results)} inputs have no label (the first is {missing[0]}), "
            "and accuracy is undefined without labels; give labelled data"
        )
