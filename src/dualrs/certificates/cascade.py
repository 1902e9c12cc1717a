"""Rule `cascade`: smoothed classifiers at several sigmas, the noisiest first, and no router.

Stage m answers y where the probability of y at its sigma lies above its threshold c_m >= 1/2; the first stage, sigma
descending, that answers anything gives the class. A vote may be a *pass*, which counts among the votes and is no class.
The last stage answers by plain majority of its classes, unless it has a threshold of its own. With r_m a radius within
which stage m answers y, and N_j one within which stage j answers no class but y, the cascade answers y closer than

    R = max over m of min(r_m, min over j < m of N_j).

Take the m that attains R: closer than R stage m answers y if it is reached, and no stage before it answers another
class; one that answers y does no harm. So stages that agree help each other, and a noisy stage that is unsure costs
nothing as long as it is not sure of something else. docs/guarantees.md has the levels and their proof.
"""

from collections.abc import Sequence
from itertools import pairwise, zip_longest

import numpy as np
from numpy.typing import NDArray

from dualrs.certificates.certificate import STAGE, B, Outcome, Radii
from dualrs.certificates.selection import Indices, demand
from dualrs.errors import UnusableVotes
from dualrs.theory.bounds import Floats
from dualrs.theory.budget import ErrorBudget, StageBounds, pair_level
from dualrs.theory.radius import above_radius, below_radius, pair_radius
from dualrs.votes import Bounds, Stated

MAJORITY = 0.5  # the threshold of a stage, unless another is given; no smaller one is sound


def cascade(stages: Sequence[B], alpha: float, thresholds: Sequence[float | None] = ()) -> Radii[B]:
    """Certify the cascade over stages that are given the noisiest first; ``sigma_c`` is the stage that answers.

    ``thresholds`` are those of the first stages: 1/2 where there is none, and for the last stage plain majority. The
    last stage may be a network without noise that states a radius (sigma 0): it answers wherever it is reached.

    Guarantee: with probability >= 1 - alpha over the votes, no x closer than the radius has another answer of the
    cascade. Given the selection votes y is fixed. R is the minimum over clauses, max(r_1, ..., r_k, N_k) for each stage
    k but the last, and max(r_1, ..., r_K); at the true probabilities one of them is the bottleneck, and to claim more
    some bound in it has to fail: their levels add up to alpha at most. r_k drops out of clause k, as its estimate
    never exceeds that of N_k. What a last stage without noise states cannot fail and spends no level: it stands in the
    last clause alone, beside the r of all others.
    Assumes: as `cohen`, for each stage; any dependence between the stages is allowed. A stage without votes has r and N
    of minus infinity, so it may be left unsampled for any reason. Thresholds and what passes are fixed before the
    estimation votes, as the rule itself.
    """
    limits = of_every_stage(thresholds, len(stages))
    if any(a.sigma <= b.sigma for a, b in pairwise(stages)):
        raise UnusableVotes("the stages of a cascade come in the order of falling sigmas")
    if any(c is not None and not MAJORITY <= c < 1 for c in limits):
        raise UnusableVotes(f"thresholds of a cascade are at least 1/2 and below 1, got {limits}")
    y = chosen_class(stages, limits)
    levels = ErrorBudget(alpha).cascade(sum(not isinstance(stage, Stated) for stage in stages))
    last = len(stages) - 1
    heard = list(zip_longest(stages, levels, limits))
    own = np.stack([_own(s, y, level, limit, m == last) for m, (s, level, limit) in enumerate(heard)])
    blocks = np.stack([_blocked(s, y, level, limit) for s, level, limit in heard])
    reach = np.minimum.accumulate(np.vstack([np.full(len(y), np.inf), blocks[:-1]]))  # of the stages before each
    whole, rows = np.minimum(own, reach), np.arange(len(y))
    voted = np.stack([s.sampled > 0 for s in stages])
    answering = np.where(whole.max(axis=0) > 0, whole.argmax(axis=0), _undecided(voted, blocks))
    before = np.where(np.arange(len(stages))[:, None] < answering, blocks, np.inf)
    sigmas = np.array([s.sigma for s in stages])
    return Radii(
        y,
        sigma_c=sigmas[answering],
        r_c=own[answering, rows],
        r_sigma=reach[answering, rows],
        rival=sigmas[before.argmin(axis=0)],
        evidence=tuple(stages),
        rivals=STAGE,
        doubt=Outcome.STAGE_UNDECIDED,
    )


def of_every_stage(thresholds: Sequence[float | None], stages: int) -> list[float | None]:
    """The threshold of each of so many stages, given those of the first; None where none is said."""
    return [*thresholds, *[None] * (stages - len(thresholds))]


def chosen_class(stages: Sequence[Bounds], thresholds: Sequence[float | None]) -> Indices:
    """The class y of each input: that of the first stage whose selection votes exceed its threshold, else of the last.

    It depends on selection votes alone, and never on which stages have estimation votes.
    """
    y = np.zeros(len(stages[0]), dtype=np.int64)
    open_ = np.ones(len(y), dtype=np.bool_)
    for number, stage in enumerate(stages):
        demand(~open_ | (stage.selection.sum(axis=1) > 0), f"selection votes at sigma {stage.sigma:g}")
        here = open_ & (sure(stage, thresholds[number]) | (number == len(stages) - 1))
        y = np.where(here, stage.selection[:, : stage.classes].argmax(axis=1), y)
        open_ &= ~here
    return y


def sure(stage: Bounds, threshold: float | None) -> NDArray[np.bool_]:
    """Whether the selection votes of a stage exceed its threshold for some class; shape (inputs,)."""
    votes = stage.selection[:, : stage.classes].max(axis=1)
    return np.asarray(votes > (threshold or MAJORITY) * stage.selection.sum(axis=1))


def _undecided(voted: NDArray[np.bool_], blocks: Floats) -> Indices:
    """The stage that an abstention is about: the first that might answer another class, else the last that voted."""
    blocking = voted & (blocks <= 0)
    last = len(voted) - 1 - voted[::-1].argmax(axis=0)
    return np.asarray(np.where(blocking.any(axis=0), blocking.argmax(axis=0), last))


def _own(stage: Bounds, y: Indices, levels: StageBounds, threshold: float | None, last: bool) -> Floats:
    """r_m: a radius within which a stage answers ``y``."""
    if isinstance(stage, Stated):
        return stage.stays(y)
    level = levels.lower
    if last and threshold is None and stage.answers > 2:  # of two classes, the majority has more than half
        each = pair_level(level)
        return pair_radius(stage.sigma, stage.lower(y, each), stage.upper_of_others(y, each))
    return above_radius(stage.sigma, stage.lower(y, level), threshold or MAJORITY)


def _blocked(stage: Bounds, y: Indices, levels: StageBounds, threshold: float | None) -> Floats:
    """N_j: a radius within which a stage answers no class but ``y``."""
    if isinstance(stage, Stated):  # it always answers
        return stage.stays(y)
    return below_radius(stage.sigma, stage.upper_of_others(y, levels.upper), threshold or MAJORITY)
