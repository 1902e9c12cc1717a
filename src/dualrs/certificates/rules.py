"""The rules by name. A name fixes the rule and the form of its bounds, and stands in the header of every run.

One rule a run: the larger of two rules' radii on the same input is not a certificate.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualrs.certificates.certificate import Certificates
from dualrs.certificates.cohen import cohen
from dualrs.certificates.fusion import fusion, helpful_experts
from dualrs.certificates.two_stage import nosplit, paper
from dualrs.errors import BadSetting, TooFewVotes, UnusableVotes
from dualrs.theory.budget import ErrorBudget, smallest_n
from dualrs.votes import DualVotes, SamplingPlan, Votes


@dataclass(frozen=True)
class Rule:
    """A rule under its name.

    ``stages`` says whose votes it reads: one model's, or a router's and its experts'. ``strictest_level`` gives, for an
    alpha, the level of the bound that must exceed 1/2 if anything is to be certified. ``helpful`` says which unsampled
    experts could still raise the radius; None where only the chosen one counts.
    """

    name: str
    stages: int
    formula: Callable[[Any, float], Certificates]  # of Votes for one stage, of DualVotes for two
    strictest_level: Callable[[float], float]
    helpful: Callable[[DualVotes, float], NDArray[np.bool_]] | None = None

    def certify(self, votes: Votes | DualVotes, alpha: float) -> Certificates:
        """Certificates from votes; refuses those of another kind of model."""
        if self.stages == 1 and isinstance(votes, DualVotes):
            raise UnusableVotes(f"rule {self.name} is for one sigma, but these votes are of a router and experts")
        if self.stages == 2 and isinstance(votes, Votes):
            raise UnusableVotes(f"rule {self.name} needs votes of a router and experts, but these are of one sigma")
        return self.formula(votes, alpha)

    def check(self, plan: SamplingPlan, alpha: float) -> None:
        """Refuse, before any vote is drawn, a plan under which nothing can be certified."""
        needed = smallest_n(self.strictest_level(ErrorBudget(alpha).alpha))
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
        Rule("cohen", 1, cohen, lambda a: a),
        Rule("paper", 2, paper, lambda a: min(ErrorBudget(a).split(1, 1))),
        Rule("nosplit", 2, nosplit, lambda a: min(ErrorBudget(a).nosplit())),
        # With two candidates, which ask least, r_j and L_A have the same level.
        Rule("fusion", 2, fusion, lambda a: ErrorBudget(a).fusion(2).other, helpful_experts),
        Rule(
            "fusion-pair",
            2,
            lambda v, a: fusion(v, a, pair=True),
            lambda a: ErrorBudget(a).fusion(2).other,
            lambda v, a: helpful_experts(v, a, pair=True),
        ),
    )
}
NAMES = tuple(_KNOWN)


def rule(name: str) -> Rule:
    """Look up a rule: one of `NAMES`, or ``paper-1:4`` for alpha shared 1:4 between class and router."""
    if match := re.fullmatch(r"paper-([0-9.]+):([0-9.]+)", name):
        try:
            split = float(match[1]), float(match[2])
            levels = ErrorBudget(0.5).split(*split)
        except ValueError as bad:
            raise BadSetting(f"rule {name!r}: the split must be two numbers such as paper-1:4") from bad
        if min(levels) <= 0:
            raise BadSetting(f"rule {name!r}: each stage needs a positive share of alpha")
        return Rule(name, 2, lambda v, a: paper(v, a, split), lambda a: min(ErrorBudget(a).split(*split)))
    if name not in _KNOWN:
        raise BadSetting(f"unknown rule {name!r}; the rules are {', '.join(NAMES)} and paper-A:B for another split")
    return _KNOWN[name]
