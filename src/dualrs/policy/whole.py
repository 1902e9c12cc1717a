"""Streams to their planned end."""

from collections.abc import Iterable

from dualrs.votes import Part, SamplingPlan, Stage, Stream


def both_parts(stage: Stage, sigma: float) -> list[Stream]:
    """The streams of one model: selection and estimation."""
    return [Stream(stage, part, sigma) for part in Part]


def whole(plan: SamplingPlan, streams: Iterable[Stream]) -> dict[Stream, int]:
    """Some streams with all the votes that are planned of them."""
    return {stream: plan.steps_of(stream)[-1] for stream in streams}
