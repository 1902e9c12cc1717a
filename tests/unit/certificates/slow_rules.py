"""The rules once more, for one input at a time and in plain Python, written from docs/guarantees.md alone.

Slow and obvious on purpose: the fast rules are compared with this. Nothing of dualrs is used here.
"""

import math
from statistics import NormalDist

from scipy.stats import beta

INF = math.inf


def quantile(p):
    """Phi^-1, with its limits."""
    if p <= 0:
        return -INF
    return INF if p >= 1 else NormalDist().inv_cdf(p)


def low(k, n, level):
    return 0.0 if k == 0 else float(beta.ppf(level, k, n - k + 1))


def high(k, n, level):
    return 1.0 if k == n else float(beta.isf(level, k + 1, n - k))


def first_maximum(counts):
    return max(range(len(counts)), key=lambda i: (counts[i], -i))


class Model:
    """The votes on one input: sigma, selection counts, estimation counts."""

    def __init__(self, sigma, selection, estimation):
        self.sigma, self.selection, self.estimation = sigma, list(selection), list(estimation)

    @property
    def n(self):
        return sum(self.estimation)


def majority(model, answer, level):
    """The radius within which `answer` keeps more than half: sigma * Phi^-1(L)."""
    return model.sigma * quantile(low(model.estimation[answer], model.n, level))


def pair(model, answer, level):
    """The radius within which `answer` beats each other one: both bounds at half the level."""
    rest = max(c for i, c in enumerate(model.estimation) if i != answer)
    p, q = low(model.estimation[answer], model.n, level / 2), high(rest, model.n, level / 2)
    return model.sigma / 2 * (quantile(p) - quantile(q))


def verdict(y, sigma_c, r_c, r_sigma, router_limit):
    radius = min(r_c, r_sigma)
    limit = "class" if r_c <= r_sigma or r_c <= 0 else router_limit  # an undecided class is reason enough
    if radius > 0:
        return y, radius, sigma_c, r_c, r_sigma, limit, "certified"
    doubt = "earlier stage undecided" if router_limit.startswith("stage") else "router undecided"
    reason = "class undecided" if limit == "class" else doubt
    return -1, 0.0, sigma_c, r_c, r_sigma, limit, reason


def cohen(model, alpha):
    y = first_maximum(model.selection)
    return verdict(y, model.sigma, majority(model, y, alpha), INF, "router")


def stages(router, experts, class_level, router_level):
    a = first_maximum(router.selection)
    y = first_maximum(experts[a].selection)
    r_c, r_sigma = majority(experts[a], y, class_level), majority(router, a, router_level)
    return verdict(y, experts[a].sigma, r_c, r_sigma, "router")


def paper(router, experts, alpha, shares=(1, 1)):
    total = sum(shares)
    return stages(router, experts, alpha * shares[0] / total, alpha * shares[1] / total)


def nosplit(router, experts, alpha):
    return stages(router, experts, alpha, alpha)


def fusion(router, experts, alpha, agreement=majority):
    a = first_maximum(router.selection)
    y = first_maximum(experts[a].selection)
    candidates = len(experts)
    weakest, name = INF, None
    for j, expert in enumerate(experts):
        if j == a:
            continue
        if candidates == 2:
            exclusion = majority(router, a, alpha / 2)
        else:
            l_a = low(router.estimation[a], router.n, alpha / 4)
            u_j = high(router.estimation[j], router.n, alpha / 4)
            exclusion = router.sigma * max(
                (quantile(l_a) - quantile(u_j)) / 2, quantile(1 / candidates) - quantile(u_j)
            )
        r_j = agreement(expert, y, alpha / 2) if expert.n else -INF
        if name is None or max(r_j, exclusion) < weakest:
            weakest, name = max(r_j, exclusion), f"rival {expert.sigma:g}"
    return verdict(y, experts[a].sigma, agreement(experts[a], y, alpha), weakest, name)


def fusion_pair(router, experts, alpha):
    return fusion(router, experts, alpha, agreement=pair)
