"""InputDependent: a sigma for every input, by a function of the image that is asked once and without noise.

Its answer is a level, and each level has a sigma. If the function is known to change no faster than the image moves,
what is certified is the whole predictor (Sukenik et al. 2022). If nothing is known of it, radii have no guarantee
(Alfarra et al. 2022 without memory).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from dualrs.certificates import Certificate, Certificates, Outcome, Predictions, Rule, predict
from dualrs.certificates.certificate import Radii
from dualrs.certificates.rule import concluded
from dualrs.certificates.selection import demand, top
from dualrs.certificates.sukenik import sukenik
from dualrs.errors import BadSetting, UnusableVotes
from dualrs.policy import Target, both_parts, whole
from dualrs.schemes.aim import Aim, Move, but
from dualrs.schemes.scheme import NEEDED, Scheme, Seen, View, class_estimation, class_limits, undecided
from dualrs.theory.budget import ErrorBudget
from dualrs.theory.radius import gaussian_radius, round_down
from dualrs.votes import Counts, Part, Policy, SamplingPlan, Stage, Stream, Tally, Votes, Wanted, gather

LEVEL = Stream(Stage.ROUTER, Part.SELECTION, 0.0)  # the answer of the function to the input itself


@final
@dataclass(frozen=True)
class LevelledVotes:
    """The level of each input, a row of one vote, and class votes under the sigma of that level."""

    levels: Counts  # (inputs, levels)
    classifier: Votes
    by_level: tuple[float, ...]
    step: float
    dimensions: int

    whose: ClassVar[str] = "one classifier under a sigma for each input"
    how: ClassVar[str] = "run `dualrs certify --neighbours` or `--ascent` into another ledger"

    def __post_init__(self) -> None:
        if len(self.levels) != len(self.classifier) or self.levels.shape[1] != len(self.by_level):
            raise UnusableVotes("levels and classifier must have answers for the same inputs, and levels a sigma each")

    def __len__(self) -> int:
        return len(self.levels)

    @property
    def level(self) -> NDArray[np.int64]:
        """The level of each input."""
        demand(self.levels.sum(axis=1) == 1, "level, which one vote without noise tells")
        return np.asarray(self.levels.argmax(axis=1))


def _drawn(votes: LevelledVotes, found: Certificates, alpha: float) -> NDArray[np.int64]:
    """The level, and the classifier."""
    plan = votes.classifier.plan
    return np.full(len(votes), 1 + plan.n0 + plan.n)


SUKENIK: Rule[LevelledVotes] = Rule(
    "sukenik",
    "a sigma for each input (Sukenik et al.)",
    LevelledVotes,
    concluded(sukenik),
    lambda alpha: ErrorBudget(alpha).alpha,
    _drawn,
)


NO_GUARANTEE = "class; no guarantee"  # what limits a radius that holds for one sigma, where sigma is not one


def _as_if_constant(votes: LevelledVotes, alpha: float) -> Certificates:
    """What would be certified if sigma were everywhere as it is at the input; nowhere without the word that it is not.

    Guarantee: none. Images nearby are answered under sigmas of their own.
    """
    sigma_c, nowhere = np.array(votes.by_level)[votes.level], np.full(len(votes), np.nan)
    y = top(votes.classifier)
    r_c = gaussian_radius(sigma_c, votes.classifier.lower(y, ErrorBudget(alpha).alpha))
    found = Certificates.conclude(Radii(y, sigma_c, r_c, np.full(len(votes), np.inf), nowhere, (votes.classifier,)))
    return replace(found, limited_by=np.full(len(votes), NO_GUARANTEE))


AS_IF_CONSTANT: Rule[LevelledVotes] = replace(
    SUKENIK,
    name="as-if-constant",
    title="as if sigma were constant, without a guarantee (Alfarra et al.)",
    formula=_as_if_constant,
    caveat="sigma is chosen for each input, and images nearby are answered under others",
    guaranteed=False,
)
BY_LEVEL = {rule.name: rule for rule in (SUKENIK, AS_IF_CONSTANT)}


@final
@dataclass(frozen=True)
class InputDependent(Scheme[LevelledVotes]):
    """A classifier, and ``levels`` sigmas from ``lowest`` to ``highest``, in equal ratios.

    An image has to move by ``step`` to get through a level, if that is known (else 0), in so many ``dimensions``. The
    one of ``sigmas`` is in the middle: the networks are tried with it, and it names the run.
    """

    lowest: float = field(default=0.0, kw_only=True)
    highest: float = field(default=0.0, kw_only=True)
    levels: float = field(default=0.0, kw_only=True)
    step: float = field(default=0.0, kw_only=True)
    dimensions: float = field(default=0.0, kw_only=True)

    name: ClassVar[str] = "input-dependent"
    router_name: ClassVar[str] = "function that gives the level"
    before: ClassVar[str] = "sigma moving"

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.sigmas) != 1 or min(self.lowest, self.highest) <= 0 or self.levels < 2 or self.step < 0:
            raise BadSetting(
                "a sigma for each input takes one sigma in the middle, a lowest and a highest one and at least two "
                f"levels; got {self.settings}"
            )

    @cached_property
    def by_level(self) -> tuple[float, ...]:
        """The sigma of each level, in nine digits: libraries may round the last ones differently."""
        made = np.geomspace(self.lowest, self.highest, int(self.levels))
        return tuple(float(f"{sigma:.9g}") for sigma in made)

    @property
    def streams(self) -> dict[Stream, int]:
        """The level, and class votes at the sigma of any level."""
        classes = [stream for sigma in self.by_level for stream in both_parts(Stage.CLASS, sigma)]
        return {LEVEL: int(self.levels)} | dict.fromkeys(classes, self.classes)

    def _sigma(self, tally: Tally) -> float:
        """That of an input whose level is told."""
        return self.by_level[int(tally.total(LEVEL, int(self.levels)).argmax())]

    def gather(self, tallies: Sequence[Tally], plan: SamplingPlan) -> LevelledVotes:
        """The levels, and the class votes of each input at its own sigma."""
        every = [gather([tally], Stage.CLASS, self._sigma(tally), self.classes, plan) for tally in tallies]
        none = gather([], Stage.CLASS, self.sigma, self.classes, plan)
        levels = [tally.total(LEVEL, int(self.levels)) for tally in tallies]
        classifier = replace(
            none,
            selection=np.concatenate([none.selection, *(votes.selection for votes in every)]),
            estimation=np.concatenate([none.estimation, *(votes.estimation for votes in every)]),
        )
        counts = np.array(levels, dtype=np.int64).reshape(-1, int(self.levels))
        return LevelledVotes(counts, classifier, self.by_level, self.step, int(self.dimensions))

    def view(self, votes: LevelledVotes) -> View:
        """One expert, under whatever sigma each input has."""
        return View((votes.classifier,), np.zeros(len(votes), dtype=np.int64), top(votes.classifier))

    def policy(
        self,
        plan: SamplingPlan,
        rule: Rule[LevelledVotes],
        alpha: float,
        *,
        votes: str = NEEDED,
        target: Target | None = None,
    ) -> Policy:
        """What an input needs is all that it has: votes at the sigma of another are of no use to it."""
        return super().policy(plan, rule, alpha, target=target)

    def sigmas_of(self, certificate: Certificate) -> tuple[float, ...]:
        """That of the input."""
        return (certificate.sigma_c,)

    def needed(self, tally: Tally, plan: SamplingPlan, rule: Rule[LevelledVotes], alpha: float) -> Wanted:
        """The level, then the class votes at its sigma."""
        yield whole(plan, [LEVEL])
        yield whole(plan, both_parts(Stage.CLASS, self._sigma(tally)))

    def _own_rule(self, name: str | None) -> Rule[LevelledVotes]:
        """Rule `sukenik` where it is known how fast sigma changes, else `as-if-constant`, which has no guarantee."""
        own = SUKENIK if self.step > 0 else AS_IF_CONSTANT
        if name not in (None, own.name):
            raise BadSetting(f"rule {name!r} does not fit this sigma for each input; use {own.name}")
        return own

    def derivable(self, own: str) -> list[str]:
        """The rule of the run, and what would be claimed if sigma were constant."""
        return list(dict.fromkeys((own or self.own_rule().name, AS_IF_CONSTANT.name)))

    def rule(self, name: str) -> Rule[LevelledVotes]:
        """One of these; no sigma alone, as the votes of each input are under its own."""
        return AS_IF_CONSTANT if name == AS_IF_CONSTANT.name else self.own_rule(name)

    def predict_policy(self, plan: SamplingPlan, rule: Rule[LevelledVotes], alpha: float) -> Policy:
        """The level, then estimation votes alone: no bound is made for a chosen class."""

        def wanted(tally: Tally) -> Wanted:
            yield whole(plan, [LEVEL])
            yield whole(plan, [class_estimation(self._sigma(tally))])

        return wanted

    def predict(self, votes: LevelledVotes, rule: Rule[LevelledVotes], alpha: float) -> Predictions:
        """PREDICT of Cohen et al. at the sigma of each input; the level is no estimate, and costs no alpha."""
        return replace(predict(votes.classifier, alpha), sigma_c=np.array(votes.by_level)[votes.level])

    def aims(self, rule: Rule[LevelledVotes], claim: Certificate) -> list[Aim]:
        """Any other class under the sigma of the input."""
        others = but(claim.prediction, self.classes)
        return [Aim("class", (Move(Stage.CLASS, claim.sigma_c, others, tuple((c,) for c in others)),))]

    def contents(self, rule: str) -> str:
        """Certificates, or what has no guarantee."""
        return super().contents(rule) if self.step > 0 else f"certificates without a guarantee, under rule {rule}"

    def reason(self, seen: Seen, class_name: Callable[[int], str]) -> str:
        """The class limits it, or a sigma that may hold nearby."""
        certificate, (counts,) = seen.certificate, seen.experts
        assert counts is not None, "every input has class votes"
        said = (
            f"{counts[seen.selected]:,} of {counts.sum():,} votes under its sigma {certificate.sigma_c:g} are for "
            f"{class_name(seen.selected)}"
        )
        if certificate.outcome is Outcome.CLASS_UNDECIDED:
            return undecided(said)
        if seen.rule.name == AS_IF_CONSTANT.name:
            return (
                f"No guarantee: {said}, and the class would stand up to {round_down(certificate.r_c)} if sigma stayed "
                "as it is. It does not; images nearby have sigmas of their own."
            )
        if certificate.rival is None:
            return class_limits(said, certificate)
        where = f"sigma {certificate.rival:g}, which may hold there"
        if certificate.abstained:
            return f"It abstains: {said}, which is too few for {where}."
        return (
            f"Sigma limits it: {said}; beyond {round_down(certificate.r_sigma)} another class might win under {where}. "
            f"If sigma stayed as it is, the class would stand up to {round_down(certificate.r_c)}."
        )
