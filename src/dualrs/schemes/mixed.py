"""Mixed: a smoothed router whose first candidate is a network without noise, which states a radius of its own.

The others are smoothed at their sigmas. The paper names such deterministic experts as future work.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from dualrs.certificates import Certificate, Certificates, Outcome, Rule
from dualrs.certificates.certificate import Radii
from dualrs.certificates.rule import concluded
from dualrs.certificates.selection import candidate_and_class, demand, top
from dualrs.errors import BadSetting, UnusableVotes
from dualrs.policy import both_parts, whole
from dualrs.schemes.aim import Aim, Move, but
from dualrs.schemes.dual import COMPARED, TwoStage, two_stage_rule
from dualrs.schemes.scheme import ORACLE, Seen, View, class_estimation, routing_limits, sigma_method, undecided
from dualrs.schemes.several import Several
from dualrs.theory.radius import round_down
from dualrs.votes import (
    BINS,
    PLAIN,
    Counts,
    Policy,
    SamplingPlan,
    Stage,
    Stated,
    Stream,
    Tally,
    Votes,
    Wanted,
    gather,
    gather_stated,
)

STATED = "stated"
WITHOUT_NOISE = "the network without noise"

V = TypeVar("V")


@dataclass(frozen=True)
class MixedVotes(TwoStage[Votes | Stated]):
    """Votes of a router and of each candidate's expert, or what one of them states that sees no noise."""

    whose: ClassVar[str] = "a router and experts, one without noise"
    how: ClassVar[str] = "run `dualrs certify --core` with a router and --sigmas into another ledger"

    def __post_init__(self) -> None:
        if self.router.answers != len(self.experts):
            raise UnusableVotes(f"the router has {self.router.answers} answers for {len(self.experts)} candidates")
        if len({e.selection.shape for e in self.experts}) != 1 or len(self.experts[0]) != len(self.router):
            raise UnusableVotes("router and experts must have votes for the same inputs and classes")


def drawn_by_two(votes: MixedVotes, found: Certificates, alpha: float) -> NDArray[np.int64]:
    """The router, and the expert that answers; a network without noise is asked once."""
    stage = votes.router.plan.n0 + votes.router.plan.n
    router = 1 if isinstance(votes.router, Stated) else stage
    return np.asarray(router + np.where(found.sigma_c > 0, stage, 1))


def _drawn_fused(rule: Rule[MixedVotes]) -> Callable[[MixedVotes, Certificates, float], NDArray[np.int64]]:
    """The same, and the experts beside it that could raise the radius."""

    def drawn(votes: MixedVotes, found: Certificates, alpha: float) -> NDArray[np.int64]:
        assert rule.helpful is not None, "it is a rule that reads others"
        chosen = top(votes.router)
        alone = replace(votes, experts=tuple(e.kept(chosen == i) for i, e in enumerate(votes.experts)))
        each = np.array([[1 if isinstance(e, Stated) else votes.router.plan.n] for e in votes.experts])
        return np.asarray(drawn_by_two(votes, found, alpha) + (each * rule.helpful(alone, alpha)).sum(axis=0))

    return drawn


def mixed(rule: Rule[Any], reads: type[MixedVotes]) -> Rule[MixedVotes]:
    """A rule for two stages on votes of which some are stated; without an adaptive form."""
    found = rule.through(reads, lambda votes: votes)
    return replace(found, drawn=drawn_by_two if found.helpful is None else _drawn_fused(found))


def stated_rule(reads: type[V], part: Callable[[V], Stated]) -> Rule[V]:
    """What a network without noise states, as a method of its own."""

    def radii(votes: V, alpha: float) -> Radii[Stated]:
        one = part(votes)
        demand(one.sampled > 0, f"answer of {WITHOUT_NOISE}")
        nowhere, zero = np.full(len(one), np.nan), np.zeros(len(one))
        return Radii(one.answer, zero, one.stays(one.answer), np.full(len(one), np.inf), nowhere, (one,))

    def once(votes: V, found: Certificates, alpha: float) -> NDArray[np.int64]:
        return np.ones(len(found), dtype=np.int64)

    found = Rule(
        STATED, f"{WITHOUT_NOISE} alone", reads, concluded(radii), lambda alpha: 1.0, once
    )  # it needs no votes
    return replace(found, caveat="and as nothing is estimated, with none")


@dataclass(frozen=True)
class Routed(Several[MixedVotes]):
    """What kinds with a router have in common in which some network sees no noise."""

    reads: ClassVar[type[MixedVotes]] = MixedVotes
    compared: ClassVar[tuple[str, ...]]  # rules that `compare` shows unasked
    predict_n0: ClassVar[int] = 100

    @property
    @abstractmethod
    def candidates(self) -> tuple[float, ...]:
        """In the order of the router's answers; 0 is the network without noise."""

    @property
    @abstractmethod
    def _router(self) -> tuple[list[Stream], int]:
        """The streams of the router, the first of which chooses, and how many answers name the same candidate."""

    # Votes

    @property
    def streams(self) -> dict[Stream, int]:
        """The router's votes and class votes, or one of each where there is no noise."""
        router, per_candidate = self._router
        found = dict.fromkeys(router, len(self.candidates) * per_candidate) | self.class_streams
        return found | ({PLAIN: self.classes * BINS} if 0.0 in self.candidates else {})

    def gather(self, tallies: Sequence[Tally], plan: SamplingPlan) -> MixedVotes:
        """Router and experts."""
        count, sigma_e = len(self.candidates), self._router[0][0].sigma
        router: Votes | Stated = gather_stated(tallies, Stage.ROUTER, count, plan)
        if sigma_e:
            router = gather(tallies, Stage.ROUTER, sigma_e, count, plan)
        core = [gather_stated(tallies, Stage.CLASS, self.classes, plan)] if 0.0 in self.candidates else []
        return self.reads(router, (*core, *self.gather_experts(tallies, plan)))

    def view(self, votes: MixedVotes) -> View:
        """The expert that the router selects, negative where that is the network without noise."""
        chosen, selected = candidate_and_class(votes)
        number = np.array([self.sigmas.index(c) if c else -1 for c in self.candidates])
        experts = tuple(e for e in votes.experts if isinstance(e, Votes))
        router = votes.router if isinstance(votes.router, Votes) else None
        found = View(experts, number[chosen], selected, router)
        if 0.0 not in self.candidates:
            return found
        core = self._core(votes)
        return replace(found, core=core.answer, core_radius=core.radius)

    def _core(self, votes: MixedVotes) -> Stated:
        found = votes.experts[self.candidates.index(0.0)]
        assert isinstance(found, Stated), "gathered so"
        return found

    def needed(self, tally: Tally, plan: SamplingPlan, rule: Rule[MixedVotes], alpha: float) -> Wanted:
        """The router, the expert that it selects, and rivals that could raise the radius."""
        (selection, *estimation), per_candidate = self._router
        asked = whole(plan, [selection])
        yield dict(asked)
        counts: Counts = tally.total(selection, self.streams[selection])
        chosen = self.candidates[int(counts.argmax()) // per_candidate]
        following = whole(plan, [*estimation, *(both_parts(Stage.CLASS, chosen) if chosen else [PLAIN])])
        asked |= following
        yield following
        if rule.helpful is not None:
            # A run that was killed may have left some votes of rivals here, and not all.
            wanted = rule.helpful(self.gather([tally.up_to(asked)], plan), alpha)[:, 0]
            rivals = [c for c, w in zip(self.candidates, wanted, strict=True) if w]
            yield whole(plan, [class_estimation(c) if c else PLAIN for c in rivals])

    # Rules

    def rule(self, name: str) -> Rule[MixedVotes]:
        """One of its rules, one sigma alone, or what the network without noise states."""
        if name == STATED and 0.0 in self.candidates:
            return stated_rule(self.reads, self._core)
        if name in map(sigma_method, self.sigmas):
            return super().rule(name)
        return self.own_rule(name)

    def derivable(self, own: str) -> list[str]:
        """Each sigma alone, the network without noise alone, the rules, and what a label could tell."""
        alone = [*map(sigma_method, sorted(self.sigmas)), *([STATED] if 0.0 in self.candidates else [])]
        return [*alone, *dict.fromkeys((*self.compared, own)), ORACLE]

    def predict_policy(self, plan: SamplingPlan, rule: Rule[MixedVotes], alpha: float) -> Policy:
        """What a certificate needs."""
        return self.policy(plan, rule, alpha)

    def aims(self, rule: Rule[MixedVotes], claim: Certificate) -> list[Aim]:
        """Another class under the chosen candidate, or a routing to another one with another class there."""
        found = []
        stream, per_candidate = self._router[0][0], self._router[1]
        for number, candidate in enumerate(self.candidates):
            naming = range(number * per_candidate, (number + 1) * per_candidate)
            routed = Move(Stage.ROUTER, stream.sigma, tuple(naming))
            others = but(claim.prediction, self.classes)
            answers = self.naming if candidate else pairs
            classified = Move(Stage.CLASS, candidate, answers(others), tuple(answers((c,)) for c in others))
            chosen = candidate == claim.sigma_c
            where = self._named(candidate)
            what = f"class of {where}" if chosen else f"routing to {where}"
            found.append(Aim(what, (classified,) if chosen else (routed, classified)))
        return found

    # Words

    def _named(self, candidate: float) -> str:
        return f"sigma {candidate:g}" if candidate else WITHOUT_NOISE

    def reason(self, seen: Seen, class_name: Callable[[int], str]) -> str:
        """Whether the class limits it, or the routing, and through which candidate."""
        certificate = seen.certificate
        y, chosen = class_name(seen.selected), self._named(certificate.sigma_c)
        if certificate.sigma_c:
            said = self.for_class(seen, class_name)
        else:
            said = f"{WITHOUT_NOISE} answers {y} and states a radius of {round_down(certificate.r_c)}"
        if certificate.outcome is Outcome.CLASS_UNDECIDED:
            return undecided(said) if certificate.sigma_c else f"It abstains: {said}."
        if seen.router is None:
            routed = f"the router names {chosen}"
        else:
            votes = seen.router[self.candidates.index(certificate.sigma_c)]
            routed = f"{votes:,} of {seen.router.sum():,} votes of the router are for {chosen}"
        holds = f"there the class stands up to {round_down(certificate.r_c)}"
        rival = "another candidate"
        if certificate.rival is not None:
            rival = f"{self._named(certificate.rival)}, where another class might win"
        return routing_limits(certificate, said, routed, rival, holds)


@final
@dataclass(frozen=True)
class Mixed(Routed):
    """A smoothed router at sigma_e, and as candidates a network without noise first, then ``sigmas``."""

    sigma_e: float = 0.0

    name: ClassVar[str] = "mixed"
    compared: ClassVar[tuple[str, ...]] = COMPARED

    @property
    def candidates(self) -> tuple[float, ...]:
        """The network without noise, and the sigmas."""
        return (0.0, *self.sigmas)

    @property
    def _router(self) -> tuple[list[Stream], int]:
        """Votes at sigma_e."""
        return both_parts(Stage.ROUTER, self.sigma_e), 1

    def _own_rule(self, name: str | None) -> Rule[MixedVotes]:
        """A rule for two stages, `fusion` by default."""
        found = two_stage_rule(name or "fusion")
        if found is None:
            raise BadSetting(f"rule {name} does not fit a smoothed router; use paper, nosplit or fusion")
        return mixed(found, self.reads)

    @property
    def route_names(self) -> tuple[str, ...]:
        """The candidates."""
        return tuple(f"sigma {c:g}" if c else "no noise" for c in self.candidates)

    @property
    def router_sigma(self) -> float:
        """Of the router."""
        return self.sigma_e


def pairs(answers: Sequence[int]) -> tuple[int, ...]:
    """The votes of a network without noise that name one of some answers, at any radius."""
    return tuple(answer * BINS + number for answer in answers for number in range(BINS))
