"""Votes of models that are only probabilities: streams of answers, addressed, as an engine would count them."""

from dataclasses import dataclass, field

import numpy as np

from dualrs.theory.looks import planned_looks
from dualrs.votes import BLOCK, Part, SamplingPlan, Stage, Stream, Tally


def adaptive_plan(n=800, n0=20):
    return SamplingPlan(n0, n, planned_looks(n))


@dataclass
class Voters:
    """Probabilities of the answers of each model, by stage and sigma; the seed decides every vote.

    With ``share`` the expert at the router's sigma reads the uniform numbers that the router reads.
    """

    probabilities: dict
    seed: int = 0
    share: bool = False
    asked: list = field(default_factory=list)

    def answers(self, stream, n):
        """The first answers of a stream, (n,)."""
        p = self.probabilities[stream.stage, stream.sigma]
        shared = self.share and (Stage.ROUTER, stream.sigma) in self.probabilities
        stage = Stage.ROUTER if shared else stream.stage
        address = [self.seed, list(Stage).index(stage), list(Part).index(stream.part), int(1000 * stream.sigma)]
        uniform = np.random.default_rng(address).random(n)
        return np.searchsorted(np.cumsum(p)[:-1], uniform, side="right")

    def count(self, unit):
        """Counts of a unit, (blocks, answers)."""
        given = self.answers(unit.stream, unit.stop)[unit.start :]
        size = len(self.probabilities[unit.stream.stage, unit.stream.sigma])
        counts = np.zeros((unit.blocks, size), dtype=np.int64)
        np.add.at(counts, (np.arange(unit.votes) // BLOCK, given), 1)
        return counts

    def drive(self, policy, plan, tally=None, units=None):
        """Carry a policy out, from a tally of earlier votes; ``asked`` and ``units`` note what is wanted and drawn."""
        tally = Tally() if tally is None else tally
        for wanted in policy(tally):
            self.asked.append(dict(wanted))
            for stream, upto in wanted.items():
                for unit in plan.units("x", stream, upto):
                    if not tally.holds(unit):
                        tally.add(unit, self.count(unit))
                        if units is not None:
                            units.append(unit)
        return tally


def router(sigma, part=Part.ESTIMATION):
    return Stream(Stage.ROUTER, part, sigma)


def expert(sigma, part=Part.ESTIMATION):
    return Stream(Stage.CLASS, part, sigma)


def votes_of(tally):
    """How many votes each stream has."""
    return {
        stream: int(sum(counts.sum() for counts in parts.values())) for stream, parts in tally.counts.items() if parts
    }


def same_votes(one, other):
    """Whether two tallies hold the same units with the same counts."""
    if {s: set(c) for s, c in one.counts.items()} != {s: set(c) for s, c in other.counts.items()}:
        return False
    return all(
        np.array_equal(c, other.counts[s][start]) for s, parts in one.counts.items() for start, c in parts.items()
    )
