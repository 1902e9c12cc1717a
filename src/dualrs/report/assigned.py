"""Assigned: under which sigma each training input is learnt, as the smoothed router says. Section 5.2.2 of the paper.

Enters: a ledger of votes that `dualrs assign` collected. Leaves: sigma_c(x), and whether the votes decided it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualrs.certificates import ABSTAIN, predict
from dualrs.errors import BadData
from dualrs.storage.header import ASSIGNED
from dualrs.storage.ledger import Ledger


@dataclass(frozen=True)
class Assigned:
    """The sigma of each input, with its id and place in the dataset; ``decided`` is False where PREDICT abstains."""

    ids: tuple[str, ...]
    index: NDArray[np.int64]
    sigmas: tuple[float, ...]
    sigma_c: NDArray[np.float64]
    decided: NDArray[np.bool_]


def read_assigned(ledger: Ledger, alpha: float | None = None) -> Assigned:
    """The sigmas of all inputs whose votes are complete.

    PREDICT of Cohen et al. on the router alone, hence one test at the whole alpha. Where it abstains, the input takes
    the sigma that most votes name all the same, the smaller one in a tie: training needs a sigma and no guarantee.
    """
    header = ledger.header
    if header.rule != ASSIGNED:
        raise BadData(f"{ledger.path} holds {header.contents}, not assigned sigmas; run `dualrs assign`")
    with ledger.snapshot():
        ids = ledger.complete()
        position = {row.id: row.position for row in ledger.inputs()}
        votes = ledger.router_votes(ids)
    rising = np.argsort(header.sigmas)  # argmax takes the first of equals
    return Assigned(
        ids=tuple(ids),
        index=np.array([position[i] for i in ids], dtype=np.int64),
        sigmas=header.sigmas,
        sigma_c=np.asarray(header.sigmas)[rising][votes.estimation[:, rising].argmax(axis=1)],
        decided=predict(votes, header.alpha if alpha is None else alpha).prediction != ABSTAIN,
    )
