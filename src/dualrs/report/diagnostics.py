"""Diagnostics: how well the router chooses, and what holds the radii down. Figure 1 and Section 5.3 of the paper.

Enters: a ledger, and for most of them one with the votes of every candidate (`dualrs certify --all-votes`, or `dualrs
label`). Leaves: a number per input, and the distributions of those numbers. Labels are looked at, and the best of
several sigmas is taken: these are measurements, and no certificates.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dualrs.certificates import Certificates
from dualrs.certificates.selection import Indices
from dualrs.errors import BadTable, UnusableVotes
from dualrs.schemes import InputDependent, Labels
from dualrs.schemes.scheme import COHEN
from dualrs.storage.ledger import Ledger
from dualrs.storage.results import UNLABELLED, Sampled, demand_certificates, read_sampled
from dualrs.theory.bounds import Floats, lower
from dualrs.theory.budget import ErrorBudget
from dualrs.theory.radius import gaussian_radius

NONE = -1  # the best sigma of an input that no sigma certifies

SHARES = (0.99, 0.8, 0.6)  # of the votes, in the paper's table of the confidence penalty
SPLITS = ((1, 0), (1, 1), (1, 4))  # alpha : beta, likewise


@dataclass(frozen=True, eq=False)
class Ecdf:
    """Share of inputs with at most each value; the values are rising and different."""

    values: Floats
    share: Floats

    @classmethod
    def of(cls, numbers: ArrayLike) -> "Ecdf":
        """The empirical distribution function of some numbers."""
        values, counts = np.unique(np.asarray(numbers, dtype=np.float64), return_counts=True)
        if not len(values):
            raise BadTable("there is nothing to distribute: no input is finished yet")
        return cls(values, np.cumsum(counts) / counts.sum())

    def up_to(self, value: float) -> float:
        """Share of inputs with at most this value."""
        return self._before(value, "right")

    def below(self, value: float) -> float:
        """Share of inputs with less than this value."""
        return self._before(value, "left")

    def _before(self, value: float, side: Literal["left", "right"]) -> float:
        place = int(np.searchsorted(self.values, value, side=side))
        return float(self.share[place - 1]) if place else 0.0


@dataclass(frozen=True, eq=False)
class FixedRadii:
    """What each candidate alone would give each input: R_c(x, sigma), (inputs, sigmas), zero where it is wrong.

    ``chosen`` is the number of the sigma that the router selected; None where no router voted.
    """

    ids: tuple[str, ...]
    sigmas: tuple[float, ...]
    radii: Floats
    chosen: Indices | None

    @property
    def best(self) -> Indices:
        """The number of the sigma with the largest radius, the first of equals; `NONE` where no radius is positive."""
        return np.where((self.radii > 0).any(axis=1), self.radii.argmax(axis=1), NONE)

    @property
    def best_counts(self) -> Indices:
        """For how many inputs each sigma is best; shape (sigmas,)."""
        return np.bincount(self.best[self.best != NONE], minlength=len(self.sigmas))

    @property
    def regret(self) -> Floats:
        """Delta R_c = R*_c - R_c: the radius that a router which always names the best sigma would add; (inputs,).

        Zero where the choice is optimal, and also where no sigma gives a radius.
        """
        if self.chosen is None:
            raise UnusableVotes(
                "regret is about the choice of a router among sigmas: no router voted in this ledger, or one of its "
                "candidates sees no noise"
            )
        taken = np.take_along_axis(self.radii, self.chosen[:, None], axis=1)[:, 0]
        return np.asarray(self.radii.max(axis=1) - taken)


def fixed_radii(ledger: Ledger, alpha: float | None = None) -> FixedRadii:
    """The radius of every sigma on every input, each as rule `cohen` gives it at alpha (the run's own by default).

    A ledger of labels gives the radius of the true class. Without a label the class that a sigma selects counts as
    right.
    """
    sampled, level = read_sampled(ledger), ledger.header.alpha if alpha is None else alpha
    if isinstance(sampled.scheme, Labels):
        radii = sampled.scheme.radii(sampled.votes, sampled.label, level)
        return FixedRadii(tuple(sampled.ids.tolist()), sampled.scheme.sigmas, radii, None)
    demand_certificates(ledger)
    if isinstance(sampled.scheme, InputDependent):
        raise UnusableVotes(
            f"each input of {ledger.path} has votes under a sigma of its own, so that there are no sigmas to compare"
        )
    demand_fixed_n(ledger, "a comparison of sigmas")
    if missing := int((~sampled.complete).sum()):
        raise UnusableVotes(
            f"{ledger.path} lacks votes of some sigma on {missing} of {len(sampled.ids)} inputs, so the sigmas cannot "
            "be compared; collect them in another ledger with `dualrs certify --all-votes`"
        )
    return compare_sigmas(sampled, level)


def demand_fixed_n(ledger: Ledger, what: str) -> None:
    """Refuse an adaptive run for what compares radii with one another."""
    if ledger.header.looks:
        raise UnusableVotes(
            f"{ledger.path} is of an adaptive run, which takes votes only as far as its certificates need them; {what} "
            "needs a run with a fixed n: leave out --adaptive"
        )


def compare_sigmas(sampled: Sampled, alpha: float) -> FixedRadii:
    """`fixed_radii` of votes that are complete."""
    columns, view = [], sampled.view
    for expert in view.experts:
        found = COHEN.certify(expert, alpha)
        right = (found.prediction == sampled.label) | (sampled.label == UNLABELLED)
        columns.append(np.where(right, found.radius, 0.0))
    chosen = view.chosen if sampled.scheme.routes else None
    sigmas = tuple(expert.sigma for expert in view.experts)
    return FixedRadii(tuple(sampled.ids.tolist()), sigmas, np.stack(columns, axis=1), chosen)


def slack(certificates: Certificates) -> Floats:
    """Delta R_sigma = R_sigma - R_c: negative where the routing holds the radius down, as far as it does; (inputs,).

    A radius that its bound did not reach counts as zero, which is what is certified then.
    """
    if np.isinf(certificates.r_sigma).any():
        raise UnusableVotes("slack is the radius of a routing less that of the class, and there is no router here")
    return np.maximum(certificates.r_sigma, 0.0) - np.maximum(certificates.r_c, 0.0)


def p_a(sampled: Sampled) -> Floats:
    """Share of the estimation votes at the chosen sigma that name the true class; (inputs,).

    Without a label, those that name the class which the selection votes chose. Inputs on which the classifier did not
    vote, as a core network answers them, are left out.
    """
    view = sampled.view
    truth = np.where(sampled.label == UNLABELLED, view.selected, sampled.label)
    counts = np.stack([e.estimation for e in view.experts])[view.chosen, np.arange(len(truth))]
    counts[view.chosen < 0] = 0
    given, total = np.take_along_axis(counts, truth[:, None], axis=1)[:, 0], counts.sum(axis=1)
    return np.asarray(given[total > 0] / total[total > 0])


class Penalty(NamedTuple):
    """A row of the table of the confidence penalty."""

    split: tuple[int, int]  # alpha : beta
    share: float  # of the votes, for the class
    radius: float


def confidence_penalty(sigma: float = 1.0, n: int = 100_000, total: float = 0.001) -> list[Penalty]:
    """What the router's part of the error probability costs in radius where the class limits it; appendix of the paper.

    ``total`` is alpha + beta.
    """
    levels = {split: ErrorBudget(total).split(*split).classifier for split in SPLITS}
    return [
        Penalty(split, share, float(gaussian_radius(sigma, lower(round(share * n), n, level))))
        for share in SHARES
        for split, level in levels.items()
    ]
