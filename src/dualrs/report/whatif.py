"""What if: what a router among fixed sigmas could give, from their results alone, before any is trained.

Enters: results of several fixed sigmas on the same inputs, of a ledger or of tables of other projects. Leaves: which
sigma is best how often, the accuracy to expect of a router that is right so often, and how often it has to be. Labels
are looked at: none of this is a certificate.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dualrs.report.accuracy import average_certified_radius, certified_accuracy
from dualrs.report.methods import Derived, envelope, oracle
from dualrs.storage.results import Results
from dualrs.theory.bounds import Floats

ROUTER = "router-"  # how names of rows begin, before the accuracy
ROUTERS = (0.5, 0.7, 0.9)  # shown where nobody asks for others; at 1 it is the oracle
NO_ROUTER = (
    "none: what to expect of a router that is right so often, whatever the input; its own radius and its share of "
    "alpha are left out"
)


@dataclass(frozen=True, eq=False)
class FixedSigmas:
    """Results of several sigmas on the same inputs in the same order; the sigmas are rising.

    The best sigma of an input is the one with the largest radius among those whose class is the label, the smallest of
    equals. A router of accuracy q names it with probability q, and else one of the others, each as likely.
    """

    sigmas: tuple[float, ...]
    results: tuple[Results, ...]

    @classmethod
    def among(cls, found: Iterable[Derived]) -> "FixedSigmas | None":
        """Those of some methods that are a fixed sigma; None if there are not several."""
        fixed = {m.sigma: m.results for m in found if m.sigma is not None}
        sigmas = tuple(sorted(fixed))
        return cls(sigmas, tuple(fixed[sigma] for sigma in sigmas)) if len(sigmas) > 1 else None

    @cached_property
    def oracle(self) -> Derived:
        """The router that names the best sigma of every input."""
        return oracle(self.sigmas, self.results)

    @property
    def best_counts(self) -> tuple[int, ...]:
        """For how many inputs each sigma is best; inputs for which no sigma is right are in none."""
        best, sure = self.oracle.results.sigma_c, ~self.oracle.results.abstained
        return tuple(int((sure & (best == sigma)).sum()) for sigma in self.sigmas)

    def routed(self, radii: Sequence[float], accuracy: float) -> Floats:
        """Certified accuracy at each radius to expect of a router of this accuracy."""
        best = certified_accuracy(self.oracle.results, radii)
        return np.asarray(accuracy * best + (1 - accuracy) * self._others(radii))

    def routed_radius(self, accuracy: float) -> float:
        """Average certified radius to expect of a router of this accuracy."""
        best, total = average_certified_radius(self.oracle.results), sum(map(average_certified_radius, self.results))
        return accuracy * best + (1 - accuracy) * (total - best) / (len(self.sigmas) - 1)

    def needed(self, radii: Sequence[float]) -> Floats:
        """The least accuracy of a router that is expected to reach the best fixed sigma at each radius.

        NaN where no sigma certifies anything. Never above 1, as the oracle is above every sigma, and never negative,
        as the mean of the others is below the best.
        """
        best, others = certified_accuracy(self.oracle.results, radii), self._others(radii)
        with np.errstate(invalid="ignore"):
            needed = np.where(best > others, (envelope(self.results, radii) - others) / (best - others), 0.0)
        return np.where(best > 0, needed, np.nan)

    def _others(self, radii: Sequence[float]) -> Floats:
        """Certified accuracy to expect of one of the sigmas that are not the best, each as likely.

        Expectations add up: what all sigmas have together, without what the best one has on each input.
        """
        total = np.sum([certified_accuracy(results, radii) for results in self.results], axis=0)
        return np.asarray((total - certified_accuracy(self.oracle.results, radii)) / (len(self.sigmas) - 1))
