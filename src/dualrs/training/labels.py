"""Labels: how large a radius the classifier gives each training input at each sigma. Section 5.2.1 of the paper.

Enters: a ledger of votes that `dualrs label` collected. Leaves: R_c(x, sigma_i) for the true class, zero where it does
not win.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualrs.errors import BadData
from dualrs.schemes import Labels as Scheme
from dualrs.storage.exports import Cell, Table
from dualrs.storage.ledger import Ledger
from dualrs.storage.results import read_sampled


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

    @property
    def columns(self) -> Table:
        """For a file: the radius at every sigma, and the best sigma of each kept input."""
        best = np.array(self.sigmas)[self.radii.argmax(axis=1)].tolist()
        radii: Table = {f"radius_{s:g}": self.radii[:, k].tolist() for k, s in enumerate(self.sigmas)}
        known: list[Cell] = [sigma if kept else None for sigma, kept in zip(best, self.kept, strict=True)]
        return {"id": [*self.ids], "index": self.index.tolist(), **radii, "best_sigma": known}


def read_labels(ledger: Ledger, alpha: float | None = None) -> Labels:
    """The radii of all inputs whose votes are complete, at the run's own alpha unless given."""
    header, scheme = ledger.header, ledger.header.scheme
    if not isinstance(scheme, Scheme):
        raise BadData(f"{ledger.path} holds {header.contents}, not labels; run `dualrs label`")
    sampled = read_sampled(ledger)
    radii = scheme.radii(sampled.votes, sampled.label, header.alpha if alpha is None else alpha)
    return Labels(tuple(sampled.ids.tolist()), sampled.index, scheme.sigmas, radii)
