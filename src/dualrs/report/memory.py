"""Certificates of a predictor with a memory, from the votes of a run and the distances between its images.

Enters: a ledger, and its images in the order of positions, which is that of arrival. Leaves: results.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dualrs.certificates import Certificates
from dualrs.certificates.memory import allocate, remember
from dualrs.errors import BadSetting, UnusableVotes
from dualrs.storage.ledger import Ledger
from dualrs.storage.results import Results, demand_certificates, read_sampled
from dualrs.theory.bounds import Floats

_LEVELS = 255  # grey levels per unit of pixel value

CLASS, SIGMA = "class", "sigma"  # what inputs in one ball have in common
GUARANTEES = {
    CLASS: "an input that comes later, closer than the radius, gets the same class because the memory says so, "
    "whatever the network would say; nothing is claimed of inputs that came before",
    SIGMA: "wrong with probability at most {alpha:g} for each input, where an error is an input that comes later, "
    "closer than the radius, and has another class under the sigma of the ball; nothing is claimed of inputs that came "
    "before",
}


def remembered(
    ledger: Ledger, by: str, image: Callable[[int], NDArray[np.uint8]]
) -> tuple[Results, Certificates, list[str]]:
    """What a run would have certified with a memory ``by`` class or sigma, in the order of positions.

    ``image`` gives those of its dataset. Also returns the ids of inputs whose class would be another if they came in
    the opposite order.
    """
    demand_certificates(ledger)
    header, sampled = ledger.header, read_sampled(ledger)
    if not len(sampled.ids):
        raise UnusableVotes(f"{ledger.path} has no finished input yet; run the same `dualrs certify` again")
    if header.looks:
        raise UnusableVotes(f"{ledger.path} is of an adaptive run, and a memory needs a fixed n: leave out --adaptive")
    if by == SIGMA and len(sampled.view.experts) < 2:
        raise BadSetting(
            f"{ledger.path} has one sigma for each input, and a ball of one sigma is chosen among several; certify "
            "with --sigmas and --all-votes, or take --by class"
        )
    if by == SIGMA and not sampled.complete.all():
        raise UnusableVotes(f"{ledger.path} lacks votes at some sigma; collect them with `certify --all-votes`")
    pixels = np.stack([image(place).reshape(-1) for place in sampled.index.tolist()]).astype(np.float64)
    found: list[Certificates] = []
    for order in (np.arange(len(pixels)), np.arange(len(pixels))[::-1]):
        apart = _apart(pixels[order])
        if by == CLASS:
            own = header.own_rule.certify(sampled.votes, header.alpha)
            made = remember(own.rows(order), apart)
        else:
            experts = [votes.rows(order) for votes in sampled.view.experts]
            made = allocate(experts, header.alpha, apart)
        found.append(made.rows(order))  # each order undoes itself
    first, last = found
    return sampled.results(first), first, sampled.ids[first.prediction != last.prediction].tolist()


def _apart(pixels: Floats) -> Callable[[int], Floats]:
    """Distances from an image to all before it, in units of pixel values in [0, 1]."""
    return lambda place: np.sqrt(np.square(pixels[:place] - pixels[place]).sum(axis=1)) / _LEVELS
