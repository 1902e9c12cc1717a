"""Certificates of one table against predictions on attacked images of others, and whether they contradict each other.

Enters: results with radii, and what was predicted for the same inputs after an attack of known size. Leaves: how many
certificates were contradicted, and how likely that is by chance.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scipy.special import bdtrc

from dualrs.certificates import ABSTAIN
from dualrs.errors import BadSetting, BadTable
from dualrs.storage.peers import CORE, read_table
from dualrs.storage.results import Results


@dataclass(frozen=True)
class Flips:
    """How predictions on attacked images agree with certificates that reach farther than the attack.

    ``certificates`` were compared with ``comparisons`` predictions in all; ``flipped`` are the inputs that were
    predicted otherwise at least once.
    """

    certificates: int
    comparisons: int
    abstained: int
    flipped: tuple[int, ...]
    rate: float  # at which a certificate may be contradicted by chance

    @property
    def chance(self) -> float:
        """The probability of so many contradicted certificates or more, if all is as it should be."""
        flips = len(self.flipped)
        return float(bdtrc(flips - 1, self.certificates, self.rate)) if flips else 1.0

    def __str__(self) -> str:
        return (
            f"{len(self.flipped)} of {self.certificates:,} certificates contradicted, in {self.comparisons:,} "
            f"comparisons of which {self.abstained:,} abstain (chance {self.chance:.3g})"
        )


def compare_predictions(results: Results, paths: Sequence[Path], radius: float, alpha: float) -> Flips:
    """Compare certificates beyond a radius with predictions on images changed by that much at most.

    Guarantee: if every certificate and every prediction is wrong with probability alpha at most, a certificate is
    contradicted with probability at most alpha (1 + number of tables).
    Assumes: tables about the same smoothed model, noise drawn afresh for each.
    """
    if not 0 <= radius < float("inf"):
        raise BadSetting(f"the radius of an attack must be a number and at least 0, got {radius}")
    claims = {
        int(idx): (int(label), int(predicted))
        for idx, label, predicted, reach in zip(
            results.index, results.label, results.prediction, results.radius, strict=True
        )
        if predicted != ABSTAIN and reach > radius
    }
    flipped, met, comparisons, abstained = set[int](), set[int](), 0, 0
    for path in paths:
        table = read_table(path, CORE).results
        rows = zip(table.index.tolist(), table.label.tolist(), table.prediction.tolist(), strict=True)
        for idx, label, predicted in rows:
            if idx not in claims:
                continue
            told, certified = claims[idx]
            if label != told:
                raise BadTable(f"{path} gives idx {idx} the label {label}, and the certificates {told}: other data?")
            met.add(idx)
            comparisons += 1
            abstained += predicted == ABSTAIN
            if predicted not in (ABSTAIN, certified):
                flipped.add(idx)
    return Flips(len(met), comparisons, abstained, tuple(sorted(flipped)), min(1.0, alpha * (1 + len(paths))))
