"""Rule `cascade` once more, for one input at a time and in plain Python, written from its definition alone.

Slow and obvious on purpose: the fast rule is compared with this. Nothing of dualrs is used here.
"""

from slow_rules import INF, first_maximum, high, low, quantile


class Stage:
    """The votes on one input at one sigma; ``looks`` has the counts at each look reached, and its share of a level."""

    def __init__(self, sigma, selection, looks, passes=False):
        self.sigma, self.selection, self.looks = sigma, list(selection), looks
        self.classes = len(self.selection) - passes

    def lower(self, y, level):
        """The best lower bound on the probability of y over the looks."""
        return max((low(counts[y], sum(counts), level * share) for counts, share in self.looks), default=0.0)

    def upper(self, y, level):
        """The best upper bound on the probability of the likeliest other class, by the largest count at each look."""
        found = 1.0
        for counts, share in self.looks:
            most = max((counts[i] for i in range(self.classes) if i != y), default=0)
            found = min(found, high(most, sum(counts), level * share))
        return found


def cascade(stages, alpha, thresholds=()):
    """Class, radius, and the sigma, own radius and reach of the stage that answers; the class is -1 if it abstains."""
    stages = sorted(stages, key=lambda stage: -stage.sigma)
    count = len(stages)
    limits = [thresholds[m] if m < len(thresholds) else None for m in range(count)]
    c = [0.5 if limit is None else limit for limit in limits]

    y = first_maximum(stages[-1].selection[: stages[-1].classes])
    for m in reversed(range(count)):  # so the noisiest that is sure has the last word
        votes = stages[m].selection[: stages[m].classes]
        if max(votes) > c[m] * sum(stages[m].selection):
            y = first_maximum(votes)

    own, blocked = [], []
    for m, stage in enumerate(stages):
        level = alpha / count
        if m == count - 1 and limits[m] is None and len(stage.selection) > 2:
            p, q = stage.lower(y, level / 2), stage.upper(y, level / 2)
            own.append(stage.sigma / 2 * (quantile(p) - quantile(q)))
        else:
            own.append(stage.sigma * (quantile(stage.lower(y, level)) - quantile(c[m])))
        above = stage.upper(y, alpha * (count - m) / count)  # m counts from 0
        blocked.append(stage.sigma * (quantile(c[m]) - quantile(above)))

    best = (-INF, None, None, None)
    for m, stage in enumerate(stages):
        reach = min(blocked[:m], default=INF)
        if min(own[m], reach) > best[0]:
            best = (min(own[m], reach), stage.sigma, own[m], reach)
    if best[0] <= 0:
        return -1, 0.0, None, None, None
    return y, *best
