"""Thresholds per class for the cascade, chosen and cross-validated on calibration votes: what README.md reports.

    python results/cascade/per_class.py LEDGER...

A stage but the last may answer a class where its probability lies above a threshold of that class, one half or more.
Coordinate ascent over stages and classes, mean certified accuracy over the radii as the aim, five folds. Only to see
what it would give: the rule of the library has one threshold a stage.
"""

import sys
from itertools import product

import numpy as np
from scipy.special import ndtri

import dualrs
from dualrs.report.bootstrap import mean_interval
from dualrs.theory.bounds import lower, upper
from dualrs.theory.budget import ErrorBudget, pair_level
from dualrs.theory.radius import RADII, pair_radius

THRESHOLDS = (0.5, 0.55, 0.6, 0.7, 0.8, 0.9)
FOLDS = 5


class Problem:
    """The bounds of every stage, input and class of a ledger."""

    def __init__(self, path: str) -> None:
        sampled = dualrs.open(path)
        view = sampled.votes
        self.label = np.array(sampled.labels)
        self.stages = sorted((e.confident(0.0) for e in view.experts), key=lambda e: -e.sigma)
        levels = ErrorBudget(sampled.alpha).cascade(len(self.stages))
        self.lower, self.upper = [], []
        for stage, level in zip(self.stages, levels, strict=True):
            counts, n = stage.estimation, stage.estimation.sum(axis=1, keepdims=True)
            self.lower.append(lower(counts, n, level.lower))
            self.upper.append(upper(counts, n, level.upper))
        last, each = self.stages[-1], pair_level(levels[-1].lower)
        classes = range(last.classes)
        rows = np.full(len(last), 0)
        self.last = np.stack(
            [
                pair_radius(last.sigma, last.lower(rows + c, each), last.upper_of_others(rows + c, each))
                for c in classes
            ],
            axis=1,
        )

    def values(self, thresholds: np.ndarray) -> np.ndarray:
        """The objective on each input under thresholds (stages but the last, classes)."""
        rows, count = np.arange(len(self.label)), len(self.stages)
        y, open_ = self.stages[-1].selection.argmax(axis=1), np.ones(len(rows), dtype=bool)
        for stage, limits in zip(self.stages, thresholds, strict=False):
            share = stage.selection / stage.selection.sum(axis=1, keepdims=True)
            sure = share > limits
            y = np.where(open_ & sure.any(axis=1), sure.argmax(axis=1), y)
            open_ &= ~sure.any(axis=1)
        reach, radius = np.full(len(rows), np.inf), np.full(len(rows), -np.inf)
        for m, stage in enumerate(self.stages):
            if m == count - 1:
                own = self.last[rows, y]
            else:
                own = stage.sigma * (ndtri(self.lower[m][rows, y]) - ndtri(thresholds[m][y]))
            radius = np.maximum(radius, np.minimum(own, reach))
            if m < count - 1:
                each = stage.sigma * (ndtri(thresholds[m]) - ndtri(self.upper[m]))
                each[rows, y] = np.inf
                reach = np.minimum(reach, each.min(axis=1))
        right = (y == self.label) & (radius > 0)
        return np.mean([right & (radius >= r) for r in RADII], axis=0)

    def best(self, held: np.ndarray, per_class: bool) -> np.ndarray:
        """Thresholds by coordinate ascent on some inputs, one for each class or for all of a stage."""
        found = np.full((len(self.stages) - 1, self.stages[0].classes), 0.5)
        score = self.values(found)[held].mean()
        while True:
            before = score
            for m, c in product(range(len(found)), range(found.shape[1]) if per_class else [slice(None)]):
                for threshold in THRESHOLDS:
                    other = found.copy()
                    other[m, c] = threshold
                    if (value := self.values(other)[held].mean()) > score + 1e-9:
                        found, score = other, value
            if score == before:
                return found


def main(paths: list[str]) -> None:
    """Print what choosing gives on the inputs of the choice and on those left out."""
    for path in paths:
        problem = Problem(path)
        every = np.ones(len(problem.label), dtype=bool)
        plain = problem.values(np.full((len(problem.stages) - 1, problem.stages[0].classes), 0.5))
        print(f"{path}: plain {100 * plain.mean():.2f}")
        for name, per_class in (("one threshold a stage", False), ("one a stage and class", True)):
            gain = problem.values(problem.best(every, per_class)) - plain
            fold, apart = np.arange(len(plain)) % FOLDS, np.zeros(len(plain))
            for number in range(FOLDS):
                out = fold == number
                apart[out] = problem.values(problem.best(~out, per_class))[out]
            interval = mean_interval(apart - plain)
            print(
                f"  {name}: {100 * gain.mean():+.2f} on its own inputs, {100 * (apart - plain).mean():+.2f} "
                f"[{100 * interval[0]:.2f}, {100 * interval[1]:.2f}] on inputs left out"
            )


if __name__ == "__main__":
    main(sys.argv[1:])
