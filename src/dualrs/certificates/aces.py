"""Rule `aces`: a smoothed selector sends an input to a smoothed classifier or to a plain core network.

Horvath et al. 2022. The selector looks at the entropy of a small network's answer under noise: low entropy, and the
smoothed classifier answers; high entropy, and the core network does, once and without noise. One stream of the
selector's votes serves several thresholds, as its answer says how many of them the entropy exceeds
(`dualrs.models.entropy`).
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dualrs.certificates.certificate import ABSTAIN, ROUTER, Certificates, Outcome, Radii
from dualrs.certificates.selection import demand, demand_one_look, top
from dualrs.errors import UnusableVotes
from dualrs.theory.budget import ErrorBudget
from dualrs.theory.radius import gaussian_radius
from dualrs.votes import Counts, Votes

CORE = "core"  # the limit of an input that the core network answers: it has no radius


class WithCore(Protocol):
    """Votes of a selector and of a classifier on the same inputs, and what a core network answers without noise."""

    @property
    def selector(self) -> Votes:
        """Answers say how many thresholds an entropy exceeds."""

    @property
    def classifier(self) -> Votes:
        """Class votes at the same sigma."""

    @property
    def core(self) -> Counts:
        """A row of one vote for each input, or of none; shape (inputs, classes)."""

    @property
    def thresholds(self) -> tuple[float, ...]:
        """Of the entropy."""

    def __len__(self) -> int:
        """How many inputs there are."""


def aces(votes: WithCore, alpha: float, threshold: float) -> Certificates:
    """Certify the choice at one of the thresholds and the class, each at alpha/2, and take the smaller radius.

    An input that goes to the core gets the core's class as `Outcome.PREDICTED` with radius 0: it counts at r = 0 only.

    Guarantee: with probability >= 1 - alpha over the votes, no x closer than the radius has another answer of the
    composed model; for a predicted input this is said of the input alone. Union bound over the two stages.
    Assumes: as `cohen`, for each stage; any dependence between the stages is allowed. The threshold is fixed before
    the estimation votes: the best of several per input is not a certificate.
    """
    demand_one_look("aces", votes.selector, votes.classifier)
    if threshold not in votes.thresholds:
        known = ", ".join(f"{t:g}" for t in votes.thresholds)
        raise UnusableVotes(f"these votes are about the thresholds {known}; there is no {threshold:g} among them")
    levels = ErrorBudget(alpha).split(1, 1)
    chooser = _two_answers(votes.selector, votes.thresholds.index(threshold))
    choice = top(chooser)
    r_sigma = gaussian_radius(chooser.sigma, chooser.lower(choice, levels.router))

    smoothed, classifier = choice == 0, votes.classifier
    voted = (classifier.selection.sum(axis=1) > 0) & (classifier.sampled > 0)
    demand(voted | ~smoothed, "votes of the classifier, which is selected")
    demand((votes.core.sum(axis=1) > 0) | smoothed, "answer of the core network, which is selected")
    y = np.asarray(classifier.selection.argmax(axis=1))
    r_c = gaussian_radius(classifier.sigma, classifier.lower(y, levels.classifier))
    nowhere = np.full(len(votes), np.nan)
    sigma_c = np.full(len(votes), classifier.sigma)
    found = Certificates.conclude(Radii(y, sigma_c, r_c, r_sigma, nowhere, (chooser, classifier)))
    decided = r_sigma > 0
    by_core = np.where(decided, Outcome.PREDICTED.value, Outcome.ROUTER_UNDECIDED.value)
    return Certificates(
        prediction=np.where(smoothed, found.prediction, np.where(decided, votes.core.argmax(axis=1), ABSTAIN)),
        radius=np.where(smoothed, found.radius, 0.0),
        sigma_c=np.where(smoothed, found.sigma_c, 0.0),  # the core sees no noise
        r_sigma=r_sigma,
        r_c=np.where(smoothed, r_c, 0.0),
        limited_by=np.where(smoothed, found.limited_by, np.where(decided, CORE, ROUTER)),
        outcome=np.where(smoothed, found.outcome, by_core),
        rival=nowhere,
        selected=np.where(smoothed, y, votes.core.argmax(axis=1)),
    )


def smoothed_at(selection: Counts) -> NDArray[np.bool_]:
    """Whether selection votes of the selector choose the classifier at each threshold; shape (inputs, thresholds)."""
    below = selection.cumsum(axis=1)[:, :-1]
    return np.asarray(2 * below >= selection.sum(axis=1, keepdims=True))  # ties by index: the classifier comes first


def _two_answers(selector: Votes, threshold: int) -> Votes:
    """The votes at one threshold, by its number: 0 where the entropy does not exceed it, 1 where it does."""

    def sides(counts: Counts) -> Counts:
        below = counts[:, : threshold + 1].sum(axis=1)
        return np.stack([below, counts.sum(axis=1) - below], axis=1)

    return Votes(selector.sigma, sides(selector.selection), sides(selector.estimation), selector.plan)
