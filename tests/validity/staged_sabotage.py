"""Rule `cascade` with one mistake each, for the tests to catch; each is a function from votes to certificates."""

from dataclasses import dataclass, fields, replace

import numpy as np
import pytest
from verdict import ALPHA

from dualrs.certificates import Certificates
from dualrs.certificates import cascade as room
from dualrs.certificates.cascade import cascade
from dualrs.schemes import CascadeVotes, rule
from dualrs.theory.bounds import lower, upper
from dualrs.theory.budget import ErrorBudget, StageBounds
from dualrs.votes import SamplingPlan, Votes


def honest(votes, limits):
    return Certificates.conclude(cascade(votes, ALPHA, limits))


def at_levels(levels):
    """Other levels than those of the rule."""
    bounds = tuple(StageBounds(np.asarray(a), np.asarray(b)) for a, b in levels)

    def certify(votes, limits):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ErrorBudget, "cascade", lambda budget, stages: bounds)
            return honest(votes, limits)

    return certify


def class_chosen_again(votes, limits):
    """The estimation votes choose the class too, after they have come."""
    plan = votes[0].plan
    again = SamplingPlan(plan.n, plan.n, plan.looks)
    return honest([replace(v, selection=v.estimation, plan=again) for v in votes], limits)


def class_of_the_stages_asked(votes, limits):
    """The class depends on who was asked: where the first stage claims nothing for its own, that of the next counts."""
    other = room.chosen_class(votes[1:], limits[1:])
    turned = votes[0].plan.n0 * np.eye(votes[0].answers, dtype=np.int64)[other]
    return _larger(honest(votes, limits), honest([replace(votes[0], selection=turned), *votes[1:]], limits))


@dataclass(frozen=True)
class WithoutPasses:
    """Bounds from the votes that did not pass, as if there had been no others."""

    votes: Votes

    def __len__(self):
        return len(self.votes)

    def __getattr__(self, name):
        return getattr(self.votes, name)

    def lower(self, answer, level):
        return lower(self._of(answer), self._heard, level)

    def upper_of_others(self, answer, level):
        others = self.votes.estimation[:, : self.votes.classes].copy()
        np.put_along_axis(others, answer[:, None], 0, axis=1)
        return upper(others.max(axis=1), self._heard, level)

    @property
    def _heard(self):
        return self.votes.estimation[:, : self.votes.classes].sum(axis=1)

    def _of(self, answer):
        return np.take_along_axis(self.votes.estimation, answer[:, None], axis=1)[:, 0]


def passes_left_out(votes, limits):
    """Passes are taken for no votes at all."""
    found = cascade([WithoutPasses(v) for v in votes], ALPHA, limits)
    return Certificates.conclude(replace(found, evidence=()))


def below_one_half(threshold):
    """Every stage answers a class from a smaller share on, of which two may have so much."""

    def certify(votes, limits):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(room, "MAJORITY", threshold)
            return honest(votes, (threshold,) * len(limits))

    return certify


def best_of(*names):
    """Of several forms of the rule, input by input, the one with the largest radius."""

    def certify(experts, limits):
        chosen = rule(names[0]).certify(CascadeVotes(experts), ALPHA)
        for name in names[1:]:
            chosen = _larger(chosen, rule(name).certify(CascadeVotes(experts), ALPHA))
        return chosen

    return certify


def _larger(a, b):
    take = a.radius >= b.radius
    same = {f.name: (getattr(a, f.name), getattr(b, f.name)) for f in fields(a)}
    arrays = {name: np.where(take, *pair) for name, pair in same.items() if isinstance(pair[0], np.ndarray)}
    return Certificates(**arrays)
