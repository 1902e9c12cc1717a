"""From look to look: more votes only where they can still change what the target counts.

Which stream goes on is decided from the votes so far, and may be: the bounds of a plan with looks hold at all looks
together, whatever made sampling stop (`dualrs.theory.looks`). So nothing here can make a certificate wrong, only
expensive.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dualrs.certificates import Radii
from dualrs.policy.hopes import Hopes, not_worth_it
from dualrs.policy.target import Target, reaches
from dualrs.votes import Stream, Tally, Votes, Wanted

POLICY = "look by look 4"  # named in the ledgers of adaptive runs: other decisions, or other levels, make another run

Outlook = Callable[[Mapping[Stream, Hopes]], Radii[Hopes]]


def going_on(
    tally: Tally, asked: dict[Stream, int], wanted: dict[Stream, int], following: Callable[[Tally], dict[Stream, int]]
) -> Wanted:
    """Ask for some votes, and then for what follows from those asked for so far, until nothing does."""
    while wanted:
        asked |= wanted
        yield wanted
        wanted = following(tally.up_to(asked))


class Prospect(NamedTuple):
    """What more votes on one input are for: the radius to go for, and the models without whose votes it is lost."""

    goal: float
    hoped: Radii[Hopes]  # a row if no model goes on, one if all do, and one for each that may go on without it
    models: list[Stream]  # that may go on
    needed: list[Stream]


def prospect(
    voters: Mapping[Stream, Votes], counted: Sequence[Stream], outlook: Outlook, target: Target
) -> Prospect | None:
    """What can still be reached; None where the target is met or out of reach.

    ``voters`` are the models by their estimation streams, ``counted`` those that may be asked for more.
    """
    models = [stream for stream in counted if voters[stream].sampled[0] < voters[stream].plan.n]
    if not models:
        return None
    # Case 0: no more votes. Case 1: more of every model. Then, for each model, more of all but this one.
    hopeful = {m: np.array([False, True, *(m != other for other in models)]) for m in models}
    nowhere = np.zeros(len(models) + 2, dtype=np.bool_)
    found = outlook({stream: Hopes.of(votes, hopeful.get(stream, nowhere)) for stream, votes in voters.items()})
    radius = found.radius.tolist()
    goal = target.goal(radius[0], radius[1])
    if goal is None:
        return None
    needed = [model for model, without in zip(models, radius[2:], strict=True) if not reaches(without, goal)]
    return Prospect(goal, found, models, needed)


def next_look(
    voters: Mapping[Stream, Votes], counted: Sequence[Stream], chosen: Stream, outlook: Outlook, target: Target
) -> dict[Stream, int]:
    """The votes on one input of two stages to go on with; none where the target is met or out of reach.

    As `prospect`; ``chosen`` is the model that gives the class.
    """
    ahead = prospect(voters, counted, outlook, target)
    if ahead is None:
        return {}
    # Where no model is needed by itself, the router and a rival can each take the other's place.
    able = ahead.needed or [model for model in ahead.models if model != chosen]
    class_limits = bool(ahead.hoped.r_c[1] <= ahead.hoped.r_sigma[1])
    # A rival that was never heard may end it all with one look; else what limits goes first.
    first = min(able, key=lambda model: (voters[model].sampled[0] > 0, (model == chosen) != class_limits))
    # The router and the expert at its sigma may vote on the same copies.
    together = [m for m in ahead.needed if m.sigma == first.sigma and voters[m].sampled[0] == voters[first].sampled[0]]
    return {stream: look_after(voters[stream]) for stream in (first, *together)}


def next_stage(voters: Mapping[Stream, Votes], outlook: Outlook, target: Target) -> dict[Stream, int]:
    """The votes on one input of a cascade to go on with; none where the target is met or out of reach."""
    ahead = prospect(voters, list(voters), outlook, target)
    if ahead is None:
        return {}
    if ahead.needed:
        # All of them have to succeed: the one with the fewest votes goes first, as whichever fails may fail soon.
        first = min(ahead.needed, key=lambda stage: (voters[stage].sampled[0], -stage.sigma))
    else:
        # Any of several stages would do: the one that is expected to reach farthest, and no other beside it.
        first = _farthest(ahead, voters, outlook)
    return {first: look_after(voters[first])}


def _farthest(ahead: Prospect, voters: Mapping[Stream, Votes], outlook: Outlook) -> Stream:
    """Of the models that may reach the goal alone, if there are such, the one that is expected to reach farthest."""
    count = len(ahead.models)
    # Rows where one model goes on as well as may be, and as is expected.
    unlikely = {s: np.repeat([not_worth_it(votes)[0], 0.5], count) for s, votes in voters.items()}
    hopeful = {m: np.tile([m == other for other in ahead.models], 2) for m in ahead.models}
    nowhere = np.zeros(2 * count, dtype=np.bool_)
    found = outlook({s: Hopes.of(votes, hopeful.get(s, nowhere), unlikely[s]) for s, votes in voters.items()}).radius
    reaching = [reaches(radius, ahead.goal) for radius in found[:count].tolist()]
    ranked = sorted(zip(reaching, found[count:].tolist(), range(count), strict=True), reverse=True)
    return ahead.models[ranked[0][2]]


def look_after(votes: Votes) -> int:
    """The next look of votes on one input."""
    return min(look for look in votes.plan.looks if look > votes.sampled[0])
