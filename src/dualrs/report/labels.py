"""Labels: how large a radius the classifier gives each training input at each sigma. Section 5.2.1 of the paper.

Enters: a ledger of votes that `dualrs label` collected. Leaves: R_c(x, sigma_i) for the true class, zero where it does
not win.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualrs.errors import BadData
from dualrs.storage.header import LABELS
from dualrs.storage.ledger import Ledger
from dualrs.theory.bounds import lower
from dualrs.theory.budget import ErrorBudget
from dualrs.theory.radius import gaussian_radius


@dataclass(frozen=True)
class Labels:
    """Radii of the true class, (inputs, sigmas), with the id and the place in the dataset of each input."""

    ids: tuple[str, ...]
    index: NDArray[np.int64]
    sigmas: tuple[float, ...]
    radii: NDArray[np.float64]

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Inputs with a positive radius at some sigma; the others are dropped from training."""
        return np.asarray((self.radii > 0).any(axis=1))

    @property
    def best(self) -> NDArray[np.int64]:
        """The number of the sigma with the largest radius, the smallest of equals, of each kept input."""
        return np.asarray(self.radii[self.kept].argmax(axis=1))


def read_labels(ledger: Ledger, alpha: float | None = None) -> Labels:
    """The radii of all inputs whose votes are complete.

    With c of n votes for the true class, R_c = sigma * Phi^-1(L(c, n, alpha)) where the bound exceeds 1/2, else 0. At
    alpha per sigma this is an estimate to learn from and no certificate: labels are used, and sigmas compared.
    """
    header = ledger.header
    if header.rule != LABELS:
        raise BadData(f"{ledger.path} holds {header.contents}, not labels; run `dualrs label`")
    level = ErrorBudget(header.alpha if alpha is None else alpha).alpha
    with ledger.snapshot():
        ids = ledger.complete()
        rows = {row.id: row for row in ledger.inputs()}
        votes = ledger.expert_votes(ids)
    truth = np.array([rows[i].label for i in ids], dtype=np.int64)
    radii = np.zeros((len(ids), len(header.sigmas)))
    for k, expert in enumerate(votes):
        count = expert.estimation[np.arange(len(ids)), truth]
        radii[:, k] = np.maximum(gaussian_radius(expert.sigma, lower(count, header.n, level)), 0.0)
    index = np.array([rows[i].position for i in ids], dtype=np.int64)
    return Labels(tuple(ids), index, header.sigmas, radii)
