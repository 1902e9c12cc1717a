"""Which votes an input needs next: small state machines over streams, one per kind of job.

A policy is a generator: it yields the streams it wants next and is resumed when their votes are in the tally it
was given. Policies may look at votes; the engine, which only counts, may not.
"""

from collections.abc import Callable, Iterator, Sequence

from dualrs.certificates import Rule
from dualrs.votes import DualVotes, Part, SamplingPlan, Stage, Stream, Streams, Tally

Wanted = Iterator[Sequence[Stream]]
Policy = Callable[[Tally], Wanted]


def certify_policy(streams: Streams, plan: SamplingPlan, rule: Rule, alpha: float) -> Policy:
    """Votes for a certificate under one rule: what the rule can use, and no expert that could not help."""

    def one_stage(tally: Tally) -> Wanted:
        yield _both_parts(Stage.CLASS, streams.sigmas[0])

    def two_stages(tally: Tally) -> Wanted:
        assert streams.sigma_e is not None
        yield _both_parts(Stage.ROUTER, streams.sigma_e)
        chosen = _top_sigma(streams, tally, Part.SELECTION)
        yield _both_parts(Stage.CLASS, chosen)
        if rule.helpful is not None:
            # A run that was killed may have left some votes of rivals here, and not all.
            known = {s: c for s, c in tally.counts.items() if s.stage is Stage.ROUTER or s.sigma == chosen}
            votes = streams.gather([Tally(known)], plan)
            assert isinstance(votes, DualVotes)
            wanted = rule.helpful(votes, alpha)[:, 0]
            yield [Stream(Stage.CLASS, Part.ESTIMATION, s) for s, w in zip(streams.sigmas, wanted, strict=True) if w]

    return one_stage if streams.sigma_e is None else two_stages


def complete_policy(streams: Streams) -> Policy:
    """Votes for a certificate under any rule: those of every stream, whatever the others say."""

    def votes_wanted(tally: Tally) -> Wanted:
        yield list(streams.answers)

    return votes_wanted


def predict_policy(streams: Streams) -> Policy:
    """Votes for a prediction: the router's, then those of the expert that most of them name."""

    def votes_wanted(tally: Tally) -> Wanted:
        sigma = streams.sigmas[0]
        if streams.sigma_e is not None:
            yield [Stream(Stage.ROUTER, Part.ESTIMATION, streams.sigma_e)]
            sigma = _top_sigma(streams, tally, Part.ESTIMATION)
        yield [Stream(Stage.CLASS, Part.ESTIMATION, sigma)]

    return votes_wanted


def label_policy(streams: Streams) -> Policy:
    """Votes for a router's labels: those of every expert at its sigma."""

    def votes_wanted(tally: Tally) -> Wanted:
        yield [Stream(Stage.CLASS, Part.ESTIMATION, sigma) for sigma in streams.sigmas]

    return votes_wanted


def assign_policy(streams: Streams) -> Policy:
    """Votes for the sigma of a training input: the router's alone."""

    def votes_wanted(tally: Tally) -> Wanted:
        assert streams.sigma_e is not None
        yield [Stream(Stage.ROUTER, Part.ESTIMATION, streams.sigma_e)]

    return votes_wanted


def _both_parts(stage: Stage, sigma: float) -> list[Stream]:
    return [Stream(stage, part, sigma) for part in Part]


def _top_sigma(streams: Streams, tally: Tally, part: Part) -> float:
    """The candidate that most of the router's votes name, ties by index."""
    assert streams.sigma_e is not None
    counts = tally.total(Stream(Stage.ROUTER, part, streams.sigma_e), len(streams.sigmas))
    return streams.sigmas[int(counts.argmax())]
