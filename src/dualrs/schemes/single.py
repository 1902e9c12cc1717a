"""Single: a classifier smoothed at one sigma (Cohen et al. 2019)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from dualrs.certificates import Certificate, Outcome, Predictions, Rule, predict
from dualrs.certificates.selection import top
from dualrs.errors import BadSetting
from dualrs.policy import Target, both_parts, going_on, next_look, whole
from dualrs.schemes.aim import Aim, Move, but
from dualrs.schemes.scheme import (
    COHEN,
    Scheme,
    Seen,
    View,
    begin,
    class_estimation,
    class_limits,
    sigma_method,
    undecided,
)
from dualrs.votes import Policy, SamplingPlan, Stage, Stream, Tally, Votes, Wanted


@final
@dataclass(frozen=True)
class Single(Scheme[Votes]):
    """One sigma, one classifier."""

    name: ClassVar[str] = "single"

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.sigmas) != 1:
            raise BadSetting(f"a run of kind single has one sigma, got {self.sigmas}")

    @property
    def streams(self) -> dict[Stream, int]:
        """Class votes at the sigma."""
        return dict.fromkeys(both_parts(Stage.CLASS, self.sigma), self.classes)

    def gather(self, tallies: Sequence[Tally], plan: SamplingPlan) -> Votes:
        """The class votes."""
        return self.gather_experts(tallies, plan)[0]

    def view(self, votes: Votes) -> View:
        """One expert."""
        return View((votes,), np.zeros(len(votes), dtype=np.int64), top(votes))

    def needed(self, tally: Tally, plan: SamplingPlan, rule: Rule[Votes], alpha: float) -> Wanted:
        """All votes."""
        yield whole(plan, self.streams)

    def adaptive(self, tally: Tally, plan: SamplingPlan, rule: Rule[Votes], alpha: float, target: Target) -> Wanted:
        """From look to look."""
        stream, outlook = class_estimation(self.sigma), rule.outlook
        assert outlook is not None, "checked by `policy`"

        def following(known: Tally) -> dict[Stream, int]:
            voters = {stream: self.gather([known], plan)}
            return next_look(voters, [stream], stream, lambda hopes: outlook(hopes[stream], alpha), target)

        return going_on(tally, {}, begin(plan, Stage.CLASS, self.sigma), following)

    def _own_rule(self, name: str | None) -> Rule[Votes]:
        """Rule `cohen`, the only one for a single sigma."""
        if name not in (None, COHEN.name):
            raise BadSetting(f"rule {name!r} needs a router; a model with one sigma is certified by rule cohen")
        return COHEN

    def derivable(self, own: str) -> list[str]:
        """The sigma itself."""
        return [sigma_method(self.sigma)]

    def own_method(self, rule: str) -> str:
        """A single sigma is called by its sigma."""
        return sigma_method(self.sigma)

    def predict_policy(self, plan: SamplingPlan, rule: Rule[Votes], alpha: float) -> Policy:
        """Estimation votes alone: no bound is made for a chosen class."""
        return lambda tally: iter([whole(plan, [class_estimation(self.sigma)])])

    def predict(self, votes: Votes, rule: Rule[Votes], alpha: float) -> Predictions:
        """PREDICT of Cohen et al."""
        return predict(votes, alpha)

    def aims(self, rule: Rule[Votes], claim: Certificate) -> list[Aim]:
        """Any other class."""
        others = but(claim.prediction, self.classes)
        return [Aim("class", (Move(Stage.CLASS, self.sigma, others, tuple((c,) for c in others)),))]

    def reason(self, seen: Seen, class_name: Callable[[int], str]) -> str:
        """The class limits it, or is undecided."""
        said = self.for_class(seen, class_name)
        if seen.certificate.outcome is Outcome.CLASS_UNDECIDED:
            return undecided(said)
        return class_limits(said, seen.certificate)
