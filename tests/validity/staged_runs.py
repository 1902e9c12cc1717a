"""Trials of a cascade as the library runs them: votes with confidences, asked for by a policy, certified by name.

What passes is a vote for a class of which the network was not sure. So the way from the votes of networks to those that
pass is a part of what is tested here.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from half_spaces import FAR, OTHER, Steps, Y
from scipy.special import ndtri
from staged import CLASSES, FIXED, PASS, edge

from dualrs.schemes import Cascade, rule
from dualrs.schemes.form import Form
from dualrs.votes import Joint, Part, Tally, Votes

SURE = 0.5  # the confidence of the run


def form_of(problem):
    """The rule of a problem, by the settings in its name."""
    return Form((SURE,) * len(problem.sigmas), tuple(c for c in problem.thresholds if c is not None))


def scheme_of(problem):
    return Cascade(problem.sigmas, CLASSES, confidences=(SURE,))


def carried_out(problem, votes, alpha, target=None, wrap=lambda policy, **_: policy):
    """The certificates of all trials, each driven by the policy of the library, and how many votes they took."""
    found, scheme = rule(form_of(problem).name), scheme_of(problem)
    policy = scheme.policy(problem.plan, found, alpha, target=target)
    tallies = [
        _driven(
            wrap(policy, row=row, certify=lambda t: found.certify(scheme.gather([t], problem.plan), alpha)), votes, row
        )
        for row in range(len(votes[0]))
    ]
    taken = sum(int(c.sum()) for t in tallies for parts in t.counts.values() for c in parts.values())
    return found.certify(scheme.gather(tallies, problem.plan), alpha), taken


def _driven(policy, votes, row):
    """What a policy takes of the votes of one trial."""
    models, tally = {v.sigma: v for v in votes}, Tally()
    for wanted in policy(tally):
        for stream, upto in wanted.items():
            model = models[stream.sigma]
            steps = model.plan.steps(stream.part)
            if stream.part is Part.SELECTION:
                parts = model.selection[row][None]
            else:
                parts = model.estimation[row][None] if model.segments is None else model.segments[row]
            for start, stop, counts in zip((0, *steps), steps, parts, strict=False):
                if stop <= upto and start not in tally.counts.get(stream, {}):
                    pairs = np.zeros((CLASSES, 2), dtype=np.int64)
                    pairs[:, 1], pairs[OTHER, 0] = counts[:CLASSES], counts[PASS]
                    tally.put(stream, start, pairs.ravel())
    return tally


@dataclass(frozen=True)
class TwoConfidences:
    """Two stages whose true radius is the same whether votes below a confidence pass or not.

    If none pass, the first stage is taken by another class there; if they do, the second is no longer sure of Y there.
    """

    stages: tuple[Steps, ...]  # their answers are pairs of a class and a bin
    sigmas: tuple[float, ...]
    radius: float
    label: int = Y

    def predictor(self, t, passing):
        """The first class with more than half, at exact probabilities."""
        answer = np.full(len(t), -1)
        for stage, sigma in zip(self.stages, self.sigmas, strict=True):
            p = stage.probabilities(t, sigma, 2 * CLASSES).reshape(len(t), CLASSES, 2)[:, :, passing:].sum(axis=2)
            answer = np.where((answer < 0) & (p.max(axis=1) > 0.5), p.argmax(axis=1), answer)
        return answer

    @lru_cache(maxsize=2)  # noqa: B019 - one problem, which lives as long as the tests
    def draw(self, trials, seed):
        rng = np.random.default_rng(seed)
        found = []
        for stage, sigma in zip(self.stages, self.sigmas, strict=True):
            joint = []
            for size in (FIXED.n0, FIXED.n):
                counts = stage.count(rng.standard_normal((trials, size)), sigma, 2 * CLASSES)
                row, pair = np.nonzero(counts)
                joint.append(Joint((SURE,), CLASSES, trials, row, pair, counts[row, pair]))
            found.append(Votes(sigma, joint[0].by_class(), joint[1].by_class(), FIXED, joint=tuple(joint)))
        return tuple(found)


def two_confidences(upper_level, lower_level, radius=0.5):
    """Both bounds on their edges: N of the first stage if no vote passes, r of the second if they do."""
    q, p = 1 - edge(FIXED, upper_level, 0.6), edge(FIXED, lower_level, 0.7)
    first, second = radius / -float(ndtri(q)), radius / float(ndtri(p))
    unsure, sure = 0, 1
    stages = (
        Steps((float(first * ndtri((1 - q) / 2)), float(-first * ndtri(q))), (0, 2 * Y + unsure, 2 * OTHER + unsure)),
        Steps((float(second * ndtri(p)), radius + FAR * second), (2 * Y + sure, 2 * Y + unsure, 2 * OTHER + sure)),
    )
    return TwoConfidences(stages, (first, second), radius)
