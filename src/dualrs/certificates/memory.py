"""Memory: certificates of a predictor that remembers what it was asked, in the order in which it was asked.

Every input that lies in no ball yet gets one of its own, within which later inputs are treated alike: they get its
class (Alfarra et al. 2022), or its sigma (our reading of Wang et al. 2021). Balls that treat inputs differently never
overlap, which is what makes the claims true.

Such a certificate is about *later* inputs. Images that were asked before keep the answer that they got, so whoever asks
first decides: an attack that comes before the image is certified as well as the image would have been.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from dualrs.certificates.certificate import ABSTAIN, CLASS, Certificates, Outcome
from dualrs.certificates.cohen import cohen
from dualrs.certificates.selection import demand_one_look
from dualrs.errors import BadSetting
from dualrs.theory.bounds import Floats
from dualrs.theory.radius import gaussian_radius
from dualrs.votes import Votes

BALL, BORDER = "ball", "border"  # what limits it: an earlier ball that holds the input, or one that is near

Distances = Callable[[int], Floats]  # from an input, by number, to all before it


@dataclass
class Balls:
    """Balls about earlier inputs, each with a mark; those of different marks do not overlap."""

    _place: list[int] = field(default_factory=list)
    _radius: list[float] = field(default_factory=list)
    _mark: list[int] = field(default_factory=list)

    def holding(self, far: Floats) -> tuple[int, float] | None:
        """The mark of the ball that holds an input deepest, and how deep; None if none does.

        ``far`` are the distances to all earlier inputs.
        """
        if not self._place:
            return None
        depth = np.array(self._radius) - far[self._place]
        deepest = int(depth.argmax())
        return (self._mark[deepest], float(depth[deepest])) if depth[deepest] > 0 else None

    def room(self, far: Floats, mark: int) -> float:
        """How far the nearest ball of another mark is."""
        others = np.array(self._mark, dtype=np.int64) != mark
        free = far[self._place] - np.array(self._radius)
        return float(free[others].min(initial=np.inf))

    def add(self, place: int, radius: float, mark: int) -> None:
        """Remember a ball about the input of this number; one without a radius is none."""
        if radius > 0:
            self._place.append(place)
            self._radius.append(radius)
            self._mark.append(mark)


def remember(found: Certificates, distances: Distances) -> Certificates:
    """Certificates, in order of arrival, of the predictor that gives later inputs in a ball the class of the ball.

    Guarantee: every later input closer than the radius gets the same class, because the memory says so: no alpha, and
    no network, enters it, and any radius would do. What alpha is about is the class of an input that lies in no ball.
    """
    balls = Balls()
    prediction, radius, limits = found.prediction.copy(), found.radius.copy(), np.full(len(found), CLASS, dtype=object)
    for place in range(len(found)):
        far = distances(place)
        held = balls.holding(far)
        if held is not None:
            (prediction[place], radius[place]), limits[place] = held, BALL
        elif prediction[place] != ABSTAIN:
            room = balls.room(far, int(prediction[place]))
            if room < radius[place]:
                radius[place], limits[place] = room, BORDER
            balls.add(place, float(radius[place]), int(prediction[place]))
    return _claimed(found, prediction, radius, limits)


def allocate(experts: Sequence[Votes], alpha: float, distances: Distances) -> Certificates:
    """Certificates, in order of arrival, of the predictor that answers later inputs in a ball under its sigma.

    An input that lies in no ball takes the sigma whose selection votes promise the largest radius.

    Guarantee: with probability >= 1 - alpha over the votes of an input, every later input closer than the radius is
    answered under the same sigma, and there has the same class: `cohen` at that sigma, within a region in which it is
    constant.
    Assumes: as `cohen`. Which sigma an input has depends on selection votes and on earlier inputs, never on its own
    estimation votes.
    """
    if len(experts) < 2:
        raise BadSetting("balls of one sigma need votes at several sigmas to choose from: certify --sigmas --all-votes")
    demand_one_look("memory", *experts)
    by_sigma = [Certificates.conclude(cohen(votes, alpha)) for votes in experts]
    promise = np.stack([_promised(votes) for votes in experts])
    balls, taken, limit = Balls(), np.zeros(promise.shape[1], dtype=np.int64), np.full(promise.shape[1], np.inf)
    limits = np.full(len(taken), CLASS, dtype=object)
    for place in range(len(taken)):
        far = distances(place)
        held = balls.holding(far)
        taken[place] = promise[:, place].argmax() if held is None else held[0]
        limit[place] = balls.room(far, int(taken[place])) if held is None else held[1]
        own = float(by_sigma[taken[place]].radius[place])
        if limit[place] < own:
            limits[place] = BORDER if held is None else BALL
        if held is None:
            balls.add(place, min(own, float(limit[place])), int(taken[place]))
    rows = [by_sigma[s].rows(np.array([place])) for place, s in enumerate(taken.tolist())]
    found = Certificates.stack([row[0] for row in rows])
    return _claimed(found, found.prediction, np.minimum(found.radius, limit), limits)


def _promised(votes: Votes) -> Floats:
    """The radius at the share of the selection votes; with one vote more that is for none, so that it is finite."""
    return gaussian_radius(votes.sigma, votes.selection.max(axis=1) / (votes.plan.n0 + 1))


def _claimed(
    found: Certificates, prediction: NDArray[np.int64], radius: Floats, limits: NDArray[np.object_]
) -> Certificates:
    claimed = (prediction != ABSTAIN) & (radius > 0)
    return replace(
        found,
        prediction=np.where(claimed, prediction, ABSTAIN),
        radius=np.where(claimed, radius, 0.0),
        limited_by=limits.astype(np.str_),
        outcome=np.where(claimed, Outcome.CERTIFIED.value, Outcome.CLASS_UNDECIDED.value),
        rival=None,
    )
