"""Results: one row per input, whether it comes from a ledger or from a peer's file; what exports and report read.

Enters: a ledger, or columns. Leaves: columns of equal length. Labels and predictions stand side by side here, but
they are compared in `correct` only, after certification is over.
"""

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualrs.certificates import ABSTAIN, Certificates, Outcome
from dualrs.errors import BadTable
from dualrs.schemes import Scheme, View
from dualrs.storage.ledger import Ledger

UNLABELLED = -2  # the label of an input whose class is not known; not -1, so that an abstention never equals it


@dataclass(frozen=True, eq=False)
class Results:
    """Columns over inputs.

    ``index`` is the position in the dataset; ``label`` is `UNLABELLED` where not known; ``prediction`` is
    `ABSTAIN` (-1) and ``radius`` 0 where nothing is claimed; ``seconds`` is NaN where not known; ``sigma_c`` is
    None where the source does not tell. ``plain`` marks claims about the input alone, which have radius 0 (rule
    `aces`); None where there are none.
    """

    ids: NDArray[np.str_]
    index: NDArray[np.int64]
    label: NDArray[np.int64]
    prediction: NDArray[np.int64]
    radius: NDArray[np.float64]
    seconds: NDArray[np.float64]
    sigma_c: NDArray[np.float64] | None = None
    plain: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        shapes = {getattr(self, f.name).shape for f in fields(self) if getattr(self, f.name) is not None}
        if shapes != {(len(self.ids),)}:
            raise BadTable(f"the columns of results must be of one length, got shapes {sorted(shapes)}")

    def __len__(self) -> int:
        return len(self.ids)

    def rows(self, order: NDArray[np.int64]) -> "Results":
        """The same rows in another order, or some of them."""
        held: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        taken: dict[str, Any] = {name: None if column is None else column[order] for name, column in held.items()}
        return Results(**taken)

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Which inputs have a label."""
        return np.asarray(self.label != UNLABELLED)

    @property
    def abstained(self) -> NDArray[np.bool_]:
        """About which inputs nothing is claimed."""
        return np.asarray(self.prediction == ABSTAIN)

    @property
    def correct(self) -> NDArray[np.bool_]:
        """Where a class is claimed and is the label."""
        return np.asarray((self.prediction == self.label) & self.labelled & ~self.abstained)


@dataclass(frozen=True, eq=False)
class Sampled:
    """The finished inputs of a ledger in the order of positions, and the votes on them; columns as in `Results`."""

    ids: NDArray[np.str_]
    index: NDArray[np.int64]
    label: NDArray[np.int64]
    seconds: NDArray[np.float64]
    votes: Any  # as the scheme gathers them
    scheme: Scheme[Any]

    @cached_property
    def view(self) -> View:
        """What all kinds of votes have in common."""
        return self.scheme.view(self.votes)

    @property
    def complete(self) -> NDArray[np.bool_]:
        """On which inputs every expert voted, selection and estimation; shape (inputs,)."""
        asked = [(e.selection.sum(axis=1) > 0) & (e.sampled > 0) for e in self.view.experts]
        return np.asarray(np.all(asked, axis=0))

    def results(self, certificates: Certificates) -> Results:
        """What certificates from these votes say, row by row."""
        return Results(
            ids=self.ids,
            index=self.index,
            label=self.label,
            prediction=certificates.prediction,
            radius=certificates.radius,
            seconds=self.seconds,
            sigma_c=certificates.sigma_c,
            plain=certificates.outcome == Outcome.PREDICTED.value,
        )


def read_sampled(ledger: Ledger) -> Sampled:
    """The votes on all finished inputs of a run."""
    with ledger.snapshot():
        seconds = {name: kept.seconds for name, kept in ledger.certificates().items()}
        finished = ledger.finished()
        inputs = [row for row in ledger.inputs() if row.id in finished]
        votes = ledger.votes([row.id for row in inputs])
    return Sampled(
        ids=np.array([row.id for row in inputs], dtype=np.str_),
        index=np.array([row.position for row in inputs], dtype=np.int64),
        label=np.array([UNLABELLED if row.label is None else row.label for row in inputs], dtype=np.int64),
        seconds=np.array([seconds.get(row.id, math.nan) for row in inputs], dtype=np.float64),
        votes=votes,
        scheme=ledger.header.scheme,
    )


def derive(ledger: Ledger, rule: str | None = None, alpha: float | None = None) -> tuple[Results, Certificates]:
    """Derive the certificates of all concluded inputs from their votes, in the order of their positions.

    ``rule`` and ``alpha`` are the run's own unless given. Another one is for looking at: choosing a rule or alpha
    after seeing the votes is not covered by its guarantee.
    """
    demand_certificates(ledger)
    chosen = ledger.header.own_rule if rule is None else ledger.header.scheme.rule(rule)
    level = ledger.header.alpha if alpha is None else alpha
    chosen.check(ledger.header.plan, level)
    sampled = read_sampled(ledger)
    certificates = chosen.certify(sampled.votes, level)
    return sampled.results(certificates), certificates


def demand_certificates(ledger: Ledger) -> None:
    """Refuse a ledger of a run that ends in votes to train with."""
    if not ledger.header.certifies:
        raise BadTable(f"{ledger.path} holds {ledger.header.contents}, and no certificates; run `dualrs certify`")
