"""Cascade: a classifier at several sigmas without a router, the noisiest first (Jeong and Shin 2023)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from dualrs.certificates import Certificates, Outcome, Rule
from dualrs.certificates.multiscale import multiscale, passed
from dualrs.certificates.multiscale_authors import multiscale_authors
from dualrs.certificates.rule import concluded
from dualrs.errors import BadSetting, UnusableVotes
from dualrs.policy import both_parts, whole
from dualrs.schemes.scheme import (
    AUTHORS,
    MULTISCALE,
    ORACLE,
    Scheme,
    Seen,
    View,
    class_limits,
    fixed_sigma,
    sigma_method,
    undecided,
)
from dualrs.theory.budget import ErrorBudget
from dualrs.theory.radius import round_down
from dualrs.votes import SamplingPlan, Stage, Stream, Tally, Votes, Wanted


@final
@dataclass(frozen=True)
class CascadeVotes:
    """Votes of a classifier, or of an expert each, at several sigmas, for the same inputs."""

    experts: tuple[Votes, ...]

    whose: ClassVar[str] = "several sigmas"
    how: ClassVar[str] = "run `dualrs certify --all-votes` with a router, or with --sigmas alone, into another ledger"

    def __post_init__(self) -> None:
        if len({e.selection.shape for e in self.experts}) != 1:
            raise UnusableVotes("the experts must have votes for the same inputs and classes")

    def __len__(self) -> int:
        return len(self.experts[0])


def _reached(votes: CascadeVotes, found: Certificates, alpha: float) -> NDArray[np.int64]:
    """Both parts of every stage down to the one at which it stopped."""
    plan = votes.experts[0].plan
    sigmas = np.array([v.sigma for v in votes.experts])
    return np.asarray((sigmas[:, None] >= found.sigma_c).sum(axis=0) * (plan.n0 + plan.n))


MULTISCALE_RULE: Rule[CascadeVotes] = Rule(
    MULTISCALE,
    "Multiscale, sound levels",
    CascadeVotes,
    concluded(lambda votes, alpha: multiscale(votes.experts, alpha)),
    lambda alpha: float(ErrorBudget(alpha).cascade().lower),
    _reached,
    caveat="independent noise at each stage, every bound at alpha/2",
)
AUTHORS_RULE: Rule[CascadeVotes] = Rule(
    AUTHORS,
    "Multiscale, authors' levels",
    CascadeVotes,
    concluded(lambda votes, alpha: multiscale_authors(votes.experts, alpha)),
    lambda alpha: alpha,
    _reached,
    caveat="the authors' levels and asymptotic interval, for comparison only",
    guaranteed=False,
)
RULES = {rule.name: rule for rule in (MULTISCALE_RULE, AUTHORS_RULE)}


@final
@dataclass(frozen=True)
class Cascade(Scheme[CascadeVotes]):
    """Several sigmas, and no router: the noisiest stage that is sure answers."""

    name: ClassVar[str] = "cascade"

    @property
    def streams(self) -> dict[Stream, int]:
        """Class votes at each sigma."""
        return {stream: self.classes for sigma in self.sigmas for stream in both_parts(Stage.CLASS, sigma)}

    def gather(self, tallies: Sequence[Tally], plan: SamplingPlan) -> CascadeVotes:
        """The class votes, sigma by sigma."""
        return CascadeVotes(self.gather_experts(tallies, plan))

    def view(self, votes: CascadeVotes) -> View:
        """The noisiest stage with most of its selection votes for one class, or the last."""
        order = np.argsort([-e.sigma for e in votes.experts])
        sure = np.stack([2 * e.selection.max(axis=1) > e.selection.sum(axis=1) for e in votes.experts])[order]
        sure[-1] = True
        chosen = order[sure.argmax(axis=0)]
        selected = np.stack([e.selection.argmax(axis=1) for e in votes.experts])[chosen, np.arange(len(votes))]
        return View(votes.experts, chosen, selected)

    def needed(self, tally: Tally, plan: SamplingPlan, rule: Rule[CascadeVotes], alpha: float) -> Wanted:
        """The noisiest stage, and the next where it is passed."""
        level = ErrorBudget(alpha).cascade().upper
        for sigma in sorted(self.sigmas, reverse=True):
            yield whole(plan, both_parts(Stage.CLASS, sigma))
            (stage,) = Cascade((sigma,), self.classes).gather([tally], plan).experts
            if not passed(stage, level)[0]:
                return

    def _own_rule(self, name: str | None) -> Rule[CascadeVotes]:
        """Rule `multiscale`."""
        if name not in (None, MULTISCALE):
            raise BadSetting(f"rule {name!r} does not fit several sigmas without a router; use {MULTISCALE}")
        return MULTISCALE_RULE

    def derivable(self, own: str) -> list[str]:
        """Each sigma alone, and the cascades."""
        return [*map(sigma_method, sorted(self.sigmas)), *RULES, ORACLE]

    def rule(self, name: str) -> Rule[CascadeVotes]:
        """A rule of the cascade, or that of one of its sigmas."""
        for number, sigma in enumerate(self.sigmas):
            if name == sigma_method(sigma):
                return fixed_sigma(CascadeVotes, sigma, lambda votes, number=number: votes.experts[number])  # type: ignore[misc]
        return super().rule(name)

    def reason(self, seen: Seen, class_name: Callable[[int], str]) -> str:
        """Which stage answers, and whether the class or a stage before it limits the radius."""
        certificate, said = seen.certificate, self.for_class(seen, class_name)
        if certificate.outcome is Outcome.CLASS_UNDECIDED:
            return undecided(said)
        if certificate.rival is None:
            return class_limits(said, certificate)
        beyond = round_down(certificate.r_sigma)
        if certificate.outcome is Outcome.ROUTER_UNDECIDED:
            return f"It abstains: at sigma {certificate.rival:g}, which comes before, another class might win."
        return (
            f"A stage before limits it: beyond {beyond} another class might win at sigma {certificate.rival:g}. Yet "
            f"under sigma {certificate.sigma_c:g} the class stands up to {round_down(certificate.r_c)}."
        )
