"""How sampling is made to stop: at the end, at random, wherever somebody who knows the truth likes, or by the policy.

Enters: votes of every stream to its last look. Leaves: the votes that a rule gets to see, in one version or in several
of which the worst counts. A rival expert may be left without any vote.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dualrs.certificates import Rule
from dualrs.policy import Grid, Target, Tolerance
from dualrs.schemes import Dual, DualVotes, Scheme, Single
from dualrs.votes import Policy, SamplingPlan, Stage, Tally, Unit, Votes

Stopped = Callable[[DualVotes, Generator], list[DualVotes]]

_MORE = 3  # random stops that the adversary tries, besides those at which all streams stop together


def at_the_end(votes: DualVotes, rng: Generator) -> list[DualVotes]:
    """Every stream goes to its last look."""
    return [votes]


def at_random(votes: DualVotes, rng: Generator) -> list[DualVotes]:
    """Every stream of every trial stops at a look of its own, drawn without a look at the votes."""
    looks, trials = len(votes.router.plan.looks), len(votes)
    chosen = votes.router.selection.argmax(axis=1)

    def cut(model: Votes, may_be_left_out: NDArray[np.bool_]) -> Votes:
        least = np.where(may_be_left_out, 0, 1)
        return cut_at(model, rng.integers(least, looks + 1, size=trials))

    experts = tuple(cut(e, chosen != i) for i, e in enumerate(votes.experts))
    return [DualVotes(cut(votes.router, np.zeros(trials, dtype=np.bool_)), experts)]


def at_the_first_false_claim(votes: DualVotes, rng: Generator) -> list[DualVotes]:
    """Whatever stop makes the claim false: all streams at one look, for each look, and some stops at random."""
    looks = range(1, len(votes.router.plan.looks) + 1)
    together = [DualVotes(cut_at(votes.router, k), tuple(cut_at(e, k) for e in votes.experts)) for k in looks]
    return together + [at_random(votes, rng)[0] for _ in range(_MORE)]


STOPS: dict[str, Stopped] = {
    "to the end": at_the_end,
    "stopped at random": at_random,
    "stopped where false": at_the_first_false_claim,
}


def cut_at(votes: Votes, looks: int | NDArray[np.int64]) -> Votes:
    """The votes of one model up to a number of looks, the same for all trials or one for each."""
    reached = np.arange(len(votes.plan.looks)) < np.reshape(looks, (-1, 1))
    if votes.segments is None:
        return replace(votes, estimation=votes.estimation * reached)
    segments = votes.segments * reached[:, :, None]
    return replace(votes, estimation=segments.sum(axis=1), segments=segments)


def straddling(radius: float) -> Target:
    """A grid with a point a hair beyond the truth, which it is an error to reach, among others on either side."""
    return Grid((0.0, 0.6 * radius, radius * (1 + 1e-9), 1.5 * radius))


def fine(radius: float) -> Target:
    """A tolerance so small that every look may still add something."""
    return Tolerance(0.05 * radius)


def by_the_policy(votes: Votes | DualVotes, rule: Rule[Any], alpha: float, target: Target) -> Votes | DualVotes:
    """What the library's own adaptive policy takes of the votes of every trial."""
    router = votes.router if isinstance(votes, DualVotes) else None
    experts = votes.experts if isinstance(votes, DualVotes) else (votes,)
    plan, sigma_e = experts[0].plan, None if router is None else router.sigma
    sigmas, classes = tuple(e.sigma for e in experts), experts[0].answers
    scheme: Scheme[Any] = Single(sigmas, classes) if sigma_e is None else Dual(sigmas, classes, sigma_e)
    policy = scheme.policy(plan, rule, alpha, target=target)
    models = {(Stage.CLASS, e.sigma): e for e in experts} | (
        {} if router is None else {(Stage.ROUTER, router.sigma): router}
    )
    taken = scheme.gather([_driven(policy, models, plan, row) for row in range(len(votes))], plan)
    assert isinstance(taken, Votes | DualVotes)
    return taken


def _driven(policy: Policy, models: dict[tuple[Stage, float], Votes], plan: SamplingPlan, row: int) -> Tally:
    """What a policy takes of the votes of one trial."""
    tally = Tally()
    for wanted in policy(tally):
        for stream, upto in wanted.items():
            model, steps = models[stream.stage, stream.sigma], plan.steps(stream.part)
            counts = model.selection[row][None] if len(steps) == 1 else _segments(model)[row]
            for start, stop, given in zip((0, *steps), steps, counts, strict=False):
                if stop <= upto:
                    tally.add(Unit("x", stream, start, stop), given[None])
    return tally


def _segments(votes: Votes) -> NDArray[np.int64]:
    assert votes.segments is not None, "a policy is about votes with looks"
    return votes.segments
