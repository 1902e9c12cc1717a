"""Assigned: under which sigma each training input is learnt, as the smoothed router says. Section 5.2.2 of the paper.

Enters: a ledger of votes that `dualrs assign` collected. Leaves: sigma_c(x), and whether the votes decided it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualrs.errors import BadData
from dualrs.schemes import Assigned as Scheme
from dualrs.storage.exports import Table
from dualrs.storage.ledger import Ledger
from dualrs.storage.results import read_sampled


@dataclass(frozen=True)
class Assigned:
    """The sigma of each input, with its id and place in the dataset; ``decided`` is False where PREDICT abstains."""

    ids: tuple[str, ...]
    index: NDArray[np.int64]
    sigmas: tuple[float, ...]
    sigma_c: NDArray[np.float64]
    decided: NDArray[np.bool_]

    @property
    def columns(self) -> Table:
        """For a file."""
        decided = self.decided.astype(int).tolist()
        return {"id": [*self.ids], "index": self.index.tolist(), "sigma_c": self.sigma_c.tolist(), "decided": decided}


def read_assigned(ledger: Ledger, alpha: float | None = None) -> Assigned:
    """The sigmas of all inputs whose votes are complete, tested at the run's own alpha unless given."""
    header, scheme = ledger.header, ledger.header.scheme
    if not isinstance(scheme, Scheme):
        raise BadData(f"{ledger.path} holds {header.contents}, not assigned sigmas; run `dualrs assign`")
    sampled = read_sampled(ledger)
    chosen = scheme.choice(sampled.votes, header.alpha if alpha is None else alpha)
    return Assigned(tuple(sampled.ids.tolist()), sampled.index, scheme.sigmas, *chosen)
