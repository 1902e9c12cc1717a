"""What the selection votes choose: the candidate A and the class y, before any estimation vote is looked at."""

import numpy as np
from numpy.typing import NDArray

from dualrs.errors import UnusableVotes
from dualrs.votes import DualVotes, Votes

Indices = NDArray[np.int64]


def top(votes: Votes) -> Indices:
    """The most frequent selection vote of each input, ties by index; shape (inputs,)."""
    _demand(votes.selection.sum(axis=1) > 0, f"selection votes at sigma {votes.sigma:g}")
    _demand(votes.sampled > 0, f"estimation votes at sigma {votes.sigma:g}")
    return np.asarray(votes.selection.argmax(axis=1))


def candidate_and_class(votes: DualVotes) -> tuple[Indices, Indices]:
    """The router's candidate A and expert A's class y of each input."""
    chosen = top(votes.router)
    rows = np.arange(len(votes))
    selection = np.stack([e.selection for e in votes.experts])[chosen, rows]  # (inputs, classes)
    sampled = np.stack([e.sampled for e in votes.experts])[chosen, rows]
    _demand((selection.sum(axis=1) > 0) & (sampled > 0), "votes of the expert that the router selected")
    return chosen, np.asarray(selection.argmax(axis=1))


def of_class(votes: Votes, y: Indices) -> Indices:
    """Estimation votes for one given class per input; shape (inputs,)."""
    return np.asarray(np.take_along_axis(votes.estimation, y[:, None], axis=1)[:, 0])


def _demand(present: NDArray[np.bool_], what: str) -> None:
    if not present.all():
        row = int(np.flatnonzero(~present)[0])
        raise UnusableVotes(f"input {row} has no {what}")
