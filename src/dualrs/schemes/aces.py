"""Aces: a smoothed selector sends each input to a smoothed classifier or to a plain core network (Horvath et al.)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from dualrs.certificates import ABSTAIN, Certificate, Certificates, Outcome, Rule
from dualrs.certificates.aces import aces, smoothed_at
from dualrs.certificates.certificate import CLASS
from dualrs.errors import BadSetting, UnusableVotes
from dualrs.policy import both_parts, whole
from dualrs.schemes.aim import Aim, Move, but
from dualrs.schemes.scheme import Scheme, Seen, View, class_limits, sigma_method, undecided
from dualrs.theory.budget import ErrorBudget
from dualrs.theory.radius import round_down
from dualrs.votes import PLAIN, Counts, Policy, SamplingPlan, Stage, Stream, Tally, Votes, Wanted, gather

_PREFIX = "aces-"


@final
@dataclass(frozen=True)
class AcesVotes:
    """Votes of a selector and of a classifier on the same inputs, and what a core network answers without noise.

    An answer of the selector is the number of ``thresholds`` that an entropy exceeds. ``core`` has a row of one vote
    for each input, or of none; shape (inputs, classes). Classifier and core need votes only where they are selected.
    """

    selector: Votes
    classifier: Votes
    core: Counts
    thresholds: tuple[float, ...]

    whose: ClassVar[str] = "a selector, a classifier and a core network"
    how: ClassVar[str] = "run `dualrs certify --core ... --thresholds ...` into another ledger"

    def __post_init__(self) -> None:
        if not len(self.selector) == len(self.classifier) == len(self.core):
            raise UnusableVotes("selector, classifier and core must have answers for the same inputs")
        if self.selector.answers != len(self.thresholds) + 1:
            raise UnusableVotes(
                f"the selector has {self.selector.answers} answers but there are {len(self.thresholds)} thresholds; it "
                "needs one answer more than there are thresholds"
            )

    def __len__(self) -> int:
        return len(self.core)


def _drawn(votes: AcesVotes, found: Certificates, alpha: float) -> NDArray[np.int64]:
    """The selector, and the classifier where it answers, else one vote of the core."""
    stage = votes.selector.plan.n0 + votes.selector.plan.n
    return np.asarray(stage + np.where(found.sigma_c > 0, stage, 1))


def aces_name(threshold: float) -> str:
    """The name of rule `aces` at a threshold of the entropy."""
    return _PREFIX + repr(float(threshold)).removesuffix(".0")


def aces_rule(name: str) -> Rule[AcesVotes] | None:
    """Rule `aces` at the threshold in a name such as ``aces-0.5``; None if it is another name."""
    if not name.startswith(_PREFIX):
        return None
    try:
        threshold = float(name.removeprefix(_PREFIX))
    except ValueError as bad:
        raise BadSetting(f"rule {name!r}: the threshold must be a number such as {_PREFIX}0.5") from bad
    return Rule(
        aces_name(threshold),
        f"ACES, entropy up to {threshold:g} (Horvath et al.)",
        AcesVotes,
        lambda votes, alpha: aces(votes, alpha, threshold),
        lambda alpha: min(ErrorBudget(alpha).split(1, 1)),
        _drawn,
        parameter=threshold,
    )


@final
@dataclass(frozen=True)
class Aces(Scheme[AcesVotes]):
    """One sigma for selector and classifier, thresholds of the entropy, and a core network without noise."""

    thresholds: tuple[float, ...] = ()

    name: ClassVar[str] = "aces"
    predict_n0: ClassVar[int] = 100
    router_name: ClassVar[str] = "selector"

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.sigmas) != 1 or not self.thresholds:
            raise BadSetting("with a core network there are one sigma, of selector and classifier, and thresholds")

    @property
    def streams(self) -> dict[Stream, int]:
        """Selector and classifier, and the one answer of the core."""
        selector = dict.fromkeys(both_parts(Stage.ROUTER, self.sigma), len(self.thresholds) + 1)
        return selector | dict.fromkeys([*both_parts(Stage.CLASS, self.sigma), PLAIN], self.classes)

    def gather(self, tallies: Sequence[Tally], plan: SamplingPlan) -> AcesVotes:
        """Selector, classifier and core."""
        core = [tally.total(PLAIN, self.classes) for tally in tallies]
        (classifier,) = self.gather_experts(tallies, plan)
        return AcesVotes(
            gather(tallies, Stage.ROUTER, self.sigma, len(self.thresholds) + 1, plan),
            classifier,
            np.array(core, dtype=np.int64).reshape(-1, self.classes),
            self.thresholds,
        )

    def view(self, votes: AcesVotes) -> View:
        """The classifier; its class may be without votes where the core answers."""
        core = np.where(votes.core.any(axis=1), votes.core.argmax(axis=1), ABSTAIN)
        only = np.zeros(len(votes), dtype=np.int64)
        return View((votes.classifier,), only, votes.classifier.selection.argmax(axis=1), votes.selector, core)

    def needed(self, tally: Tally, plan: SamplingPlan, rule: Rule[AcesVotes], alpha: float) -> Wanted:
        """The selector, then whoever of classifier and core is selected at some threshold: all are compared."""
        selection, estimation = both_parts(Stage.ROUTER, self.sigma)
        yield whole(plan, [selection])
        smoothed = smoothed_at(tally.total(selection, len(self.thresholds) + 1)[None])
        classifier = both_parts(Stage.CLASS, self.sigma) if smoothed.any() else []
        yield whole(plan, [estimation, *classifier, *([] if smoothed.all() else [PLAIN])])

    def _own_rule(self, name: str | None) -> Rule[AcesVotes]:
        """Rule `aces` at one of the thresholds, the first by default."""
        found = aces_rule(aces_name(self.thresholds[0]) if name is None else name)
        if found is None or found.parameter not in self.thresholds:
            known = ", ".join(map(aces_name, self.thresholds))
            raise BadSetting(f"rule {name!r} does not fit this model with a core network; its rules are {known}")
        return found

    def derivable(self, own: str) -> list[str]:
        """The sigma alone, and every threshold."""
        return [sigma_method(self.sigma), *map(aces_name, self.thresholds)]

    def predict_policy(self, plan: SamplingPlan, rule: Rule[AcesVotes], alpha: float) -> Policy:
        """What a certificate needs."""
        return self.policy(plan, rule, alpha)

    def aims(self, rule: Rule[AcesVotes], claim: Certificate) -> list[Aim]:
        """Another class of the classifier, or the core network with another class."""
        assert rule.parameter is not None, "rule aces has a threshold"
        others = but(claim.prediction, self.classes)
        uncertain = range(self.thresholds.index(rule.parameter) + 1, len(self.thresholds) + 1)
        to_core = Move(Stage.ROUTER, self.sigma, tuple(uncertain)), Move(PLAIN.stage, PLAIN.sigma, others)
        ways = tuple((c,) for c in others)
        return [Aim("class", (Move(Stage.CLASS, self.sigma, others, ways),)), Aim("core network", to_core)]

    @property
    def route_names(self) -> tuple[str, ...]:
        """Between which thresholds the entropy lies."""
        ends = [f"{t:g}" for t in self.thresholds]
        between = (f"entropy {low} to {high}" for low, high in pairwise(ends))
        return f"entropy up to {ends[0]}", *between, f"entropy above {ends[-1]}"

    @property
    def router_sigma(self) -> float:
        """Of the selector."""
        return self.sigma

    def reason(self, seen: Seen, class_name: Callable[[int], str]) -> str:
        """Who answers, and whether the class or the choice limits it."""
        certificate = seen.certificate
        assert seen.router is not None, "the selector voted"
        assert seen.rule.parameter is not None, "rule aces has a threshold"
        by_core, total = certificate.sigma_c == 0, seen.router.sum()
        below = seen.router[: self.thresholds.index(seen.rule.parameter) + 1].sum()
        votes, what = (total - below, "above") if by_core else (below, "up to")
        routed = f"{votes:,} of {total:,} votes of the selector find an entropy {what} {seen.rule.parameter:g}"
        if certificate.outcome is Outcome.ROUTER_UNDECIDED:
            return f"It abstains: {routed}, which is too few to show who answers."
        if by_core:
            return f"The core network answers, without noise and so without a radius: {routed}."
        said = self.for_class(seen, class_name)
        if certificate.outcome is Outcome.CLASS_UNDECIDED:
            return undecided(said)
        beyond = round_down(certificate.r_sigma)
        if certificate.limited_by == CLASS:
            return f"{class_limits(said, certificate)} A change of the routing does no harm up to {beyond}."
        return (
            f"The routing limits it: {routed}; beyond {beyond} it might answer with the core network, which has no "
            f"radius. Yet under sigma {certificate.sigma_c:g} the class stands up to {round_down(certificate.r_c)}."
        )
