"""Dual: a smoothed router picks the sigma of each input, a smoothed classifier answers under it. Section 5.1."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, final

import numpy as np
from numpy.typing import NDArray

from dualrs.certificates import Certificate, Certificates, Outcome, Predictions, Rule, predict_dual
from dualrs.certificates.certificate import Evidence
from dualrs.certificates.fusion import fusion, helpful_experts
from dualrs.certificates.rule import concluded
from dualrs.certificates.selection import candidate_and_class, top
from dualrs.certificates.two_stage import nosplit, paper
from dualrs.errors import BadSetting, UnusableVotes
from dualrs.policy import Hopes, Target, both_parts, going_on, next_look, whole
from dualrs.schemes.aim import Aim, Move, but
from dualrs.schemes.cascade import CascadeVotes, cascade_rule, cascades_beside
from dualrs.schemes.scheme import ORACLE, Seen, View, begin, class_estimation, routing_limits, sigma_method, undecided
from dualrs.schemes.several import Several
from dualrs.theory.budget import ErrorBudget
from dualrs.theory.radius import round_down
from dualrs.votes import Part, Policy, SamplingPlan, Stage, Stream, Tally, Votes, Wanted, gather


@dataclass(frozen=True)
class TwoStage(Generic[Evidence]):
    """Bounds of a router at sigma_e and of each candidate's expert at its own sigma, for the same inputs."""

    router: Evidence
    experts: tuple[Evidence, ...]

    def __len__(self) -> int:
        return len(self.router)

    @property
    def sigmas(self) -> tuple[float, ...]:
        """The candidate sigmas, in the order of the router's answers."""
        return tuple(e.sigma for e in self.experts)


@final
@dataclass(frozen=True)
class DualVotes(TwoStage[Votes]):
    """Votes of a router at sigma_e and of each candidate's expert at its own sigma, for the same inputs."""

    whose: ClassVar[str] = "a router and experts"
    how: ClassVar[str] = "run `dualrs certify --all-votes` with a router into another ledger"

    def __post_init__(self) -> None:
        if len(self.experts) < 2:
            raise UnusableVotes("two stages need at least two candidate sigmas; for one, use rule cohen")
        if self.router.answers != len(self.experts):
            raise UnusableVotes(
                f"the router has {self.router.answers} answers but there are {len(self.experts)} candidate sigmas"
            )
        if self.router.sigma < max(self.sigmas):
            raise BadSetting(f"sigma_e = {self.router.sigma} lies below the largest candidate sigma {max(self.sigmas)}")
        shapes = {e.selection.shape for e in self.experts}
        if len(shapes) != 1 or len(self.experts[0]) != len(self.router):
            raise UnusableVotes("router and experts must have votes for the same inputs and classes")


def _two_stage(
    name: str,
    radii: Callable[..., object],
    level: Callable[[float], float],
    helpful: Callable[[DualVotes, float], NDArray[np.bool_]] | None = None,
) -> Rule[DualVotes]:
    def drawn(votes: DualVotes, found: Certificates, alpha: float) -> NDArray[np.int64]:
        plan = votes.router.plan
        both = np.full(len(votes), 2 * (plan.n0 + plan.n))
        if helpful is None or plan.adaptive:
            return both
        return np.asarray(both + plan.n * helpful(_chosen_only(votes), alpha).sum(axis=0))

    formula, outlook = concluded(radii), radii  # type: ignore[arg-type]
    return Rule(name, f"dual, rule {name}", DualVotes, formula, level, drawn, outlook=outlook, helpful=helpful)  # type: ignore[arg-type]


def _chosen_only(votes: DualVotes) -> DualVotes:
    """The votes of the router and of the expert that it selects; the others as if not sampled."""
    chosen = top(votes.router)

    return DualVotes(votes.router, tuple(e.kept(chosen == i) for i, e in enumerate(votes.experts)))


def _fusion(name: str, pair: bool) -> Rule[DualVotes]:
    return _two_stage(
        name,
        lambda votes, alpha: fusion(votes, alpha, pair),
        lambda alpha: ErrorBudget(alpha).fusion(2).other,  # with two candidates, which ask least, r_j and L_A are alike
        lambda votes, alpha: helpful_experts(votes, alpha, pair),
    )


def _paper(name: str, split: tuple[float, float]) -> Rule[DualVotes]:
    return _two_stage(
        name, lambda votes, alpha: paper(votes, alpha, split), lambda alpha: min(ErrorBudget(alpha).split(*split))
    )


RULES = {
    rule.name: rule
    for rule in (
        _paper("paper", (1, 1)),
        _two_stage("nosplit", nosplit, lambda alpha: min(ErrorBudget(alpha).nosplit())),
        _fusion("fusion", pair=False),
        _fusion("fusion-pair", pair=True),
    )
}
COMPARED = ("paper", "nosplit", "fusion")


def two_stage_rule(name: str) -> Rule[DualVotes] | None:
    """One of `RULES`, or ``paper-1:4`` for alpha shared 1:4 between class and router; None if there is none."""
    match = re.fullmatch(r"paper-([0-9.]+):([0-9.]+)", name)
    if match is None:
        return RULES.get(name)
    try:
        split = float(match[1]), float(match[2])
        levels = ErrorBudget(0.5).split(*split)
    except ValueError as bad:
        raise BadSetting(f"rule {name!r}: the split must be two numbers such as paper-1:4") from bad
    if min(levels) <= 0:
        raise BadSetting(f"rule {name!r}: each stage needs a positive share of alpha")
    return _paper(name, split)


@final
@dataclass(frozen=True)
class Dual(Several[DualVotes]):
    """Candidate sigmas, a router at sigma_e that picks one for each input, and an expert for each."""

    sigma_e: float = 0.0

    name: ClassVar[str] = "dual"
    routes: ClassVar[bool] = True
    predict_stages: ClassVar[int] = 2

    @property
    def streams(self) -> dict[Stream, int]:
        """The router's votes, and class votes at each candidate."""
        router = dict.fromkeys(both_parts(Stage.ROUTER, self.sigma_e), len(self.sigmas))
        return router | self.class_streams

    def gather(self, tallies: Sequence[Tally], plan: SamplingPlan) -> DualVotes:
        """Router and experts."""
        router = gather(tallies, Stage.ROUTER, self.sigma_e, len(self.sigmas), plan)
        return DualVotes(router, self.gather_experts(tallies, plan))

    def view(self, votes: DualVotes) -> View:
        """The expert that the router selects."""
        return View(votes.experts, *candidate_and_class(votes), votes.router)

    def _top_sigma(self, tally: Tally, part: Part) -> float:
        """The candidate that most of the router's votes name, ties by index."""
        counts = tally.total(Stream(Stage.ROUTER, part, self.sigma_e), len(self.sigmas))
        return self.sigmas[int(counts.argmax())]

    def needed(self, tally: Tally, plan: SamplingPlan, rule: Rule[DualVotes], alpha: float) -> Wanted:
        """The router, the expert that it selects, and rivals that could raise the radius."""
        selection, estimation = both_parts(Stage.ROUTER, self.sigma_e)
        yield whole(plan, [selection])
        chosen = self._top_sigma(tally, Part.SELECTION)
        # Together, as they may vote on the same copies.
        asked = whole(plan, [selection, estimation, *both_parts(Stage.CLASS, chosen)])
        yield {stream: votes for stream, votes in asked.items() if stream != selection}
        if rule.helpful is not None:
            # A run that was killed may have left some votes of rivals here, and not all.
            wanted = rule.helpful(self.gather([tally.up_to(asked)], plan), alpha)[:, 0]
            yield whole(plan, [class_estimation(s) for s, w in zip(self.sigmas, wanted, strict=True) if w])

    def adaptive(self, tally: Tally, plan: SamplingPlan, rule: Rule[DualVotes], alpha: float, target: Target) -> Wanted:
        """The router's selection votes, the first look of both stages, and from then on what holds the radius down.

        A rival expert is asked only where its agreement can raise the radius.
        """
        outlook = rule.outlook
        assert outlook is not None, "checked by `policy`"
        router = begin(plan, Stage.ROUTER, self.sigma_e)
        asked = {stream: votes for stream, votes in router.items() if stream.part is Part.SELECTION}
        yield dict(asked)
        sigma = self._top_sigma(tally, Part.SELECTION)
        at_router, chosen = Stream(Stage.ROUTER, Part.ESTIMATION, self.sigma_e), class_estimation(sigma)
        rivals = [class_estimation(s) for s in self.sigmas if s != sigma]

        def following(known: Tally) -> dict[Stream, int]:
            votes = self.gather([known], plan)
            voters = {at_router: votes.router} | {class_estimation(e.sigma): e for e in votes.experts}
            counted = [chosen, at_router, *(rivals if rule.helpful is not None else [])]

            def hoped(hopes: dict[Stream, Hopes]) -> object:
                experts = tuple(hopes[class_estimation(s)] for s in self.sigmas)
                return outlook(TwoStage(hopes[at_router], experts), alpha)

            return next_look(voters, counted, chosen, hoped, target)  # type: ignore[arg-type]

        yield from going_on(tally, asked, router | begin(plan, Stage.CLASS, sigma), following)

    def _own_rule(self, name: str | None) -> Rule[DualVotes]:
        """A rule for two stages, `fusion` by default."""
        found = two_stage_rule(name or "fusion")
        if found is None:
            if name == "cohen":
                raise BadSetting("rule cohen is for one sigma; this model has a router: use paper, nosplit or fusion")
            kind = "several sigmas and no router" if cascade_rule(name or "") is not None else "a core network"
            raise BadSetting(f"rule {name} is for a model with {kind}; use paper, nosplit or fusion")
        return found

    def derivable(self, own: str) -> list[str]:
        """Each sigma alone, the cascades of its experts, the two-stage rules, and what a label could tell."""
        rules = dict.fromkeys((*COMPARED, own))
        return [*map(sigma_method, sorted(self.sigmas)), *cascades_beside(""), *rules, ORACLE]

    def rule(self, name: str) -> Rule[DualVotes]:
        """A rule for two stages, or one that reads the experts alone."""
        found = cascade_rule(name, self)
        if found is not None:
            return found.through(DualVotes, lambda votes: CascadeVotes(votes.experts))
        return super().rule(name)

    def predict_policy(self, plan: SamplingPlan, rule: Rule[DualVotes], alpha: float) -> Policy:
        """The router's votes, then those of the expert that most of them name."""

        def votes_wanted(tally: Tally) -> Wanted:
            yield whole(plan, [Stream(Stage.ROUTER, Part.ESTIMATION, self.sigma_e)])
            yield whole(plan, [class_estimation(self._top_sigma(tally, Part.ESTIMATION))])

        return votes_wanted

    def predict(self, votes: DualVotes, rule: Rule[DualVotes], alpha: float) -> Predictions:
        """PREDICT on the router, then on the expert it names, each at alpha/2."""
        return predict_dual(votes, alpha)

    def aims(self, rule: Rule[DualVotes], claim: Certificate) -> list[Aim]:
        """Another class under the chosen sigma, or a routing to another sigma with another class there."""
        others = but(claim.prediction, self.classes)
        answers, ways = self.naming(others), tuple(self.naming([c]) for c in others)
        routes = tuple(range(len(self.sigmas)))
        found = []
        for number, sigma in enumerate(self.sigmas):
            classified = Move(Stage.CLASS, sigma, answers, ways)
            routed = Move(Stage.ROUTER, self.sigma_e, routes, tuple((route,) for route in routes), aimed=number)
            chosen = sigma == claim.sigma_c
            what = f"class at sigma {sigma:g}" if chosen else f"routing to sigma {sigma:g}"
            found.append(Aim(what, (classified,) if chosen else (routed, classified)))
        return found

    @property
    def route_names(self) -> tuple[str, ...]:
        """The candidates."""
        return tuple(f"sigma {sigma:g}" for sigma in self.sigmas)

    @property
    def router_sigma(self) -> float:
        """Of the router."""
        return self.sigma_e

    def reason(self, seen: Seen, class_name: Callable[[int], str]) -> str:
        """Whether the class limits it, or the routing, and through which sigma."""
        certificate, said = seen.certificate, self.for_class(seen, class_name)
        if certificate.outcome is Outcome.CLASS_UNDECIDED:
            return undecided(said)
        assert seen.router is not None, "the router voted"
        votes = seen.router[self.sigmas.index(certificate.sigma_c)]
        routed = f"{votes:,} of {seen.router.sum():,} votes of the router are for sigma {certificate.sigma_c:g}"
        holds = f"under sigma {certificate.sigma_c:g} the class stands up to {round_down(certificate.r_c)}"
        rival = "another sigma"
        if certificate.rival is not None:
            rival = f"sigma {certificate.rival:g}, where another class might win"
        return routing_limits(certificate, said, routed, rival, holds)
