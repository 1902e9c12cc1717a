"""Rule: a way to certify under its name, with what it promises and what it costs.

Enters: votes of one kind. Leaves: certificates. A name fixes the rule and the form of its bounds, and stands in the
header of every run. One rule a run: the larger of two rules' radii on the same input is not a certificate.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from dualrs.certificates.certificate import Certificates, Radii
from dualrs.errors import BadSetting, TooFewVotes, UnusableVotes
from dualrs.theory.budget import ErrorBudget, smallest_n
from dualrs.theory.looks import shares
from dualrs.votes import SamplingPlan, Votes

V = TypeVar("V")
W = TypeVar("W")

Cost = Callable[[V, Certificates, float], NDArray[np.int64]]


@dataclass(frozen=True)
class Rule(Generic[V]):
    """A rule for votes of one kind, ``reads``.

    ``strictest_level`` gives, for an alpha, the level of the bound that must exceed 1/2 if anything is to be certified.
    ``drawn`` says how many votes it would have taken by itself for each input. ``caveat`` is what has to be said of its
    guarantee; without one (``guaranteed`` False) it is for comparison only. ``outlook`` is the formula on hopes, for an
    adaptive run; None where it has no adaptive form. ``helpful`` says which unsampled experts could still raise the
    radius; None where only the chosen one counts. ``parameter`` is the number in its name, ``form`` what else its name
    says, if there is such a thing.
    """

    name: str
    title: str
    reads: type[V]
    formula: Callable[[V, float], Certificates]
    strictest_level: Callable[[float], float]
    drawn: Cost[V]
    caveat: str = ""
    guaranteed: bool = True
    outlook: Callable[[Any, float], Radii[Any]] | None = None
    helpful: Callable[[V, float], NDArray[np.bool_]] | None = None
    parameter: float | None = None
    form: Any = None

    def certify(self, votes: V, alpha: float) -> Certificates:
        """Certificates from votes; refuses those of another kind of run."""
        if not isinstance(votes, self.reads):
            needed, given = (getattr(kind, "whose", kind.__name__) for kind in (self.reads, type(votes)))
            if self.reads is Votes:
                raise UnusableVotes(f"rule {self.name} is for one sigma, but these votes are of {given}")
            raise UnusableVotes(f"rule {self.name} needs votes of {needed}, but these are of {given}")
        return self.formula(votes, alpha)

    def guarantee(self, alpha: float) -> str:
        """What it promises at a level, in words."""
        if not self.guaranteed:
            return f"none at level {alpha:g}: {self.caveat}"
        return f"wrong with probability at most {alpha:g} for each input" + (f"; {self.caveat}" if self.caveat else "")

    def check(self, plan: SamplingPlan, alpha: float) -> None:
        """Refuse, before any vote is drawn, a plan under which nothing can be certified."""
        needed = smallest_n(self.strictest_level(ErrorBudget(alpha).alpha) * shares(plan.looks)[-1])
        if plan.n0 < 1:
            raise BadSetting("n0 must be at least 1: without selection votes there is no class to certify")
        if plan.n < needed:
            raise TooFewVotes(
                f"n = {plan.n} cannot certify anything under rule {self.name} at alpha = {alpha:g}, even if all votes "
                f"agree; take n >= {needed}"
            )

    def through(self, reads: type[W], part: Callable[[W], V], name: str = "", title: str = "") -> "Rule[W]":
        """The same rule on a part of other votes, for comparison with what those were drawn for."""
        changed: Any = replace(
            self,
            name=name or self.name,
            title=title or self.title,
            reads=reads,  # type: ignore[arg-type]
            formula=lambda votes, alpha: self.formula(part(votes), alpha),  # type: ignore[arg-type]
            drawn=lambda votes, found, alpha: self.drawn(part(votes), found, alpha),  # type: ignore[arg-type]
            outlook=None,
            helpful=None if self.helpful is None else lambda votes, alpha: self.helpful(part(votes), alpha),  # type: ignore
        )
        found: Rule[W] = changed
        return found


def concluded(radii: Callable[[Any, float], Radii[Any]]) -> Callable[[Any, float], Certificates]:
    """The formula of a rule whose radii come from bounds."""
    return lambda votes, alpha: Certificates.conclude(radii(votes, alpha))
