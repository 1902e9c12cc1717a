"""Several: what kinds of run have in common whose classifier, or an expert each, votes at several sigmas."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Self, TypeVar

from dualrs.policy import both_parts
from dualrs.schemes.scheme import Scheme
from dualrs.votes import SamplingPlan, Stage, Stream, Tally, Votes, check_confidences, gather

# At which the votes of a cascade may pass, unless a run has others.
CONFIDENCES = (0.3, 0.4, 0.5, 0.6)


V = TypeVar("V")  # votes of experts at several sigmas, ``experts``, and perhaps others


@dataclass(frozen=True)
class Several(Scheme[V]):
    """A classifier at several sigmas, or an expert for each.

    ``confidences`` are those at which votes tell whether the network was sure; empty where they name classes alone.
    """

    confidences: tuple[float, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "confidences", check_confidences(self.confidences))

    def with_answers(self, answers: int) -> Self:
        """The same kind, whose classifier has so many answers: pairs of a class and a bin of confidence."""
        return replace(self, classes=answers // (len(self.confidences) + 1))

    @property
    def class_streams(self) -> dict[Stream, int]:
        """Class votes at each sigma."""
        answers = self.classes * (len(self.confidences) + 1)
        return {stream: answers for sigma in self.sigmas for stream in both_parts(Stage.CLASS, sigma)}

    def gather_experts(self, tallies: Sequence[Tally], plan: SamplingPlan) -> tuple[Votes, ...]:
        """The class votes of some inputs, sigma by sigma, with their confidences."""
        settings = (self.classes, plan, self.confidences)
        return tuple(gather(tallies, Stage.CLASS, sigma, *settings) for sigma in self.sigmas)

    def naming(self, classes: Iterable[int], confidence: float = 0.0) -> tuple[int, ...]:
        """The answers of an expert that name one of some classes and reach a confidence."""
        bins = len(self.confidences) + 1
        first = bisect_left(self.confidences, confidence) + 1 if confidence else 0
        return tuple(c * bins + b for c in classes for b in range(first, bins))
