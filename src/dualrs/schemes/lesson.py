"""Lesson: the kinds of run that end in votes to train with, and in no certificate."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from dualrs.certificates import Rule
from dualrs.errors import BadSetting, UnusableVotes
from dualrs.policy import whole
from dualrs.schemes.scheme import Scheme, Seen, View
from dualrs.votes import Policy, SamplingPlan, Tally, Wanted

V = TypeVar("V")


@dataclass(frozen=True)
class Lesson(Scheme[V]):
    """Votes to train with."""

    certifies: ClassVar[bool] = False
    words: ClassVar[str]  # what a ledger of it holds
    refusal: ClassVar[str]  # why it has no rule

    def wanted(self, plan: SamplingPlan) -> Policy:
        """What an input wants: all votes."""
        return lambda tally: iter([whole(plan, self.streams)])

    def needed(self, tally: Tally, plan: SamplingPlan, rule: Rule[V], alpha: float) -> Wanted:
        """Refuse: no rule reads these votes."""
        raise BadSetting(self.refusal)

    def own_rule(self, name: str | None = None) -> Rule[V]:
        """Refuse: nothing is certified."""
        raise BadSetting(self.refusal)

    def _own_rule(self, name: str | None) -> Rule[V]:
        raise BadSetting(self.refusal)

    def derivable(self, own: str) -> list[str]:
        """Nothing."""
        return []

    def view(self, votes: V) -> View:
        """Refuse: nothing was selected."""
        raise UnusableVotes(f"these are votes of {self.words}, and no certificate follows from them")

    def contents(self, rule: str) -> str:
        """Words for it."""
        return self.words

    def reason(self, seen: Seen, class_name: Callable[[int], str]) -> str:
        """Refuse: there is no certificate to explain."""
        raise BadSetting(self.refusal)
