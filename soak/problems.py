"""Two-stage problems of two to five candidates with one bottleneck, placed where the bound behind it fails most often.

Enters: a spot (plan and alpha), the shares of alpha that a rule gives to its bounds, and the number of candidates.
Leaves: a problem with its true radius in closed form. Candidates that no problem needs get no vote of the router, and
their experts disagree, so that a rule that forgot them would be caught. Rules that are not about a problem abstain.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from soak.edges import Spot
from soak.half_spaces import Problem, Steps, always, half_space, quantile

Y, OTHER = 1, 2  # G at the input, and the class of those who disagree; class 0 stands idle
FAR = 3.0  # standard deviations to a boundary that plays no role
EPSILON = 1e-6  # a margin as good as none
SIGMAS = (0.5, 1.0, 0.75, 0.25, 0.35)  # of the candidates, the second at the router's own


@dataclass(frozen=True)
class Shares:
    """The shares of alpha that a rule gives to its bounds."""

    chosen: float
    router: float
    router_of_many: float  # three candidates or more
    rival: float

    def of_router(self, candidates: int) -> float:
        """The router's lower bound."""
        return self.router if candidates == 2 else self.router_of_many


Maker = Callable[[Spot, Shares, int, float], Problem]  # the last number: near which probability


def _with(first: tuple[Steps, ...], candidates: int) -> tuple[Steps, ...]:
    return (first + (always(OTHER),) * candidates)[:candidates]


def class_boundary(spot: Spot, shares: Shares, candidates: int, near: float) -> Problem:
    """The chosen expert's own boundary is nearest: the bottleneck is r_A."""
    sigmas = (SIGMAS[1], SIGMAS[0], *SIGMAS[2:])  # the chosen one may vote on the router's copies
    cut = quantile(spot.edge(shares.chosen, near))
    return Problem(half_space(FAR, 0, 1), _with((half_space(cut, Y, OTHER),), candidates), sigmas[:candidates], cut)


def routing_boundary(spot: Spot, shares: Shares, candidates: int, near: float) -> Problem:
    """The router's boundary is nearest, and beyond it stands an expert that disagrees."""
    cut = quantile(spot.edge(shares.of_router(candidates), near))
    return Problem(half_space(cut, 0, 1), _with((half_space(FAR / 2, Y, OTHER),), candidates), SIGMAS[:candidates], cut)


def equal_boundaries(spot: Spot, shares: Shares, candidates: int, near: float) -> Problem:
    """Router and chosen expert have one sigma and change at one distance: on shared copies they fail together."""
    sigmas = (SIGMAS[1], SIGMAS[0], *SIGMAS[2:])
    cut = quantile(spot.edge(shares.of_router(candidates), near))
    return Problem(half_space(cut, 0, 1), _with((half_space(cut, Y, OTHER),), candidates), sigmas[:candidates], cut)


def rival_boundary(spot: Spot, shares: Shares, candidates: int, near: float) -> Problem:
    """The router turns to a rival exactly where the rival's expert stops agreeing: r_j = E_j = the truth.

    Either of the two failing makes a false certificate. The rival's sigma is what puts both on their edge.
    """
    cut = quantile(spot.edge(shares.of_router(candidates), near))
    tries = (spot.edge(shares.rival, near + more) for more in np.arange(0, 0.2, 0.005))
    sigma = cut / next(quantile(p) for p in tries if quantile(p) >= cut)  # at most the router's
    experts = _with((half_space(FAR / 2, Y, OTHER), half_space(cut, Y, OTHER)), candidates)
    return Problem(half_space(cut, 0, 1), experts, (SIGMAS[0], sigma, *SIGMAS[2:])[:candidates], cut, n0=100)


def no_majority(spot: Spot, shares: Shares, candidates: int, near: float) -> Problem:
    """No candidate has half of the router's votes. A and C tie where expert C stops agreeing; B agrees throughout."""
    cut, first = quantile(spot.edge(shares.rival, min(near, 0.63))), -0.1
    router = Steps((first, 2 * cut - first), (0, 1, 2))
    experts = (half_space(FAR / 4, Y, OTHER), half_space(FAR / 2, Y, OTHER), half_space(cut, Y, OTHER))
    sigmas = (0.25, 0.5, 1.0, 0.35, 0.75)
    return Problem(router, _with(experts, candidates), sigmas[:candidates], cut, n0=100)


def tie_of_all(spot: Spot, shares: Shares, candidates: int, near: float) -> Problem:
    """All candidates tie at the boundary, where the last, whose expert disagrees, meets its equal share.

    There both forms of its exclusion radius are exact, and its upper bound, the bottleneck, is on its edge.
    """
    last = quantile(1 - 1 / candidates)
    radius = quantile(spot.edge(shares.router_of_many, max(near, 1 - 0.6 / candidates))) - last
    cuts = tuple(radius + quantile((i + 1) / candidates) for i in range(candidates - 1))
    experts = (*(half_space(FAR * s, Y, OTHER) for s in SIGMAS[: candidates - 1]), always(OTHER))
    router = Steps(cuts, tuple(range(candidates)))
    return Problem(router, experts, SIGMAS[:candidates], radius, n0=100)


def pair_boundary(spot: Spot, shares: Shares, candidates: int, near: float) -> Problem:
    """Three classes, none with half of the votes; both bounds of the pair form are on their edges at the tie."""
    sigmas = (SIGMAS[1], SIGMAS[0], *SIGMAS[2:])
    near = min(near, 0.7)  # or the third class would be ahead before the tie
    first, second = quantile(spot.edge(shares.chosen, near - 0.15)), quantile(spot.edge(shares.chosen, near + 0.1))
    expert = Steps((first, second), (Y, 0, OTHER))
    return Problem(half_space(FAR, 0, 1), _with((expert,), candidates), sigmas[:candidates], (first + second) / 2, 100)


def friendly_coin_toss(spot: Spot, shares: Shares, candidates: int, near: float) -> Problem:
    """The router is at a coin toss, and the two experts agree up to the boundary of one of them."""
    cut = quantile(spot.edge(shares.rival, near))
    experts = _with((half_space(FAR / 2, Y, OTHER), half_space(cut, Y, OTHER)), candidates)
    return Problem(half_space(EPSILON, 0, 1), experts, SIGMAS[:candidates], cut, n0=10)


def hostile_coin_toss(spot: Spot, shares: Shares, candidates: int, near: float) -> Problem:
    """The router is at a coin toss between experts that disagree: nothing can be claimed."""
    router = half_space(EPSILON, 0, 1)
    return Problem(router, _with((always(Y),), candidates), SIGMAS[:candidates], EPSILON, n0=10)


def class_coin_toss(spot: Spot, shares: Shares, candidates: int, near: float) -> Problem:
    """The router is sure, and its expert is at a coin toss between two classes: nothing can be claimed."""
    sigmas = (SIGMAS[1], SIGMAS[0], *SIGMAS[2:])
    experts = _with((half_space(EPSILON, Y, OTHER),), candidates)
    return Problem(half_space(FAR, 0, 1), experts, sigmas[:candidates], EPSILON, n0=10)


def tied_candidates(spot: Spot, shares: Shares, candidates: int, near: float) -> Problem:
    """All candidates of the router are equally likely, but for the least bit; only the first expert says Y.

    The radius is as good as none, and is not looked at: predictions are claims about the input alone.
    """
    cuts = tuple(quantile((i + 1) / candidates) for i in range(candidates - 1))
    router = Steps((cuts[0] + EPSILON, *cuts[1:]), tuple(range(candidates)))
    return Problem(router, _with((always(Y),), candidates), SIGMAS[:candidates], 0.0)


def tied_classes(spot: Spot, shares: Shares, candidates: int, near: float) -> Problem:
    """The router is sure, and all classes of its expert are equally likely, but for the least bit."""
    classes = candidates + 1
    cuts = tuple(SIGMAS[0] * quantile((i + 1) / classes) for i in range(classes - 1))
    expert = Steps((cuts[0] + EPSILON, *cuts[1:]), (Y, *(c for c in range(classes) if c != Y)))
    experts = _with((expert,), candidates)
    return Problem(half_space(FAR, 0, 1), experts, SIGMAS[:candidates], 0.0, classes=classes)


PLACED: dict[str, Maker] = {
    "the class changes first": class_boundary,
    "the routing changes first": routing_boundary,
    "class and routing change together": equal_boundaries,
    "the routing and a rival change together": rival_boundary,
    "the router has no majority": no_majority,
    "all candidates tie at the boundary": tie_of_all,
    "three classes, none with a majority": pair_boundary,
    "a coin toss between friends": friendly_coin_toss,
    "a coin toss between foes": hostile_coin_toss,
    "the class is a coin toss": class_coin_toss,
}
