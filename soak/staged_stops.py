"""How the sampling of a cascade is made to stop: as `stops`, and any stage may be left without votes."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.random import Generator

from dualrs.policy import Target
from dualrs.schemes import Cascade
from dualrs.schemes.cascade import CascadeVotes, cascade_rule
from dualrs.schemes.form import Form
from dualrs.votes import SamplingPlan, Stage, Stream, Tally, Votes
from soak.staged import CLASSES, PASS
from soak.stops import cut_at

Stopped = Callable[[Sequence[Votes], Generator], list[list[Votes]]]
SURE = 0.5  # the confidence below which votes pass; any will do

_MORE = 3  # random stops that the adversary tries, besides those at which all stages stop together


def at_the_end(votes: Sequence[Votes], rng: Generator) -> list[list[Votes]]:
    """Every stage goes to its last look."""
    return [list(votes)]


def at_random(votes: Sequence[Votes], rng: Generator) -> list[list[Votes]]:
    """Every stage of every trial stops at a look of its own, or before the first."""
    looks = len(votes[0].plan.looks)
    return [[cut_at(v, rng.integers(0, looks + 1, size=len(v))) for v in votes]]


def at_the_first_false_claim(votes: Sequence[Votes], rng: Generator) -> list[list[Votes]]:
    """Whatever stop makes the claim false: all stages at one look, for each look, and some stops at random."""
    together = [[cut_at(v, k) for v in votes] for k in range(1, len(votes[0].plan.looks) + 1)]
    return together + [at_random(votes, rng)[0] for _ in range(_MORE)]


STAGED_STOPS: dict[str, Stopped] = {
    "to the end": at_the_end,
    "stopped at random": at_random,
    "stopped where false": at_the_first_false_claim,
}


def by_the_policy(votes: Sequence[Votes], limits: Sequence[float | None], alpha: float, target: Target) -> CascadeVotes:
    """What the library takes of the votes of every trial: with looks by its adaptive policy, else what is needed.

    The votes come to it as they would from networks, with their confidences: what passes is a vote for a class of which
    the network was not sure.
    """
    plan, sigmas = votes[0].plan, tuple(v.sigma for v in votes)
    scheme = Cascade(sigmas, CLASSES, confidences=(SURE,))
    form = Form((SURE,) * len(sigmas), tuple(c for c in limits if c is not None))
    rule = cascade_rule(form.name)
    assert rule is not None, "the name of a form is that of a rule"
    policy = scheme.policy(plan, rule, alpha, target=target if plan.adaptive else None)
    tallies = []
    for row in range(len(votes[0])):
        tally = Tally()
        for wanted in policy(tally):
            for stream, upto in wanted.items():
                _put(tally, stream, upto, votes[sigmas.index(stream.sigma)], row, plan)
        tallies.append(tally)
    return CascadeVotes(form.heard(scheme.gather(tallies, plan).experts))


def _put(tally: Tally, stream: Stream, upto: int, votes: Votes, row: int, plan: SamplingPlan) -> None:
    assert stream.stage is Stage.CLASS, "a cascade has no router"
    steps = plan.steps(stream.part)
    if stream.part == "selection":
        parts = votes.selection[row][None]
    else:
        parts = votes.estimation[row][None] if votes.segments is None else votes.segments[row]
    for start, stop, counts in zip((0, *steps), steps, parts, strict=False):
        if stop <= upto and start not in tally.counts.get(stream, {}):
            pairs = np.zeros((CLASSES, 2), dtype=np.int64)
            pairs[:, 1] = counts[:CLASSES]
            pairs[-1, 0] = counts[PASS]
            tally.put(stream, start, pairs.ravel())


def selected_again(votes: Votes) -> Votes:
    """A mistake: the estimation votes select the class too."""
    return replace(votes, selection=votes.estimation, plan=replace(votes.plan, n0=votes.plan.n))
