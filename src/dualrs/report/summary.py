"""Summary: what a ledger says at one glance, derived from its votes.

Enters: results, and certificates where there are any. Leaves: numbers for a table.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dualrs.certificates import Certificates
from dualrs.report.accuracy import abstention, average_certified_radius, certified_accuracy
from dualrs.storage.results import Results
from dualrs.theory.bounds import Floats

MANY, RANGES = 12, 8  # sigmas that are too many to list, and into how many ranges they go then


@dataclass(frozen=True)
class Summary:
    """Accuracy at radii (None without labels), and how often each sigma, limit and outcome occurs."""

    inputs: int
    abstention: float
    radii: tuple[float, ...]
    accuracy: tuple[float, ...] | None
    average_radius: float | None
    sigmas: dict[str, int] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    outcomes: dict[str, int] = field(default_factory=dict)


def summarize(results: Results, certificates: Certificates | None, radii: Sequence[float]) -> Summary:
    """Count and average; certified accuracy only where every input has a label."""
    labelled = bool(results.labelled.all())
    return Summary(
        inputs=len(results),
        abstention=abstention(results),
        radii=tuple(radii),
        accuracy=tuple(certified_accuracy(results, radii).tolist()) if labelled else None,
        average_radius=average_certified_radius(results) if labelled else None,
        sigmas=_frequencies([] if results.sigma_c is None else _sigmas(results.sigma_c)),
        limits=_frequencies([] if certificates is None else _limits(certificates.limited_by)),
        outcomes=_frequencies([] if certificates is None else sorted(certificates.outcome)),
    )


def _sigmas(sigma_c: Floats) -> list[str]:
    """The sigma of each input, rising; between which ends it lies if there are `MANY`, as each has its own."""
    if len(np.unique(sigma_c)) <= MANY:
        return [f"{s:g}" if s else "none" for s in np.sort(sigma_c)]
    ends = np.linspace(sigma_c.min(), sigma_c.max(), RANGES + 1)
    place = np.minimum(np.searchsorted(ends, np.sort(sigma_c), side="right"), RANGES)
    return [f"{ends[k - 1]:.3g} to {ends[k]:.3g}" for k in place.tolist()]


def _limits(limited_by: NDArray[np.str_]) -> list[str]:
    """What limits each input, in order; without the sigma if there are `MANY`."""
    few = len(np.unique(limited_by)) <= MANY
    return sorted(str(limit) if few else str(limit).partition(" ")[0] for limit in limited_by)


def _frequencies(values: Sequence[str]) -> dict[str, int]:
    return {str(value): count for value, count in Counter(values).items()}
