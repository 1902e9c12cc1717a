"""Scheme: the kind of a run. Which votes it has and wants, which rules read them, and how it explains itself.

Enters: the settings of a kind of run. Leaves: everything above the votes that differs from kind to kind. One file for
each kind; `dualrs.schemes` lists them.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

from dualrs.certificates import Certificate, Outcome, Predictions, Rule, check_predict, predicted
from dualrs.certificates.certificate import CLASS
from dualrs.certificates.cohen import cohen
from dualrs.certificates.rule import concluded
from dualrs.certificates.selection import Indices
from dualrs.errors import BadSetting, UnusableVotes, did_you_mean
from dualrs.policy import Target, both_parts, whole
from dualrs.schemes.aim import Aim
from dualrs.theory.bounds import Floats
from dualrs.theory.radius import round_down
from dualrs.votes import Counts, Part, Policy, Purpose, SamplingPlan, Stage, Stream, Tally, Votes, Wanted, gather

V = TypeVar("V")


def integer(name: str, value: Any) -> int:
    """A whole number in Python's own type; refuses what is none, and True and False."""
    if value is True or value is False or not isinstance(value, Integral):
        raise BadSetting(f"{name} must be a whole number, got {value!r}")
    if name != "seed" and abs(int(value)) > 2**53:  # beyond what all arithmetic on it can hold
        raise BadSetting(f"{name} must be at most {2**53}, got {value!r}")
    return int(value)


def real(name: str, value: Any) -> float:
    """A finite number in Python's own type."""
    try:
        if isinstance(value, Real) and math.isfinite(value):
            return float(value)
    except OverflowError:  # a whole number of hundreds of digits
        pass
    raise BadSetting(f"{name} must be a finite number, got {value!r}")


ORACLE = "oracle"  # a method that looks at labels: no rule
NEEDED, ALL = "needed", "all"  # which votes an input gets: those that the rule can use, or those of every stream

COHEN: Rule[Votes] = Rule(
    "cohen",
    "one sigma (Cohen et al.)",
    Votes,
    concluded(cohen),
    lambda alpha: alpha,
    lambda votes, found, alpha: votes.sampled * 0 + votes.plan.n0 + votes.plan.n,
    outlook=cohen,
)


@dataclass(frozen=True)
class View:
    """What all kinds of votes have in common, for whoever shows or measures them; a row per input.

    ``experts`` are the class votes, sigma by sigma; ``chosen`` is the number of the sigma that selection votes choose,
    negative where that is a network without noise, ``selected`` the class under it. ``core`` is the class of a network
    without noise, negative where it was not asked, and ``core_radius`` what it states, if it does.
    """

    experts: tuple[Votes, ...]
    chosen: Indices
    selected: Indices
    router: Votes | None = None
    core: Indices | None = None
    core_radius: Floats | None = None


class Seen(NamedTuple):
    """One input as its certificate saw it: estimation counts of the router and of the experts, None where not asked."""

    certificate: Certificate
    selected: int  # the class that the certificate is about, also where it abstains
    router: Counts | None
    experts: tuple[Counts | None, ...]
    rule: Rule[Any]


@dataclass(frozen=True)
class Scheme(ABC, Generic[V]):
    """A kind of run. The fields of its dataclass stand in the header; ``classes`` is 0 until a network was tried."""

    name: ClassVar[str]
    purpose: ClassVar[Purpose] = Purpose.CERTIFY
    certifies: ClassVar[bool] = True
    routes: ClassVar[bool] = False  # whether a router chooses among sigmas

    sigmas: tuple[float, ...]
    classes: int = 0

    def __post_init__(self) -> None:
        # One spelling per value (1 and 1.0, list and tuple, numpy scalars): fingerprints must not depend on it.
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name == "classes":
                value = integer(f.name, value)
            elif f.type == tuple[float, ...]:
                if not isinstance(value, Iterable):
                    raise BadSetting(f"{f.name} must be a list of numbers, got {value!r}")
                value = tuple(real(f.name, v) for v in value)
            else:
                value = real(f.name, value)
            object.__setattr__(self, f.name, value)
        if not self.sigmas or len(set(self.sigmas)) != len(self.sigmas) or min(self.sigmas) <= 0:
            raise BadSetting(f"sigmas must be different positive numbers, got {self.sigmas}")

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise, of a kind that has one."""
        (only,) = self.sigmas
        return only

    @property
    def settings(self) -> dict[str, Any]:
        """The fields that stand in a header."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def with_answers(self, answers: int) -> Self:
        """The same kind, whose classifier has so many different answers."""
        return replace(self, classes=answers)

    # Votes

    @property
    @abstractmethod
    def streams(self) -> dict[Stream, int]:
        """Every stream of an input, and how many different answers its votes can be."""

    @abstractmethod
    def gather(self, tallies: Sequence[Tally], plan: SamplingPlan) -> V:
        """Put the tallies of some inputs into the form that rules read."""

    @abstractmethod
    def view(self, votes: V) -> View:
        """What these votes have in common with those of other kinds."""

    def gather_experts(self, tallies: Sequence[Tally], plan: SamplingPlan) -> tuple[Votes, ...]:
        """The class votes of some inputs, sigma by sigma."""
        return tuple(gather(tallies, Stage.CLASS, s, self.classes, plan) for s in self.sigmas)

    # Which votes next

    def policy(
        self, plan: SamplingPlan, rule: Rule[V], alpha: float, *, votes: str = NEEDED, target: Target | None = None
    ) -> Policy:
        """What an input of a certification wants: what its rule can use, every stream, or what a target asks for."""
        if votes == ALL:
            return lambda tally: iter([whole(plan, self.streams)])
        if target is None:
            return lambda tally: self.needed(tally, plan, rule, alpha)
        if rule.outlook is None:
            raise BadSetting(f"rule {rule.name} has no adaptive form; sample with a fixed n")
        wanted = target
        return lambda tally: self.adaptive(tally, plan, rule, alpha, wanted)

    @abstractmethod
    def needed(self, tally: Tally, plan: SamplingPlan, rule: Rule[V], alpha: float) -> Wanted:
        """Votes for a certificate under one rule, with n fixed, and no expert that could not help."""

    def adaptive(self, tally: Tally, plan: SamplingPlan, rule: Rule[V], alpha: float, target: Target) -> Wanted:
        """Votes for a certificate under one rule, as many as the target needs."""
        raise BadSetting(f"a run of kind {self.name} has no adaptive form; sample with a fixed n")

    # Rules

    def own_rule(self, name: str | None = None) -> Rule[V]:
        """A rule under which a run of this kind may be certified; without a name, the default."""
        if name is not None:
            from dualrs.schemes import rule  # which knows all kinds, and says so if a name is of none of them

            rule(name)
        return self._own_rule(name)

    @abstractmethod
    def _own_rule(self, name: str | None) -> Rule[V]:
        """The same, of a name that some rule has."""

    @abstractmethod
    def derivable(self, own: str) -> list[str]:
        """The names of all methods that complete votes allow; ``own`` is the rule of the run."""

    def rule(self, name: str) -> Rule[V]:
        """A rule of this name that these votes allow: the run's own, another for comparison, or one sigma alone."""
        from dualrs.schemes import rule

        alone = [sigma_method(sigma) for sigma in self.sigmas]
        if name in alone:
            number, reads = alone.index(name), self.own_rule().reads
            return fixed_sigma(reads, self.sigmas[number], lambda votes: self.view(votes).experts[number])
        found = rule(name)
        if found.reads is not self.own_rule().reads:
            own: Any = self.own_rule().reads
            raise UnusableVotes(f"rule {name} needs votes of {found.reads.whose}, but these are of {own.whose}")
        return found

    def own_method(self, rule: str) -> str:
        """The name in a comparison of what a run was certified under."""
        return rule

    # Predictions

    predict_stages: ClassVar[int] = 1  # tests that share alpha
    predict_n0: ClassVar[int] = 0  # selection votes, of kinds that predict the class of a certificate

    def predict_plan(self, n: int, rule: Rule[V], alpha: float) -> SamplingPlan:
        """How many votes a prediction takes per stage; refuses a plan that could decide nothing."""
        plan = SamplingPlan(self.predict_n0, n)
        if self.predict_n0:
            rule.check(plan, alpha)
        else:
            check_predict(plan, alpha, stages=self.predict_stages)
        return plan

    def predict_policy(self, plan: SamplingPlan, rule: Rule[V], alpha: float) -> Policy:
        """What an input of a prediction wants."""
        raise BadSetting(f"a model of kind {self.name} is certified, and not asked for predictions: use certify")

    def predict(self, votes: V, rule: Rule[V], alpha: float) -> Predictions:
        """The class of each input without a radius: unless a kind has a test of its own, that of its certificate."""
        return predicted(rule.certify(votes, alpha))

    def aims(self, rule: Rule[V], claim: Certificate) -> list[Aim]:
        """What an attack on a certificate may try."""
        raise BadSetting(f"a run of kind {self.name} has no certificates to attack")

    # Words

    @property
    def route_names(self) -> tuple[str, ...]:
        """What the answers of the router mean; empty without one."""
        return ()

    router_name: ClassVar[str] = "router"  # what the network is called whose answers these are
    before: ClassVar[str] = "routing"  # what else than the class may limit a radius

    @property
    def router_sigma(self) -> float | None:
        """Its sigma; None without one."""
        return None

    def sigmas_of(self, certificate: Certificate) -> tuple[float, ...]:
        """The sigmas of the class votes of one input, in the order of `View.experts`."""
        return self.sigmas

    def contents(self, rule: str) -> str:
        """What a ledger of such a run holds."""
        return f"certificates under rule {rule}"

    def heard(self, experts: tuple[Votes, ...], rule: Rule[V]) -> tuple[Votes, ...]:
        """The class votes as a rule reads them, sigma by sigma; the last answer may be a pass."""
        return experts

    @abstractmethod
    def reason(self, seen: Seen, class_name: Callable[[int], str]) -> str:
        """What limits a certificate, in a sentence or two."""

    def for_class(self, seen: Seen, class_name: Callable[[int], str]) -> str:
        """How many votes under the chosen sigma are for the class."""
        sigma = seen.certificate.sigma_c
        counts, y = seen.experts[self.sigmas.index(sigma)], class_name(seen.selected)
        if counts is None:
            return f"no votes were taken for {y}"
        return f"{counts[seen.selected]:,} of {counts.sum():,} votes under sigma {sigma:g} are for {y}"


def class_limits(said: str, certificate: Certificate) -> str:
    """That the class limits it, given what was said of its votes."""
    return f"The class limits it: {said}; beyond {round_down(certificate.r_c)} another class might win."


def routing_limits(certificate: Certificate, said: str, routed: str, rival: str, holds: str) -> str:
    """What limits a class that a routing leads to, given what was said of its votes, the routing and its rival."""
    if certificate.outcome is Outcome.ROUTER_UNDECIDED:
        return f"It abstains: {routed}, and the true answer might be {rival}; {holds}."
    beyond = round_down(certificate.r_sigma)
    if certificate.limited_by == CLASS:
        return f"{class_limits(said, certificate)} A change of the routing does no harm up to {beyond}."
    return f"The routing limits it: {routed}; beyond {beyond} it might answer {rival}. Yet {holds}."


def undecided(said: str) -> str:
    """That too few votes are for the class."""
    return f"It abstains: {said}, which is too few to show that it wins."


def sigma_method(sigma: float) -> str:
    """The name of the method that is one fixed sigma."""
    return f"sigma-{sigma:g}"


def fixed_sigma(reads: type[V], sigma: float, part: Callable[[V], Votes]) -> Rule[V]:
    """Rule `cohen` on the votes of one expert, as a method of its own."""
    made = COHEN.through(reads, part, sigma_method(sigma), f"sigma {sigma:g} alone (Cohen et al.)")
    return replace(made, parameter=sigma)


def unknown(name: str, known: Sequence[str]) -> BadSetting:
    """A name that no rule has."""
    return BadSetting(f"unknown rule {name!r}; the rules are {', '.join(known)}{did_you_mean(name, known)}")


def class_estimation(sigma: float) -> Stream:
    """The stream of estimation votes of an expert."""
    return Stream(Stage.CLASS, Part.ESTIMATION, sigma)


def begin(plan: SamplingPlan, stage: Stage, sigma: float) -> dict[Stream, int]:
    """Both parts of a model up to their first look."""
    return {stream: plan.steps(stream.part)[0] for stream in both_parts(stage, sigma)}
