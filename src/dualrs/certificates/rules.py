"""The rules by name. A name fixes the rule and the form of its bounds, and stands in the header of every run.

One rule a run: the larger of two rules' radii on the same input is not a certificate.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualrs.certificates.certificate import Certificates
from dualrs.certificates.cohen import cohen
from dualrs.certificates.fusion import fusion, helpful_experts
from dualrs.certificates.two_stage import nosplit, paper
from dualrs.errors import BadSetting, TooFewVotes, UnusableVotes
from dualrs.theory.budget import ErrorBudget, smallest_n
from dualrs.votes import DualVotes, SamplingPlan, Votes

NAMES = ("cohen", "paper", "nosplit", "fusion", "fusion-pair")


@dataclass(frozen=True)
class OneStage:
    """A rule over the votes of one model at one sigma."""

    name: str
    certify_votes: Callable[[Votes, float], Certificates]
    strictest_level: Callable[[float], float]

    def certify(self, votes: Votes | DualVotes, alpha: float) -> Certificates:
        """Certificates from votes; refuses the votes of two stages."""
        if isinstance(votes, DualVotes):
            raise UnusableVotes(f"rule {self.name} is for one sigma, but these votes are of a router and experts")
        return self.certify_votes(votes, alpha)

    def check(self, plan: SamplingPlan, alpha: float) -> None:
        """Refuse, before any vote is drawn, a plan under which nothing can be certified."""
        _check(self.name, plan, self.strictest_level(ErrorBudget(alpha).alpha), alpha)


@dataclass(frozen=True)
class TwoStage:
    """A rule over the votes of a router and its experts.

    ``helpful`` says which unsampled experts could still raise the radius; None where only the chosen one counts.
    """

    name: str
    certify_votes: Callable[[DualVotes, float], Certificates]
    strictest_level: Callable[[float], float]
    helpful: Callable[[DualVotes, float], NDArray[np.bool_]] | None = None

    def certify(self, votes: Votes | DualVotes, alpha: float) -> Certificates:
        """Certificates from votes; refuses the votes of a single stage."""
        if isinstance(votes, Votes):
            raise UnusableVotes(f"rule {self.name} needs votes of a router and experts, but these are of one sigma")
        return self.certify_votes(votes, alpha)

    def check(self, plan: SamplingPlan, alpha: float) -> None:
        """Refuse, before any vote is drawn, a plan under which nothing can be certified."""
        _check(self.name, plan, self.strictest_level(ErrorBudget(alpha).alpha), alpha)


Rule = OneStage | TwoStage


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
        return TwoStage(name, lambda v, a: paper(v, a, split), lambda a: min(ErrorBudget(a).split(*split)))
    # The level given is the strictest that must exceed 1/2 even if all votes agree; for fusion that is r_j's.
    known: dict[str, Rule] = {
        "cohen": OneStage("cohen", cohen, lambda a: a),
        "paper": TwoStage("paper", paper, lambda a: min(ErrorBudget(a).split(1, 1))),
        "nosplit": TwoStage("nosplit", nosplit, lambda a: a),
        "fusion": TwoStage("fusion", fusion, lambda a: a / 2, helpful_experts),
        "fusion-pair": TwoStage(
            "fusion-pair",
            lambda v, a: fusion(v, a, pair=True),
            lambda a: a / 2,
            lambda v, a: helpful_experts(v, a, pair=True),
        ),
    }
    if name not in known:
        raise BadSetting(f"unknown rule {name!r}; the rules are {', '.join(NAMES)} and paper-A:B for another split")
    return known[name]


def _check(name: str, plan: SamplingPlan, level: float, alpha: float) -> None:
    if plan.n0 < 1:
        raise BadSetting("n0 must be at least 1: without selection votes there is no class to certify")
    needed = smallest_n(level)
    if plan.n < needed:
        raise TooFewVotes(
            f"n = {plan.n} cannot certify anything under rule {name} at alpha = {alpha:g}, even if all votes agree; "
            f"take n >= {needed}"
        )
