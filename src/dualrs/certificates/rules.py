"""The rules by name. A name fixes the rule and the form of its bounds, and stands in the header of every run.

One rule a run: the larger of two rules' radii on the same input is not a certificate.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualrs.certificates.aces import aces
from dualrs.certificates.certificate import Certificates
from dualrs.certificates.cohen import cohen
from dualrs.certificates.fusion import fusion, helpful_experts
from dualrs.certificates.two_stage import nosplit, paper
from dualrs.errors import BadSetting, TooFewVotes, UnusableVotes
from dualrs.theory.budget import ErrorBudget, smallest_n
from dualrs.theory.looks import shares
from dualrs.votes import AcesVotes, AnyVotes, DualVotes, SamplingPlan, Votes

_WHOSE: dict[type[AnyVotes], str] = {
    Votes: "one sigma",
    DualVotes: "a router and experts",
    AcesVotes: "a selector, a classifier and a core network",
}


@dataclass(frozen=True)
class Rule:
    """A rule under its name.

    ``reads`` says whose votes: one model's, a router's and its experts', or those of ACES. ``strictest_level`` gives,
    for an alpha, the level of the bound that must exceed 1/2 if anything is to be certified. ``helpful`` says which
    unsampled experts could still raise the radius; None where only the chosen one counts.
    """

    name: str
    reads: type[AnyVotes]
    formula: Callable[[Any, float], Certificates]  # of votes of that kind
    strictest_level: Callable[[float], float]
    helpful: Callable[[DualVotes, float], NDArray[np.bool_]] | None = None

    def certify(self, votes: AnyVotes, alpha: float) -> Certificates:
        """Certificates from votes; refuses those of another kind of model."""
        if not isinstance(votes, self.reads):
            given = next(words for kind, words in _WHOSE.items() if isinstance(votes, kind))
            if self.reads is Votes:
                raise UnusableVotes(f"rule {self.name} is for one sigma, but these votes are of {given}")
            raise UnusableVotes(f"rule {self.name} needs votes of {_WHOSE[self.reads]}, but these are of {given}")
        return self.formula(votes, alpha)

    def check(self, plan: SamplingPlan, alpha: float) -> None:
        """Refuse, before any vote is drawn, a plan under which nothing can be certified."""
        needed = smallest_n(self.strictest_level(ErrorBudget(alpha).alpha) * shares(len(plan.looks))[-1])
        if plan.n0 < 1:
            raise BadSetting("n0 must be at least 1: without selection votes there is no class to certify")
        if plan.n < needed:
            raise TooFewVotes(
                f"n = {plan.n} cannot certify anything under rule {self.name} at alpha = {alpha:g}, even if all votes "
                f"agree; take n >= {needed}"
            )


_KNOWN = {
    known.name: known
    for known in (
        Rule("cohen", Votes, cohen, lambda a: a),
        Rule("paper", DualVotes, paper, lambda a: min(ErrorBudget(a).split(1, 1))),
        Rule("nosplit", DualVotes, nosplit, lambda a: min(ErrorBudget(a).nosplit())),
        # With two candidates, which ask least, r_j and L_A have the same level.
        Rule("fusion", DualVotes, fusion, lambda a: ErrorBudget(a).fusion(2).other, helpful_experts),
        Rule(
            "fusion-pair",
            DualVotes,
            lambda v, a: fusion(v, a, pair=True),
            lambda a: ErrorBudget(a).fusion(2).other,
            lambda v, a: helpful_experts(v, a, pair=True),
        ),
    )
}
NAMES = tuple(_KNOWN)
_ACES = "aces-"


def rule(name: str) -> Rule:
    """Look up a rule: one of `NAMES`, ``paper-1:4`` for alpha shared 1:4 between class and router, or ``aces-0.5``."""
    if match := re.fullmatch(r"paper-([0-9.]+):([0-9.]+)", name):
        try:
            split = float(match[1]), float(match[2])
            levels = ErrorBudget(0.5).split(*split)
        except ValueError as bad:
            raise BadSetting(f"rule {name!r}: the split must be two numbers such as paper-1:4") from bad
        if min(levels) <= 0:
            raise BadSetting(f"rule {name!r}: each stage needs a positive share of alpha")
        return Rule(name, DualVotes, lambda v, a: paper(v, a, split), lambda a: min(ErrorBudget(a).split(*split)))
    if name.startswith(_ACES):
        return _aces(aces_threshold(name))
    if name not in _KNOWN:
        raise BadSetting(
            f"unknown rule {name!r}; the rules are {', '.join(NAMES)}, paper-A:B for another split, and aces-THRESHOLD"
        )
    return _KNOWN[name]


def aces_rule(threshold: float) -> str:
    """The name of rule `aces` at a threshold of the entropy."""
    return _ACES + repr(float(threshold)).removesuffix(".0")


def aces_threshold(name: str) -> float:
    """The threshold of the entropy that a name of rule `aces` has in it."""
    try:
        return float(name.removeprefix(_ACES))
    except ValueError as bad:
        raise BadSetting(f"rule {name!r}: the threshold must be a number such as {_ACES}0.5") from bad


def _aces(threshold: float) -> Rule:
    return Rule(
        aces_rule(threshold),
        AcesVotes,
        lambda v, a: aces(v, a, threshold),
        lambda a: min(ErrorBudget(a).split(1, 1)),
    )
