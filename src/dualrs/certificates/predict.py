"""PREDICT: the class of the smoothed model without a radius, for one sigma and for the two stages (Section 5.1)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from dualrs.certificates.certificate import ABSTAIN, Certificates, Outcome, listed, with_seed
from dualrs.certificates.selection import TwoStages, demand_one_look
from dualrs.errors import TooFewVotes
from dualrs.theory.bounds import Floats
from dualrs.theory.budget import ErrorBudget
from dualrs.votes import Counts, SamplingPlan, Votes


@dataclass(frozen=True)
class Prediction:
    """The class of one input, `ABSTAIN` where the votes do not decide; ``outcome`` says which stage did not."""

    prediction: int
    sigma_c: float
    outcome: Outcome
    seed: int | None = field(default=None, compare=False)  # of the noise; None in what a rule makes of bare votes

    @property
    def abstained(self) -> bool:
        """Whether no class is named."""
        return self.outcome is not Outcome.PREDICTED

    @property
    def said(self) -> str:
        """What is claimed, in words."""
        what = f"abstains: {self.outcome}" if self.abstained else f"class {self.prediction}"
        return f"{what} (sigma {self.sigma_c:g})"

    def __str__(self) -> str:
        return with_seed(self.said, self.seed)


@dataclass(frozen=True, eq=False)
class Predictions(Sequence[Prediction]):
    """Predictions for many inputs, as arrays; the fields are those of `Prediction`."""

    prediction: NDArray[np.int64]
    sigma_c: Floats
    outcome: NDArray[np.str_]
    seed: int | None = None  # one for all

    def __len__(self) -> int:
        return len(self.prediction)

    def __getitem__(self, index: int) -> Prediction:  # type: ignore[override]
        return Prediction(
            int(self.prediction[index]), float(self.sigma_c[index]), Outcome(self.outcome[index]), self.seed
        )

    def __str__(self) -> str:
        return listed(self, self.seed)


def check_predict(plan: SamplingPlan, alpha: float, stages: int) -> None:
    """Refuse, before any vote is drawn, a plan under which even unanimous votes would leave every input undecided."""
    budget = ErrorBudget(alpha)
    level = budget.alpha if stages == 1 else min(budget.split(1, 1))
    needed = math.ceil(math.log2(2 / level))
    if plan.n < needed:
        raise TooFewVotes(
            f"n = {plan.n} cannot decide anything at alpha = {alpha:g}, even if all votes agree; take n >= {needed}"
        )


def predict(votes: Votes, alpha: float) -> Predictions:
    """The most frequent answer, if a two-sided test of the top two counts rejects a tie at level alpha.

    Guarantee: with probability >= 1 - alpha over the votes, the answer is abstention or the smoothed class
    (Cohen et al. 2019, Proposition 1).
    Assumes: n fixed beforehand; independent votes. All votes may serve: no bound is made for a chosen class.
    """
    demand_one_look("PREDICT", votes)
    decided = _p_value(votes.estimation) <= ErrorBudget(alpha).alpha
    return _conclude(votes.estimation.argmax(axis=1), np.full(len(votes), votes.sigma), np.ones_like(decided), decided)


def predict_dual(votes: TwoStages[Votes], alpha: float) -> Predictions:
    """PREDICT on the router, then on the expert it names, each at alpha/2.

    Guarantee: with probability >= 1 - alpha over the votes, the answer is abstention or G(x), by a union bound.
    Assumes: as `predict`, for each stage; any dependence between the stages is allowed.
    """
    demand_one_look("PREDICT", votes.router, *votes.experts)
    levels = ErrorBudget(alpha).split(1, 1)
    chosen = votes.router.estimation.argmax(axis=1)
    estimation = np.stack([e.estimation for e in votes.experts])[chosen, np.arange(len(votes))]
    return _conclude(
        estimation.argmax(axis=1),
        np.array(votes.sigmas)[chosen],
        _p_value(votes.router.estimation) <= levels.router,
        _p_value(estimation) <= levels.classifier,
    )


def predicted(found: Certificates) -> Predictions:
    """The class that each certificate is about, without its radius.

    Guarantee: that of the certificates: a radius above 0 says it of the input too.
    """
    outcome = np.where(found.outcome == Outcome.CERTIFIED.value, Outcome.PREDICTED.value, found.outcome)
    return Predictions(found.prediction, found.sigma_c, outcome)


def _p_value(counts: Counts) -> Floats:
    """Two-sided binomial test that the two largest counts are equally likely; shape (inputs,)."""
    top_two = np.sort(counts, axis=1)[:, -2:]
    return np.asarray(np.minimum(1.0, 2 * bdtr(top_two[:, 0], top_two.sum(axis=1), 0.5)))


def _conclude(
    y: NDArray[np.int64], sigma_c: Floats, routed: NDArray[np.bool_], classified: NDArray[np.bool_]
) -> Predictions:
    undecided = np.where(routed, Outcome.CLASS_UNDECIDED.value, Outcome.ROUTER_UNDECIDED.value)
    decided = routed & classified
    return Predictions(
        prediction=np.where(decided, y, ABSTAIN),
        sigma_c=sigma_c,
        outcome=np.where(decided, Outcome.PREDICTED.value, undecided),
    )
