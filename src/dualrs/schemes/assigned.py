"""Assigned: votes of a router alone, which assign a sigma to each training input. Section 5.2.2 of the paper."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from dualrs.certificates import ABSTAIN, predict
from dualrs.schemes.lesson import Lesson
from dualrs.theory.bounds import Floats
from dualrs.votes import Part, Purpose, SamplingPlan, Stage, Stream, Tally, Votes, gather


class Choice(NamedTuple):
    """The sigma of each input, and whether the votes decide it."""

    sigma_c: Floats
    decided: NDArray[np.bool_]


@final
@dataclass(frozen=True)
class Assigned(Lesson[Votes]):
    """A router without its experts; ``classes`` is 0, as no classifier votes."""

    sigma_e: float = 0.0

    name: ClassVar[str] = "assigned"
    purpose: ClassVar[Purpose] = Purpose.ASSIGN
    words: ClassVar[str] = "assigned sigmas"
    refusal: ClassVar[str] = "a router alone has no rule, as it names no class; use DualSmoothed with a classifier"

    @property
    def streams(self) -> dict[Stream, int]:
        """Estimation votes of the router."""
        return {Stream(Stage.ROUTER, Part.ESTIMATION, self.sigma_e): len(self.sigmas)}

    def gather(self, tallies: Sequence[Tally], plan: SamplingPlan) -> Votes:
        """The router's votes."""
        return gather(tallies, Stage.ROUTER, self.sigma_e, len(self.sigmas), plan)

    def choice(self, votes: Votes, alpha: float) -> Choice:
        """PREDICT of Cohen et al. on the router alone, hence one test at the whole alpha.

        Where it abstains, the input takes the sigma that most votes name all the same, the smaller one in a tie:
        training needs a sigma and no guarantee.
        """
        rising = np.argsort(self.sigmas)  # argmax takes the first of equals
        sigma_c = np.asarray(self.sigmas)[rising][votes.estimation[:, rising].argmax(axis=1)]
        return Choice(sigma_c, predict(votes, alpha).prediction != ABSTAIN)
