"""What the selection votes choose: the candidate A and the class y, before any estimation vote is looked at.

And how far a model gives an answer, which a network without noise states by itself.
"""

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualrs.certificates.certificate import Evidence
from dualrs.errors import UnusableVotes
from dualrs.theory.bounds import Floats
from dualrs.theory.radius import gaussian_radius
from dualrs.votes import Bounds, Stated, Votes

Indices = NDArray[np.int64]


class TwoStages(Protocol[Evidence]):
    """Bounds of a router and of the expert of each candidate, for the same inputs: what two-stage rules read."""

    @property
    def router(self) -> Evidence:
        """The router at sigma_e."""

    @property
    def experts(self) -> tuple[Evidence, ...]:
        """The experts at their sigmas, in the order of the router's answers."""

    @property
    def sigmas(self) -> tuple[float, ...]:
        """The candidate sigmas, in that order."""

    def __len__(self) -> int:
        """How many inputs there are."""


def answer_radius(votes: Bounds, answer: Indices, level: ArrayLike) -> Floats:
    """A radius within which a model gives an answer: what it states or, from votes, what a bound at a level gives.

    Minus infinity where it was not asked, or states another answer. What is stated holds always and spends no level.
    """
    if isinstance(votes, Stated):
        return votes.stays(answer)
    return gaussian_radius(votes.sigma, votes.lower(answer, level))


def top(votes: Bounds) -> Indices:
    """The most frequent selection vote of each input, ties by index; shape (inputs,)."""
    demand(votes.selection.sum(axis=1) > 0, f"selection votes at sigma {votes.sigma:g}")
    demand(votes.sampled > 0, f"estimation votes at sigma {votes.sigma:g}")
    return np.asarray(votes.selection.argmax(axis=1))


def candidate_and_class(votes: TwoStages[Bounds]) -> tuple[Indices, Indices]:
    """The router's candidate A and expert A's class y of each input."""
    chosen = top(votes.router)
    rows = np.arange(len(votes))
    selection = np.stack([e.selection for e in votes.experts])[chosen, rows]  # (inputs, classes)
    sampled = np.stack([e.sampled for e in votes.experts])[chosen, rows]
    demand((selection.sum(axis=1) > 0) & (sampled > 0), "votes of the expert that the router selected")
    return chosen, np.asarray(selection.argmax(axis=1))


def demand_one_look(what: str, *votes: Votes | Stated) -> None:
    """Refuse votes that were gathered under looks, for what reads counts at one level fixed for n votes."""
    if any(v.plan.adaptive for v in votes):
        raise UnusableVotes(
            f"{what} cannot use votes of an adaptive run: where sampling may stop early, counts hold only at the "
            "levels of its looks; sample with a fixed n"
        )


def demand(present: NDArray[np.bool_], what: str) -> None:
    """Refuse votes of which some input lacks what a rule reads."""
    if not present.all():
        row = int(np.flatnonzero(~present)[0])
        raise UnusableVotes(f"input {row} has no {what}")
