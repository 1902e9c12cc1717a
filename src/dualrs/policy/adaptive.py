"""The adaptive policy: from look to look, more votes only where they can still change what the target counts.

Which stream goes on is decided from the votes so far, and may be: the bounds of a plan with looks hold at all looks
together, whatever made sampling stop (`dualrs.theory.looks`). So nothing here can make a certificate wrong, only dear.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualrs.certificates import Rule
from dualrs.policy.fixed import Policy, Wanted, both_parts, top_sigma
from dualrs.policy.outlook import Outlook
from dualrs.policy.target import Target, reaches
from dualrs.votes import AcesVotes, DualVotes, Part, SamplingPlan, Stage, Stream, Streams, Tally, Votes

POLICY = "look by look 2"  # named in the ledgers of adaptive runs: other decisions, or other levels, make another run


def adaptive_policy(streams: Streams, plan: SamplingPlan, rule: Rule, alpha: float, target: Target) -> Policy:
    """Votes for a certificate under one rule, as many as the target needs.

    The router's selection votes come first, then the first look of both stages. From then on the stream that holds the
    radius down goes on to its next look, until the target is met or out of reach. A rival expert is asked only where
    its agreement can raise the radius.
    """

    def begin(stage: Stage, sigma: float) -> dict[Stream, int]:
        return {stream: plan.steps(stream.part)[0] for stream in both_parts(stage, sigma)}

    def votes_wanted(tally: Tally) -> Wanted:
        asked: dict[Stream, int] = {}
        wanted: dict[Stream, int] = {}
        chosen = streams.sigmas[0]
        if streams.sigma_e is not None:
            wanted = begin(Stage.ROUTER, streams.sigma_e)
            asked = {stream: votes for stream, votes in wanted.items() if stream.part is Part.SELECTION}
            yield dict(asked)
            chosen = top_sigma(streams, tally, Part.SELECTION)
        wanted |= begin(Stage.CLASS, chosen)
        while wanted:
            asked |= wanted
            yield wanted
            votes = streams.gather([_up_to(asked, tally)], plan)
            assert not isinstance(votes, AcesVotes), "ACES has no adaptive form, and its header says so"
            wanted = _next(votes, chosen, rule, alpha, target)

    return votes_wanted


def _up_to(asked: Mapping[Stream, int], tally: Tally) -> Tally:
    """The votes asked for so far: a run that was killed may have left more, some of what it had asked for next."""
    held = tally.counts
    return Tally({s: {start: c for start, c in held.get(s, {}).items() if start < upto} for s, upto in asked.items()})


@dataclass(frozen=True)
class _Model:
    """A model that may be asked for more votes: the chosen expert, the router, or a rival expert."""

    stage: Stage
    votes: Votes
    chosen: bool = False  # by the router, or the only one

    @property
    def open(self) -> bool:
        """Whether a look is left."""
        return bool(self.votes.sampled[0] < self.votes.plan.n)

    @property
    def next_look(self) -> dict[Stream, int]:
        """What to ask for so that the next look is reached."""
        look = min(look for look in self.votes.plan.looks if look > self.votes.sampled[0])
        return {Stream(self.stage, Part.ESTIMATION, self.votes.sigma): look}


def _next(votes: Votes | DualVotes, chosen: float, rule: Rule, alpha: float, target: Target) -> dict[Stream, int]:
    """The votes to go on with; none where the target is met or out of reach."""
    models = [model for model in _models(votes, chosen, rule) if model.open]
    # Case 0: no more votes. Case 1: more of every model. Then, for each model, more of all but this one.
    hopeful = np.array([[False, True, *(m is not other for other in models)] for m in models], dtype=np.bool_)
    if not models:
        return {}
    found = rule.certify(_in_cases(votes, models, hopeful), alpha)
    radius = np.minimum(found.r_c, found.r_sigma).tolist()
    goal = target.goal(radius[0], radius[1])
    if goal is None:
        return {}
    needed = [model for model, without in zip(models, radius[2:], strict=True) if not reaches(without, goal)]
    # Where no model is needed by itself, the router and a rival can each take the other's place.
    able = needed or [model for model in models if not model.chosen]
    class_limits = bool(found.r_c[1] <= found.r_sigma[1])
    # A rival that was never heard may end it all with one look; else what limits goes first.
    first = min(able, key=lambda model: (model.votes.sampled[0] > 0, model.chosen != class_limits))
    asked = first.next_look
    for other in needed:  # the router and the expert at its sigma may vote on the same copies
        if other.votes.sigma == first.votes.sigma and other.votes.sampled[0] == first.votes.sampled[0]:
            asked |= other.next_look
    return asked


def _models(votes: Votes | DualVotes, chosen: float, rule: Rule) -> list[_Model]:
    """The models whose votes count: the chosen expert, then the router, then the rivals."""
    if isinstance(votes, Votes):
        return [_Model(Stage.CLASS, votes, chosen=True)]
    expert, *rivals = sorted(votes.experts, key=lambda v: v.sigma != chosen)
    two = [_Model(Stage.CLASS, expert, chosen=True), _Model(Stage.ROUTER, votes.router)]
    return two if rule.helpful is None else [*two, *(_Model(Stage.CLASS, rival) for rival in rivals)]


def _in_cases(votes: Votes | DualVotes, models: Sequence[_Model], hopeful: NDArray[np.bool_]) -> Votes | DualVotes:
    """The votes on one input in as many rows as there are cases; each model hopes in its own cases."""
    cases = {id(model.votes): row for model, row in zip(models, hopeful, strict=True)}
    rows = hopeful.shape[1]

    def spread(one: Votes) -> Outlook:
        return Outlook(
            one.sigma,
            np.repeat(one.selection, rows, axis=0),
            np.repeat(one.estimation, rows, axis=0),
            one.plan,
            None if one.segments is None else np.repeat(one.segments, rows, axis=0),
            hopeful=cases.get(id(one), np.zeros(rows, dtype=np.bool_)),
        )

    if isinstance(votes, Votes):
        return spread(votes)
    return DualVotes(spread(votes.router), tuple(map(spread, votes.experts)))
