"""Policies that sample every stream they want to its planned end."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from dualrs.certificates import Rule
from dualrs.certificates.aces import smoothed_at
from dualrs.votes import PLAIN, DualVotes, Part, SamplingPlan, Stage, Stream, Streams, Tally

Wanted = Iterator[Mapping[Stream, int]]  # streams, and how many votes of each are wanted in all
Policy = Callable[[Tally], Wanted]


def certify_policy(streams: Streams, plan: SamplingPlan, rule: Rule, alpha: float) -> Policy:
    """Votes for a certificate under one rule: what the rule can use, and no expert that could not help."""

    def one_stage(tally: Tally) -> Wanted:
        yield _whole(plan, both_parts(Stage.CLASS, streams.sigmas[0]))

    def two_stages(tally: Tally) -> Wanted:
        assert streams.sigma_e is not None
        selection, estimation = both_parts(Stage.ROUTER, streams.sigma_e)
        yield _whole(plan, [selection])
        chosen = top_sigma(streams, tally, Part.SELECTION)
        # Together, as they may vote on the same copies.
        yield _whole(plan, [estimation, *both_parts(Stage.CLASS, chosen)])
        if rule.helpful is not None:
            # A run that was killed may have left some votes of rivals here, and not all.
            known = {s: c for s, c in tally.counts.items() if s.stage is Stage.ROUTER or s.sigma == chosen}
            votes = streams.gather([Tally(known)], plan)
            assert isinstance(votes, DualVotes)
            wanted = rule.helpful(votes, alpha)[:, 0]
            rivals = [s for s, w in zip(streams.sigmas, wanted, strict=True) if w]
            yield _whole(plan, (Stream(Stage.CLASS, Part.ESTIMATION, s) for s in rivals))

    def with_core(tally: Tally) -> Wanted:
        assert streams.sigma_e is not None
        selection, estimation = both_parts(Stage.ROUTER, streams.sigma_e)
        yield _whole(plan, [selection])
        # Of classifier and core, whoever is selected at some threshold: all are compared afterwards.
        smoothed = smoothed_at(tally.total(selection, streams.routes)[None])
        classifier = both_parts(Stage.CLASS, streams.sigmas[0]) if smoothed.any() else []
        yield _whole(plan, [estimation, *classifier, *([] if smoothed.all() else [PLAIN])])

    if streams.thresholds:
        return with_core
    return one_stage if streams.sigma_e is None else two_stages


def complete_policy(streams: Streams, plan: SamplingPlan) -> Policy:
    """Votes for a certificate under any rule: those of every stream, whatever the others say."""

    def votes_wanted(tally: Tally) -> Wanted:
        yield _whole(plan, streams.answers)

    return votes_wanted


def predict_policy(streams: Streams, plan: SamplingPlan) -> Policy:
    """Votes for a prediction: the router's, then those of the expert that most of them name."""

    def votes_wanted(tally: Tally) -> Wanted:
        sigma = streams.sigmas[0]
        if streams.sigma_e is not None:
            yield _whole(plan, [Stream(Stage.ROUTER, Part.ESTIMATION, streams.sigma_e)])
            sigma = top_sigma(streams, tally, Part.ESTIMATION)
        yield _whole(plan, [Stream(Stage.CLASS, Part.ESTIMATION, sigma)])

    return votes_wanted


def label_policy(streams: Streams, plan: SamplingPlan) -> Policy:
    """Votes for a router's labels: those of every expert at its sigma."""

    def votes_wanted(tally: Tally) -> Wanted:
        yield _whole(plan, (Stream(Stage.CLASS, Part.ESTIMATION, sigma) for sigma in streams.sigmas))

    return votes_wanted


def assign_policy(streams: Streams, plan: SamplingPlan) -> Policy:
    """Votes for the sigma of a training input: the router's alone."""

    def votes_wanted(tally: Tally) -> Wanted:
        assert streams.sigma_e is not None
        yield _whole(plan, [Stream(Stage.ROUTER, Part.ESTIMATION, streams.sigma_e)])

    return votes_wanted


def both_parts(stage: Stage, sigma: float) -> list[Stream]:
    """The streams of one model: selection and estimation."""
    return [Stream(stage, part, sigma) for part in Part]


def top_sigma(streams: Streams, tally: Tally, part: Part) -> float:
    """The candidate that most of the router's votes name, ties by index."""
    assert streams.sigma_e is not None
    counts = tally.total(Stream(Stage.ROUTER, part, streams.sigma_e), len(streams.sigmas))
    return streams.sigmas[int(counts.argmax())]


def _whole(plan: SamplingPlan, streams: Iterable[Stream]) -> dict[Stream, int]:
    return {stream: plan.steps_of(stream)[-1] for stream in streams}
