"""Labels: votes of every expert at its sigma on training inputs, which labels are made from. Section 5.2.1."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from dualrs.schemes.lesson import Lesson
from dualrs.schemes.scheme import class_estimation
from dualrs.theory.bounds import Floats, lower
from dualrs.theory.budget import ErrorBudget
from dualrs.theory.radius import gaussian_radius
from dualrs.votes import Purpose, SamplingPlan, Stream, Tally, Votes


@final
@dataclass(frozen=True)
class Labels(Lesson[tuple[Votes, ...]]):
    """A classifier at several sigmas, or an expert for each, before there is a router."""

    name: ClassVar[str] = "labels"
    purpose: ClassVar[Purpose] = Purpose.LABEL
    words: ClassVar[str] = "labels"
    refusal: ClassVar[str] = "a pool of experts has no rule: certify one of them at its sigma, or add a router"

    @property
    def streams(self) -> dict[Stream, int]:
        """Estimation votes of every expert."""
        return {class_estimation(sigma): self.classes for sigma in self.sigmas}

    def gather(self, tallies: Sequence[Tally], plan: SamplingPlan) -> tuple[Votes, ...]:
        """The class votes, sigma by sigma."""
        return self.gather_experts(tallies, plan)

    def radii(self, votes: tuple[Votes, ...], truth: NDArray[np.int64], alpha: float) -> Floats:
        """The radius of the true class at each sigma, (inputs, sigmas); zero where it does not win.

        With c of n votes for the true class, R_c = sigma * Phi^-1(L(c, n, alpha)) where the bound exceeds 1/2, else 0.
        At alpha per sigma this is an estimate to learn from and no certificate: labels are used, and sigmas compared.
        """
        level = ErrorBudget(alpha).alpha
        rows = np.arange(len(truth))
        found = [
            gaussian_radius(v.sigma, lower(v.estimation[rows, truth], np.maximum(v.sampled, 1), level)) for v in votes
        ]
        return np.maximum(np.stack(found, axis=1), 0.0)
