"""Form: the settings in the name of rule `cascade`, at which confidence votes pass and when a stage answers.

``cascade-0.4,0.3@0.6`` has votes at the noisiest stage pass below a softmax probability of 0.4, at the next below 0.3,
at no other; and the noisiest stage answers where a class has more than 0.6 of the votes, the others where it has more
than half. The last stage goes by plain majority unless it has a number of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dualrs.certificates.cascade import MAJORITY, of_every_stage
from dualrs.errors import BadSetting
from dualrs.votes import Votes

CASCADE = "cascade"


@dataclass(frozen=True)
class Form:
    """Confidences and thresholds of the first stages, the noisiest first; those that are not said are 0 and 1/2."""

    confidences: tuple[float, ...] = ()
    thresholds: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "confidences", tuple(c + 0.0 for c in self.confidences))  # no -0.0
        while self.confidences and not self.confidences[-1]:  # one spelling for one form
            object.__setattr__(self, "confidences", self.confidences[:-1])
        if any(not 0 <= c < 1 for c in self.confidences):
            raise BadSetting(f"confidences of a cascade lie between 0 and 1, got {list(self.confidences)}")
        if any(not MAJORITY <= c < 1 for c in self.thresholds):
            raise BadSetting(f"thresholds of a cascade are at least 1/2 and below 1, got {list(self.thresholds)}")

    @classmethod
    def parse(cls, name: str) -> "Form | None":
        """The form in the name of a rule; None if it is the name of another rule."""
        head, at, limits = name.partition("@")
        prefix, dash, passing = head.partition("-")
        if prefix != CASCADE:
            return None
        try:
            if (dash and not passing) or (at and not limits):
                raise ValueError("a number is missing")
            confidences, thresholds = (
                tuple(map(float, numbers.split(","))) if numbers else () for numbers in (passing, limits)
            )
        except ValueError as bad:
            raise BadSetting(
                f"rule {name!r}: confidences, and after an @ thresholds, are numbers such as cascade-0.4,0.3@0.6"
            ) from bad
        return cls(confidences, thresholds)

    @property
    def name(self) -> str:
        """The name of the rule in this form."""
        passing = f"-{_listed(self.confidences)}" if self.confidences else ""
        return f"{CASCADE}{passing}{f'@{_listed(self.thresholds)}' if self.thresholds else ''}"

    @property
    def words(self) -> str:
        """What is special about it, for a title."""
        passing = f", votes pass below {_listed(self.confidences)}" if self.confidences else ""
        return passing + (f", thresholds {_listed(self.thresholds)}" if self.thresholds else "")

    def limits(self, stages: int) -> list[float | None]:
        """The threshold of each of so many stages; None where none is said."""
        return of_every_stage(self.thresholds, stages)

    def check(self, stages: int, confidences: Sequence[float]) -> None:
        """Refuse a form that does not fit a run of so many stages whose votes tell these confidences."""
        if max(len(self.confidences), len(self.thresholds)) > stages:
            raise BadSetting(f"rule {self.name} speaks of more stages than there are: {stages} sigmas")
        for confidence in self.confidences:
            if confidence and confidence not in confidences:
                known = f"are recorded at {_listed((0.0, *confidences))}" if confidences else "do not tell it"
                raise BadSetting(
                    f"rule {self.name} asks whether networks are sure at {confidence:g}, and the votes {known}; give "
                    "the run other --confidences"
                )

    def heard(self, experts: Sequence[Votes]) -> tuple[Votes, ...]:
        """The votes of experts at several sigmas, in their order, where those below the confidence of a stage pass."""
        falling = sorted((e.sigma for e in experts), reverse=True)
        passing = dict(zip(falling, self.confidences, strict=False))
        return tuple(e.confident(passing.get(e.sigma, 0.0)) for e in experts)

    def stages(self, experts: Sequence[Votes]) -> list[Votes]:
        """The same, the noisiest first."""
        return sorted(self.heard(experts), key=lambda e: -e.sigma)


def _listed(numbers: Sequence[float]) -> str:
    return ",".join(map(_spelled, numbers))


def _spelled(number: float) -> str:
    """As short as can be, but so that it reads as the same number: a name is all that a ledger keeps of a form."""
    short = f"{number:g}"
    return short if float(short) == number else repr(float(number))
