"""A model for each kind of run, one line each, and invented votes for any of them: what the suites of schemes run over.

Everything else about a kind (its streams, its rules, the job that carries it out) is asked of its scheme.
"""

from dataclasses import fields, is_dataclass
from functools import cache

import numpy as np

from dualrs import Ace, Aces, Backed, Cascade, DualSmoothed, InputDependent, Mixed, Smoothed
from dualrs.data.dataset import ArrayDataset
from dualrs.jobs import assign_dataset, certify_dataset, label_dataset
from dualrs.policy import Grid, Tolerance
from dualrs.schemes import ALL, NEEDED
from dualrs.smoothed import Pool, RouterAlone
from dualrs.theory.looks import planned_looks
from dualrs.votes import BINS, BLOCK, STEP, Part, Purpose, SamplingPlan, Stage, Stated, Tally, Votes
from small import Small, plain_net

NEAR = np.random.default_rng(1).integers(0, 256, (4, 1, 6, 6), dtype=np.uint8)
MODELS = {
    "single": lambda: Smoothed(Small(7), 0.5, batch_size=100),
    "dual": lambda: DualSmoothed(Small(6), Small(7), (0.25, 0.5, 1.0), 1.0, batch_size=100),
    "cascade": lambda: Cascade(Small(7), (0.25, 0.5, 1.0), batch_size=100),
    "aces": lambda: Aces(Small(7), Small(5), 0.5, (0.5, 0.9), batch_size=100),
    "ace": lambda: Ace(plain_net(18), Small(7), (0.25, 0.5), core=plain_net(4), batch_size=100),
    "mixed": lambda: Mixed(Small(6), Small(7), plain_net(4), (0.25, 0.5), 1.0, batch_size=100),
    "backed": lambda: Backed(Small(7), plain_net(4), (0.25, 0.5, 1.0), batch_size=100),
    "input-dependent": lambda: InputDependent(
        Small(7), 0.5, NEAR, k=2, rate=0.2, centre=2.0, levels=20, batch_size=100
    ),
    "labels": lambda: Pool(Small(7), (0.25, 0.5), batch_size=100),
    "assigned": lambda: RouterAlone(Small(6, answers=2), (0.25, 0.5), 0.5, batch_size=100),
}

IMAGES = np.random.default_rng(0).integers(0, 256, (5, 1, 6, 6), dtype=np.uint8)
DATA = ArrayDataset(IMAGES, [0, 1, 2, 0, 1], name="five images")
ALPHA = 0.01
FIXED, ADAPTIVE = SamplingPlan(20, 1100), SamplingPlan(20, 1600, planned_looks(1600))  # units of 1000 votes, and a rest


@cache
def scheme_of(kind):
    """The scheme of a kind, as its networks make it."""
    model = MODELS[kind]()
    model.engine.prepare(IMAGES[0])
    return model.scheme


CERTIFYING = [kind for kind in MODELS if scheme_of(kind).certifies]


def policies(kind):
    """Every way in which a run of a kind may ask for votes, with its plan, by name."""
    scheme = scheme_of(kind)
    if not scheme.certifies:
        plan = SamplingPlan(0, FIXED.n)
        return {"all it has": (plan, scheme.wanted(plan))}
    rule = scheme.own_rule()
    found = {votes: (FIXED, scheme.policy(FIXED, rule, ALPHA, votes=votes)) for votes in (NEEDED, ALL)}
    if rule.outlook is not None:
        for target in (Grid((0.0, 0.25, 0.5, 1.0)), Tolerance(0.05)):
            found[str(target)] = ADAPTIVE, scheme.policy(ADAPTIVE, rule, ALPHA, target=target)
    return found


class Voters:
    """Networks that are only probabilities, from surely one answer to any; the seed decides them and every vote."""

    def __init__(self, scheme, seed):
        self.streams, self.seed = scheme.streams, seed
        rng = np.random.default_rng([1, seed])
        common = {}
        self.p = {}
        for stream, answers in self.streams.items():
            drawn = rng.dirichlet(np.full(answers, rng.choice([0.05, 0.3, 2.0])))
            if answers >= BINS:  # pairs of an answer and a radius, which is 0 for some
                drawn = drawn * (np.arange(answers) % BINS < BINS // 4)
                drawn[::BINS] += drawn.sum() / 3
                drawn /= drawn.sum()
            drawn = common.setdefault(answers, drawn) if rng.random() < 0.6 else drawn
            self.p.setdefault((stream.stage, stream.sigma), drawn)

    def count(self, unit):
        """Counts of a unit, (blocks, answers)."""
        stage, part = list(Stage).index(unit.stream.stage), list(Part).index(unit.stream.part)
        rng = np.random.default_rng([2, self.seed, stage, part, int(1000 * unit.stream.sigma), unit.start])
        sizes = np.minimum(BLOCK, unit.votes - BLOCK * np.arange(unit.blocks))
        return rng.multinomial(sizes, self.p[unit.stream.stage, unit.stream.sigma])

    def drive(self, plan, policy, tally=None):
        """Carry a policy out, from a tally of earlier votes: the tally, and the units that it drew, step by step."""
        tally, steps = tally or Tally(), []
        for wanted in policy(tally):
            assert wanted.keys() <= self.streams.keys(), "it asks for streams that the run does not have"
            assert all(upto in plan.steps_of(stream) for stream, upto in wanted.items()), "it stops at no look"
            assert len(steps) < 100, "it goes on and on"
            units = [u for stream, upto in wanted.items() for u in plan.units("x", stream, upto) if not tally.holds(u)]
            for unit in units:
                tally.add(unit, self.count(unit))
            steps.append(units)
        return tally, steps


def complete(scheme, seeds, plan=FIXED):
    """Every vote on inputs that are only seeds, gathered."""
    everything = {stream: plan.steps_of(stream)[-1] for stream in scheme.streams}
    driven = [Voters(scheme, seed).drive(plan, lambda tally: iter([everything]))[0] for seed in seeds]
    return scheme.gather(driven, plan)


def counts_of(votes):
    """The counts in what a scheme gathers, whatever it is made of: arrays of shape (inputs, answers)."""
    if isinstance(votes, np.ndarray):
        return [votes]
    if isinstance(votes, Stated):
        return [pairs_of(votes)]
    if isinstance(votes, Votes):
        return [votes.selection, votes.estimation] if votes.joint is None else [dense(part) for part in votes.joint]
    held = [getattr(votes, f.name) for f in fields(votes)] if is_dataclass(votes) else votes
    return [counts for part in held if part is not None and not np.isscalar(part) for counts in counts_of(part)]


def pairs_of(stated):
    """Counts of pairs of an answer and a radius."""
    made = np.zeros((len(stated), stated.answers * BINS), dtype=np.int64)
    row = np.flatnonzero(stated.sampled)
    made[row, stated.answer[row] * BINS + (stated.radius[row] / STEP).astype(np.int64)] = 1
    return made


def dense(joint):
    """Counts of pairs of class and confidence, one row per input."""
    made = np.zeros((joint.rows, joint.classes * (len(joint.confidences) + 1)), dtype=np.int64)
    made[joint.row, joint.pair] = joint.count
    return made


def run(kind, path, *, all_votes=False, indices=range(5), **options):
    """Carry a run of a kind out into a ledger."""
    model, scheme = MODELS[kind](), scheme_of(kind)
    settings = {"alpha": ALPHA, "seed": 3, "indices": indices} | options
    if scheme.purpose is Purpose.CERTIFY:
        plan = settings.pop("plan", FIXED)
        certify_dataset(model, DATA, path, plan=plan, rule=model.rule(), all_votes=all_votes, **settings)
    else:
        job = {Purpose.LABEL: label_dataset, Purpose.ASSIGN: assign_dataset}[scheme.purpose]
        job(model, DATA, path, n=FIXED.n, **settings)
    return path
