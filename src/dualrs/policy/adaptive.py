"""From look to look: more votes only where they can still change what the target counts.

Which stream goes on is decided from the votes so far, and may be: the bounds of a plan with looks hold at all looks
together, whatever made sampling stop (`dualrs.theory.looks`). So nothing here can make a certificate wrong, only
expensive.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from dualrs.certificates import Radii
from dualrs.policy.hopes import Hopes
from dualrs.policy.target import Target, reaches
from dualrs.votes import Stream, Tally, Votes, Wanted

POLICY = "look by look 2"  # named in the ledgers of adaptive runs: other decisions, or other levels, make another run

Outlook = Callable[[Mapping[Stream, Hopes]], Radii[Hopes]]


def going_on(
    tally: Tally, asked: dict[Stream, int], wanted: dict[Stream, int], following: Callable[[Tally], dict[Stream, int]]
) -> Wanted:
    """Ask for some votes, and then for what follows from those asked for so far, until nothing does."""
    while wanted:
        asked |= wanted
        yield wanted
        wanted = following(tally.up_to(asked))


def next_look(
    voters: Mapping[Stream, Votes], counted: Sequence[Stream], chosen: Stream, outlook: Outlook, target: Target
) -> dict[Stream, int]:
    """The votes on one input to go on with; none where the target is met or out of reach.

    ``voters`` are the models by their estimation streams, ``counted`` those that may be asked for more, ``chosen`` the
    one that gives the class.
    """
    models = [stream for stream in counted if voters[stream].sampled[0] < voters[stream].plan.n]
    if not models:
        return {}
    # Case 0: no more votes. Case 1: more of every model. Then, for each model, more of all but this one.
    hopeful = {m: np.array([False, True, *(m != other for other in models)]) for m in models}
    nowhere = np.zeros(len(models) + 2, dtype=np.bool_)
    found = outlook({stream: Hopes.of(votes, hopeful.get(stream, nowhere)) for stream, votes in voters.items()})
    radius = found.radius.tolist()
    goal = target.goal(radius[0], radius[1])
    if goal is None:
        return {}
    needed = [model for model, without in zip(models, radius[2:], strict=True) if not reaches(without, goal)]
    # Where no model is needed by itself, the router and a rival can each take the other's place.
    able = needed or [model for model in models if model != chosen]
    class_limits = bool(found.r_c[1] <= found.r_sigma[1])
    # A rival that was never heard may end it all with one look; else what limits goes first.
    first = min(able, key=lambda model: (voters[model].sampled[0] > 0, (model == chosen) != class_limits))
    # The router and the expert at its sigma may vote on the same copies.
    together = [m for m in needed if m.sigma == first.sigma and voters[m].sampled[0] == voters[first].sampled[0]]
    return {stream: _look_after(voters[stream]) for stream in (first, *together)}


def _look_after(votes: Votes) -> int:
    return min(look for look in votes.plan.looks if look > votes.sampled[0])
