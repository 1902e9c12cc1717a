"""Backed: a cascade whose last stage is a network without noise, which answers wherever no smoothed stage is sure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import ClassVar, final

from dualrs.certificates import Certificate, Outcome, Rule
from dualrs.errors import BadSetting
from dualrs.schemes.aim import Aim, Move, but
from dualrs.schemes.cascade import MULTISCALES, Cascade, CascadeVotes
from dualrs.schemes.form import CASCADE
from dualrs.schemes.mixed import STATED, WITHOUT_NOISE, pairs, stated_rule
from dualrs.schemes.scheme import Seen, View, class_limits
from dualrs.theory.radius import round_down
from dualrs.votes import BINS, PLAIN, SamplingPlan, Stage, Stated, Stream, Tally, gather_stated


@final
@dataclass(frozen=True)
class BackedVotes(CascadeVotes):
    """Votes of a cascade, and what its last stage states."""

    whose: ClassVar[str] = "several sigmas and a network without noise"
    how: ClassVar[str] = "run `dualrs certify --core` with --sigmas and no router into another ledger"


@final
@dataclass(frozen=True)
class Backed(Cascade):
    """Several sigmas, the noisiest stage that is sure answers; where none is, a network without noise does."""

    name: ClassVar[str] = "backed"
    always: ClassVar[tuple[Stream, ...]] = (PLAIN,)

    @property
    def streams(self) -> dict[Stream, int]:
        """Class votes at each sigma, and what the network without noise states."""
        return self.class_streams | {PLAIN: self.classes * BINS}

    def gather(self, tallies: Sequence[Tally], plan: SamplingPlan) -> CascadeVotes:
        """The class votes, sigma by sigma, and last what the network without noise states."""
        stated = gather_stated(tallies, Stage.CLASS, self.classes, plan)
        return BackedVotes(self.gather_experts(tallies, plan), stated)

    def view(self, votes: CascadeVotes) -> View:
        """The smoothed stages as those of a cascade by itself."""
        stated = _stated(votes)
        return replace(super().view(votes), core=stated.answer, core_radius=stated.radius)

    # Rules

    def _own_rule(self, name: str | None) -> Rule[CascadeVotes]:
        """Rule `cascade` in any form that fits the smoothed stages."""
        if name in MULTISCALES:
            raise BadSetting(f"rule {name} knows no stage without noise; use {CASCADE} or cascade-0.4 (votes may pass)")
        return replace(super()._own_rule(name), reads=BackedVotes)

    def rule(self, name: str) -> Rule[CascadeVotes]:
        """A rule of cascades, `multiscale` over the smoothed stages, or one stage alone."""
        if name == STATED:
            return replace(stated_rule(CascadeVotes, _stated), reads=BackedVotes)
        return replace(super().rule(name), reads=BackedVotes)

    def derivable(self, own: str) -> list[str]:
        """Those of a cascade, and the network without noise alone."""
        methods = super().derivable(own)
        return [*methods[: len(self.sigmas)], STATED, *methods[len(self.sigmas) :]]

    def aims(self, rule: Rule[CascadeVotes], claim: Certificate) -> list[Aim]:
        """Those of a cascade; and that no stage is sure of the class, and the network without noise names another."""
        passing = rule.form.confidences if rule.form else ()
        every = self.naming(range(self.classes))
        moves = []
        for sigma, confidence in zip_longest(sorted(self.sigmas, reverse=True), passing, fillvalue=0.0):
            own = self.naming([claim.prediction], confidence)
            moves.append(Move(Stage.CLASS, sigma, tuple(a for a in every if a not in own)))
        last = Move(PLAIN.stage, PLAIN.sigma, pairs(but(claim.prediction, self.classes)))
        return [*super().aims(rule, claim), Aim(f"another class of {WITHOUT_NOISE}", (*moves, last))]

    # Words

    def reason(self, seen: Seen, class_name: Callable[[int], str]) -> str:
        """As for a cascade; where the last stage answers, what it states."""
        certificate = seen.certificate
        if certificate.sigma_c:
            return super().reason(seen, class_name)
        y = class_name(seen.selected)
        if certificate.r_c <= 0:
            return f"It abstains: no stage is sure enough of {y}, and {WITHOUT_NOISE} does not state it with a radius."
        said = f"{WITHOUT_NOISE} states {y} up to {round_down(certificate.r_c)}"
        if certificate.rival is None:
            return class_limits(said, certificate)
        before = f"sigma {certificate.rival:g}, which comes first{self._runner_up(seen, certificate.rival, class_name)}"
        if certificate.outcome is Outcome.STAGE_UNDECIDED:
            return f"It abstains: {said}, but another class might win at {before}."
        return (
            f"A stage before limits it: beyond {round_down(certificate.r_sigma)} another class might win at {before}. "
            f"Yet {said}."
        )


def _stated(votes: CascadeVotes) -> Stated:
    assert votes.stated is not None, "gathered so"
    return votes.stated
