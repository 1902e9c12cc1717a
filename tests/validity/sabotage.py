"""Rules with one mistake each, built from the public functions, for the tests to catch.

Every one is a function from votes to certificates, like the honest rules, and is judged in the same way.
"""

from dataclasses import fields, replace

import numpy as np
from verdict import ALPHA

from dualrs.certificates import Certificates, Radii
from dualrs.certificates.selection import candidate_and_class
from dualrs.schemes import DualVotes, rule
from dualrs.theory.bounds import lower, upper
from dualrs.theory.budget import ErrorBudget, FusionLevels
from dualrs.theory.radius import exclusion_radius, gaussian_radius, pair_radius
from dualrs.votes import SamplingPlan


def honest(name):
    return lambda votes: rule(name).certify(votes, ALPHA)


def alpha_times(factor, name):
    """The rule at a multiple of alpha, judged as if it had been alpha."""
    return lambda votes: rule(name).certify(votes, factor * ALPHA)


def routing_ignored(name):
    """The radius of the class alone, as if the router could not change its mind."""

    def certify(votes):
        _, label = candidate_and_class(votes)
        found = rule(name).certify(votes, ALPHA)
        never, unnamed = np.full(len(votes), np.inf), np.full(len(votes), np.nan)
        return Certificates.conclude(Radii(label, found.sigma_c, found.r_c, never, unnamed, evidence=()))

    return certify


def selection_reused(name):
    """The estimation votes choose candidate and class too, so the bound is made for whatever was lucky."""

    def reuse(votes):
        return replace(votes, selection=votes.estimation, plan=SamplingPlan(votes.plan.n, votes.plan.n))

    def certify(votes):
        if isinstance(votes, DualVotes):
            votes = DualVotes(reuse(votes.router), tuple(reuse(e) for e in votes.experts))
        else:
            votes = reuse(votes)
        return rule(name).certify(votes, ALPHA)

    return certify


def larger_of(first, second):
    """Of two rules, input by input, the one with the larger radius."""

    def certify(votes):
        a, b = first(votes), second(votes)
        take = a.radius >= b.radius
        return Certificates(**{f.name: np.where(take, getattr(a, f.name), getattr(b, f.name)) for f in fields(a)})

    return certify


def fusion_levels(**changed):
    """The levels of rule fusion for the number of candidates, some of them changed."""
    return lambda candidates: ErrorBudget(ALPHA).fusion(candidates)._replace(**changed)


def all_levels(level):
    return lambda candidates: FusionLevels(level, level, level, level)


def fusion_twin(levels_for=fusion_levels(), point_estimate=False, own_favourite=False):  # noqa: B008 - a pure function
    """Rule fusion once more, open to sabotage of its levels, of its exclusion and of whom the experts agree with."""

    def certify(votes):
        chosen, label = candidate_and_class(votes)
        candidates, rows = len(votes.experts), np.arange(len(votes))
        levels, router, n = levels_for(candidates), votes.router, votes.router.plan.n
        held = router.estimation[rows, chosen]
        l_a = held / n if point_estimate else lower(held, n, levels.router_lower)
        agreement, per_rival = [], []
        for j, expert in enumerate(votes.experts):
            about = expert.selection.argmax(axis=1) if own_favourite else label
            for_label = expert.estimation[rows, about]
            level = np.where(chosen == j, levels.chosen, levels.other)
            agreement.append(gaussian_radius(expert.sigma, lower(for_label, n, level)))
            if candidates == 2:
                exclusion = gaussian_radius(router.sigma, l_a)
            else:
                against = router.estimation[:, j]
                u_j = against / n if point_estimate else upper(against, n, levels.router_upper)
                exclusion = np.maximum(
                    pair_radius(router.sigma, l_a, u_j), exclusion_radius(router.sigma, u_j, candidates)
                )
            per_rival.append(np.where(chosen == j, np.inf, np.maximum(agreement[j], exclusion)))
        return Certificates.conclude(
            Radii(
                label,
                sigma_c=np.array(votes.sigmas)[chosen],
                r_c=np.stack(agreement)[chosen, rows],
                r_sigma=np.min(per_rival, axis=0),
                rival=np.full(len(votes), np.nan),
                evidence=(),
            )
        )

    return certify
