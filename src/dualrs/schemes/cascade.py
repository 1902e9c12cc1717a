"""Cascade: a classifier at several sigmas without a router, the noisiest first.

Rule `cascade` is ours, `multiscale` that of Jeong and Shin 2023 for the same predictor.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, ClassVar, Generic

import numpy as np
from numpy.typing import NDArray

from dualrs.certificates import Certificate, Certificates, Outcome, Rule
from dualrs.certificates.cascade import cascade, sure
from dualrs.certificates.certificate import Evidence
from dualrs.certificates.multiscale import multiscale, passed
from dualrs.certificates.multiscale_authors import multiscale_authors
from dualrs.certificates.rule import concluded
from dualrs.errors import BadSetting, UnusableVotes
from dualrs.policy import Grid, Hopes, Target, both_parts, going_on, next_stage, whole
from dualrs.schemes.aim import Aim, Move, but
from dualrs.schemes.form import CASCADE, Form
from dualrs.schemes.scheme import ORACLE, Seen, View, class_estimation, class_limits, sigma_method, undecided
from dualrs.schemes.several import Several
from dualrs.theory.budget import ErrorBudget
from dualrs.theory.radius import round_down
from dualrs.votes import Bounds, Part, Policy, SamplingPlan, Stage, Stated, Stream, Tally, Votes, Wanted

MULTISCALE, AUTHORS = "multiscale", "multiscale-authors"


def _minus_sigma(bounds: Bounds) -> float:
    return -bounds.sigma


@dataclass(frozen=True)
class Stages(Generic[Evidence]):
    """Bounds of a classifier, or of an expert each, at several sigmas, for the same inputs.

    ``stated`` is what a last stage without noise states, if there is one.
    """

    experts: tuple[Evidence, ...]
    stated: Stated | None = None

    def __len__(self) -> int:
        return len(self.experts[0])

    @property
    def falling(self) -> list[Evidence]:
        """The noisiest first."""
        return sorted(self.experts, key=_minus_sigma)

    @property
    def last(self) -> list[Stated]:
        """The stage without noise, or none."""
        return [] if self.stated is None else [self.stated]


@dataclass(frozen=True)
class CascadeVotes(Stages[Votes]):
    """Votes of a classifier, or of an expert each, at several sigmas, for the same inputs."""

    whose: ClassVar[str] = "several sigmas"
    how: ClassVar[str] = "run `dualrs certify --all-votes` with a router, or with --sigmas alone, into another ledger"

    def __post_init__(self) -> None:
        if len({e.selection.shape for e in self.experts}) != 1:
            raise UnusableVotes("the experts must have votes for the same inputs and classes")


def cascade_rule(name: str, kind: Several[Any] | None = None) -> Rule[CascadeVotes] | None:
    """Rule `cascade` in the form of a name such as ``cascade-0.4``, or one of `MULTISCALES`; None for another name.

    A form that does not fit a kind of run is refused. Without one, it needs as many votes as two stages, the fewest.
    """
    form, stages = Form.parse(name), 2 if kind is None else len(kind.sigmas)
    if form is None:
        return MULTISCALES.get(name)
    if kind is not None:
        form.check(stages, kind.confidences)
    return Rule(
        form.name,
        f"cascade, no router{form.words}",
        CascadeVotes,
        concluded(lambda votes, alpha: cascade([*form.stages(votes.experts), *votes.last], alpha, form.thresholds)),
        lambda alpha: float(ErrorBudget(alpha).cascade(stages)[0].lower),
        lambda votes, found, alpha: _drawn(votes, alpha, form),
        outlook=lambda heard, alpha: cascade([*heard.falling, *heard.last], alpha, form.thresholds),
        helpful=lambda votes, alpha: helpful_stages(votes, alpha, form),
        form=form,
    )


def helpful_stages(votes: CascadeVotes, alpha: float, form: Form) -> NDArray[np.bool_]:
    """Which experts, not sampled so far, could raise the radius of rule `cascade`; shape (experts, inputs).

    Leaving the others out is sound and loses nothing.
    """
    stages = form.stages(votes.experts)
    place = {stage.sigma: number for number, stage in enumerate(stages)}
    return _next_stages(stages, votes.last, alpha, form)[[place[e.sigma] for e in votes.experts]]


def _next_stages(stages: Sequence[Votes], last: Sequence[Stated], alpha: float, form: Form) -> NDArray[np.bool_]:
    """Which stages to ask next, shape (stages, inputs): the first without votes, where they could raise the radius.

    A stage counts only where all before it voted; the best of votes there, and further down, is what can be hoped for.
    """
    unsampled = np.stack([s.sampled == 0 for s in stages])
    first = unsampled & (unsampled.cumsum(axis=0) == 1)
    seen: list[Bounds] = [*stages, *last]
    hoped: list[Bounds] = [*(Hopes(s, s.sampled == 0, unlikely=0.0) for s in stages), *last]
    now, best = (cascade(heard, alpha, form.thresholds).radius for heard in (seen, hoped))
    return np.asarray(first & (best > np.maximum(now, 0.0)))


def _drawn(votes: CascadeVotes, alpha: float, form: Form) -> NDArray[np.int64]:
    """What `Cascade.needed` would have taken: selection votes until a class is sure, then stage after stage."""
    plan, stages = votes.experts[0].plan, form.stages(votes.experts)
    unsure = np.cumprod([~sure(s, c) for s, c in zip(stages, form.limits(len(stages)), strict=True)], axis=0)
    taken = plan.n0 * (1 + unsure[:-1].sum(axis=0)) + len(votes.last)
    going = np.ones(len(votes), dtype=np.bool_)
    for number in range(0 if plan.adaptive else len(stages)):
        heard = [s if k < number else _unheard(s) for k, s in enumerate(stages)]
        going = going & _next_stages(heard, votes.last, alpha, form).any(axis=0)
        taken = taken + plan.n * going
    return np.asarray(taken)


def _unheard(votes: Votes) -> Votes:
    """Selection votes alone."""
    return replace(votes, estimation=votes.estimation * 0)


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
    lambda alpha: float(ErrorBudget(alpha).multiscale().lower),
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
MULTISCALES = {rule.name: rule for rule in (MULTISCALE_RULE, AUTHORS_RULE)}


@dataclass(frozen=True)
class Cascade(Several[CascadeVotes]):
    """Several sigmas, and no router: the noisiest stage that is sure answers."""

    name: ClassVar[str] = "cascade"
    before: ClassVar[str] = "stages before"
    always: ClassVar[tuple[Stream, ...]] = ()  # asked for from the start
    predict_n0: ClassVar[int] = 100

    @property
    def streams(self) -> dict[Stream, int]:
        """Class votes at each sigma."""
        return self.class_streams

    def gather(self, tallies: Sequence[Tally], plan: SamplingPlan) -> CascadeVotes:
        """The class votes, sigma by sigma."""
        return CascadeVotes(self.gather_experts(tallies, plan))

    def view(self, votes: CascadeVotes) -> View:
        """The noisiest stage with most of its selection votes for one class, or the last."""
        falling = votes.falling
        number = np.argmax([*(sure(e, None) for e in falling[:-1]), np.ones(len(votes), dtype=np.bool_)], axis=0)
        place = np.array([votes.experts.index(e) for e in falling])
        selected = np.stack([e.selection.argmax(axis=1) for e in falling])[number, np.arange(len(votes))]
        return View(votes.experts, place[number], selected)

    # Which votes next

    def needed(self, tally: Tally, plan: SamplingPlan, rule: Rule[CascadeVotes], alpha: float) -> Wanted:
        """The noisiest stage, and the next where that could raise the radius."""
        if rule.helpful is None:
            yield from self._passed_down(tally, plan, alpha)
            return
        asked = whole(plan, self.always)
        yield dict(asked)
        yield from self._until_sure(tally, plan, rule.form, asked)
        for _ in self.sigmas:
            wanted = rule.helpful(self.gather([tally.up_to(asked)], plan), alpha)[:, 0]
            following = whole(plan, [class_estimation(s) for s, w in zip(self.sigmas, wanted, strict=True) if w])
            if not following:
                return
            asked |= following
            yield following

    def adaptive(
        self, tally: Tally, plan: SamplingPlan, rule: Rule[CascadeVotes], alpha: float, target: Target
    ) -> Wanted:
        """Selection votes until a class is sure, and from then on what the target needs."""
        outlook, form = rule.outlook, rule.form
        assert outlook is not None, "checked by `policy`"
        asked = whole(plan, self.always)
        yield dict(asked)
        yield from self._until_sure(tally, plan, form, asked)

        def following(known: Tally) -> dict[Stream, int]:
            votes = self.gather([known], plan)
            voters = {class_estimation(s.sigma): s for s in form.stages(votes.experts)}

            def hoped(hopes: Mapping[Stream, Hopes]) -> Any:
                rows = tuple(hopes.values())
                return outlook(Stages(rows, votes.stated and votes.stated.repeated(len(rows[0]))), alpha)

            return next_stage(voters, hoped, target)

        yield from going_on(tally, asked, following(tally.up_to(asked)), following)

    def _until_sure(self, tally: Tally, plan: SamplingPlan, form: Form, asked: dict[Stream, int]) -> Wanted:
        """Selection votes, the noisiest stage first, until one is sure of a class; what was asked for is noted."""
        for number, sigma in enumerate(sorted(self.sigmas, reverse=True)):
            wanted = whole(plan, [Stream(Stage.CLASS, Part.SELECTION, sigma)])
            asked |= wanted
            yield wanted
            stage = form.stages(self.gather([tally.up_to(asked)], plan).experts)[number]
            if sure(stage, form.limits(len(self.sigmas))[number])[0]:
                return

    def _passed_down(self, tally: Tally, plan: SamplingPlan, alpha: float) -> Wanted:
        """What Multiscale needs: the noisiest stage, and the next where it is passed."""
        level = ErrorBudget(alpha).multiscale().upper
        for sigma in sorted(self.sigmas, reverse=True):
            yield whole(plan, both_parts(Stage.CLASS, sigma))
            (stage,) = replace(self, sigmas=(sigma,)).gather([tally], plan).experts
            if not passed(stage, level)[0]:
                return

    # Rules

    def _own_rule(self, name: str | None) -> Rule[CascadeVotes]:
        """Rule `cascade` in any form that fits, or `multiscale`."""
        found = cascade_rule(name or CASCADE, self)
        if found is None or not found.guaranteed:
            raise BadSetting(
                f"rule {name!r} does not fit several sigmas without a router; use {CASCADE}, cascade-0.4 (votes may "
                f"pass) or {MULTISCALE}"
            )
        return found

    def rule(self, name: str) -> Rule[CascadeVotes]:
        """A rule of cascades, or that of one of its sigmas alone."""
        return cascade_rule(name, self) or super().rule(name)

    def derivable(self, own: str) -> list[str]:
        """Each sigma alone, and the cascades."""
        return [*map(sigma_method, sorted(self.sigmas)), *cascades_beside(own), ORACLE]

    # Predictions

    def predict_policy(self, plan: SamplingPlan, rule: Rule[CascadeVotes], alpha: float) -> Policy:
        """What a radius above 0 needs."""
        if rule.outlook is None:
            raise BadSetting(f"rule {rule.name} is for certificates; predictions of a cascade go by rule {CASCADE}")
        return lambda tally: self.adaptive(tally, plan, rule, alpha, Grid((0.0,)))

    def aims(self, rule: Rule[CascadeVotes], claim: Certificate) -> list[Aim]:
        """Another class at one of the stages, and no stage before it that is sure of the certified one."""
        passing = rule.form.confidences if rule.form else ()
        every, others = self.naming(range(self.classes)), but(claim.prediction, self.classes)
        found: list[Aim] = []
        before: list[Move] = []
        for sigma, confidence in zip_longest(sorted(self.sigmas, reverse=True), passing, fillvalue=0.0):
            answers = self.naming(others, confidence)
            ways = tuple(self.naming([c], confidence) for c in others)
            move = Move(Stage.CLASS, sigma, answers, ways, majority=True)
            found.append(Aim(f"another class at sigma {sigma:g}", (*before, move)))
            own = self.naming([claim.prediction], confidence)
            before.append(Move(Stage.CLASS, sigma, tuple(a for a in every if a not in own)))
        return found

    # Words

    def heard(self, experts: tuple[Votes, ...], rule: Rule[CascadeVotes]) -> tuple[Votes, ...]:
        """Votes below the confidences of the rule pass."""
        return experts if rule.form is None else rule.form.heard(experts)

    def reason(self, seen: Seen, class_name: Callable[[int], str]) -> str:
        """Which stage answers, and whether the class or a stage before it limits the radius."""
        certificate = seen.certificate
        said = self.for_class(seen, class_name)
        if certificate.outcome is Outcome.CLASS_UNDECIDED:
            return undecided(said)
        if certificate.rival is None:
            return class_limits(f"{said}{self._runner_up(seen, certificate.sigma_c, class_name)}", certificate)
        before = f"sigma {certificate.rival:g}, which comes first{self._runner_up(seen, certificate.rival, class_name)}"
        if certificate.outcome is Outcome.STAGE_UNDECIDED:
            return f"It abstains: another class might win at {before}."
        return (
            f"A stage before limits it: beyond {round_down(certificate.r_sigma)} another class might win at {before}. "
            f"Yet under sigma {certificate.sigma_c:g} the class stands up to {round_down(certificate.r_c)}."
        )

    def _runner_up(self, seen: Seen, sigma: float, class_name: Callable[[int], str]) -> str:
        """The class other than the selected one with most votes at a stage, and how many votes pass there, in words."""
        counts = seen.experts[self.sigmas.index(sigma)]
        if counts is None:
            return ""
        others = counts[: self.classes].copy()
        others[seen.selected] = 0
        passed = f", {counts[self.classes]:,} pass" if len(counts) > self.classes else ""
        return f" ({others.max():,} are for {class_name(int(others.argmax()))}{passed})"


def cascades_beside(own: str) -> list[str]:
    """The cascades of a comparison: those without parameters and, if it is another, the run's own."""
    forms = [CASCADE, *([] if Form.parse(own) is None else [own])]
    return list(dict.fromkeys((*forms, *MULTISCALES)))
