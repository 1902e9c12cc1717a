"""Rule `aces`: a smoothed selector sends an input to a smoothed classifier or to a plain core network.

Horvath et al. 2022. The selector looks at the entropy of a small network's answer under noise: low entropy, and the
smoothed classifier answers; high entropy, and the core network does, once and without noise. One stream of the
selector's votes serves several thresholds, as its answer says how many of them the entropy exceeds
(`dualrs.models.entropy`).
"""

from dataclasses import dataclass

import numpy as np

from dualrs.certificates.certificate import ABSTAIN, ROUTER, Certificates, Outcome
from dualrs.certificates.selection import Indices, of_class, top
from dualrs.errors import BadSetting, UnusableVotes
from dualrs.theory.bounds import lower
from dualrs.theory.budget import ErrorBudget
from dualrs.theory.radius import gaussian_radius
from dualrs.votes import Votes

CORE = "core"  # the limit of an input that the core network answers: it has no radius


@dataclass(frozen=True)
class AcesVotes:
    """Votes of the selector (how many thresholds the entropy exceeds) and of the classifier, for the same inputs.

    ``core`` is the class that the core network gives to each input itself, shape (inputs,). The classifier needs votes
    only where the selector chooses it.
    """

    selector: Votes
    classifier: Votes
    core: Indices

    def __post_init__(self) -> None:
        if not len(self.selector) == len(self.classifier) == len(self.core):
            raise UnusableVotes("selector, classifier and core must have answers for the same inputs")

    def __len__(self) -> int:
        return len(self.core)


def aces(votes: AcesVotes, alpha: float, threshold: int) -> Certificates:
    """Certify the choice and the class, each at alpha/2, and take the smaller radius; thresholds count from 0.

    An input that goes to the core gets the core's class as `Outcome.PREDICTED` with radius 0: it counts at r = 0 only.

    Guarantee: with probability >= 1 - alpha over the votes, no x closer than the radius has another answer of the
    composed model; for a predicted input this is said of the input alone. Union bound over the two stages.
    Assumes: as `cohen`, for each stage; any dependence between the stages is allowed. The threshold is fixed before
    the estimation votes: the best of several per input is not a certificate.
    """
    if not 0 <= threshold < votes.selector.answers - 1:
        raise BadSetting(
            f"these votes are about {votes.selector.answers - 1} thresholds, counted from 0; got {threshold}"
        )
    levels = ErrorBudget(alpha).split(1, 1)
    chooser = _two_answers(votes.selector, threshold)
    choice = top(chooser)
    r_sigma = gaussian_radius(chooser.sigma, lower(of_class(chooser, choice), chooser.sampled, levels.router))

    smoothed, classifier = choice == 0, votes.classifier
    missing = smoothed & ((classifier.selection.sum(axis=1) == 0) | (classifier.sampled == 0))
    if missing.any():
        raise UnusableVotes(
            f"input {int(np.flatnonzero(missing)[0])} has no votes of the classifier, which is selected"
        )
    y = np.asarray(classifier.selection.argmax(axis=1))
    r_c = gaussian_radius(classifier.sigma, lower(of_class(classifier, y), classifier.sampled, levels.classifier))
    found = Certificates.conclude(
        y,
        sigma_c=np.full(len(votes), classifier.sigma),
        r_c=r_c,
        r_sigma=r_sigma,
        router_limit=np.full(len(votes), ROUTER),
    )
    decided = r_sigma > 0
    by_core = np.where(decided, Outcome.PREDICTED.value, Outcome.ROUTER_UNDECIDED.value)
    return Certificates(
        prediction=np.where(smoothed, found.prediction, np.where(decided, votes.core, ABSTAIN)),
        radius=np.where(smoothed, found.radius, 0.0),
        sigma_c=np.where(smoothed, found.sigma_c, 0.0),  # the core sees no noise
        r_sigma=r_sigma,
        r_c=np.where(smoothed, r_c, 0.0),
        limited_by=np.where(smoothed, found.limited_by, np.where(decided, CORE, ROUTER)),
        outcome=np.where(smoothed, found.outcome, by_core),
    )


def _two_answers(selector: Votes, threshold: int) -> Votes:
    """The votes at one threshold: 0 where the entropy does not exceed it, 1 where it does."""

    def sides(counts: Indices) -> Indices:
        below = counts[:, : threshold + 1].sum(axis=1)
        return np.stack([below, counts.sum(axis=1) - below], axis=1)

    return Votes(selector.sigma, sides(selector.selection), sides(selector.estimation), selector.plan)
