"""Rule cascade errs no more often than alpha on votes gathered under looks, however sampling was made to stop.

Event: a certificate names a class with a radius above the true one, or another class than the cascade.
Probability: at most alpha = 0.1 over the noise, whatever the dependence between stages; at the last look of every
stage, which is the worst stop, as stopping earlier never claims more; under the library's own policy; and where
somebody stops it at random or at the first false claim. Trials that a policy drives take milliseconds, so they are few
and judged together, which is as valid. False alarm: 1e-6 per verdict (see verdict.py); seeds are fixed.
"""

from dataclasses import replace

import numpy as np
import pytest
from adaptive_trials import TRIALS, cut_at, fine, sharp, straddling
from half_spaces import OTHER
from staged import (
    COUPLINGS,
    LOOKS,
    PASS,
    blocked,
    coin_toss,
    disagreeing,
    nobody,
    own_boundaries,
    pair_boundary,
    shipped,
)
from staged_runs import carried_out
from verdict import ALPHA, Verdict, judge

from dualrs.theory import looks as theory
from dualrs.votes import SamplingPlan

TWO, THREE = shipped(ALPHA, 2), shipped(ALPHA, 3)
HALF, HALVES = (0.5, 0.5), (0.5, 0.5, 0.5)

PROBLEMS = {
    "both stages stop answering": own_boundaries(TWO, HALF, plan=LOOKS),
    "three stages stop answering": own_boundaries(THREE, HALVES, plan=LOOKS),
    "three stages stop answering, the last by majority": own_boundaries(
        THREE, (0.7, 0.6, None), rest=OTHER, plan=LOOKS
    ),
    "the first of two is taken by another class": blocked(TWO, (0.5, None), 0, plan=LOOKS, rest=PASS),
    "the second of three is taken where the first stops": blocked(THREE, (0.5, 0.6, 0.5), 1, plan=LOOKS, rest=PASS),
    "three classes at the last stage": pair_boundary(THREE, plan=LOOKS),
    "stages that disagree": disagreeing(THREE, (0.6, 0.5, 0.5), plan=LOOKS),
    "a coin toss, and another class below": coin_toss(HALF, looks=LOOKS.looks),
    "no stage is sure": nobody((0.5, 0.6, 0.5), THREE, plan=LOOKS),
}
CASES = [
    pytest.param(case, coupling, id=f"{case}, {coupling}")
    for case, problem in PROBLEMS.items()
    for coupling in (COUPLINGS if problem.roles else COUPLINGS[:3])
]


def seed(case):
    return 700 + list(PROBLEMS).index(case)


@pytest.mark.parametrize(("case", "coupling"), CASES)
def test_cascade_errs_no_more_often_than_alpha_at_any_look(case, coupling):
    """P[claimed radius > true radius, or wrong class, at any look] <= 0.1; false alarm 1e-6."""
    problem = PROBLEMS[case]
    verdict = judge(problem.certify(problem.draw(TRIALS, coupling, seed(case)), ALPHA), problem)
    assert not verdict.rejected, verdict


@pytest.mark.parametrize(
    "case",
    [
        "both stages stop answering",
        "three stages stop answering",
        "the first of two is taken by another class",
        "the second of three is taken where the first stops",
    ],
)
def test_problems_are_sharp(case):
    """Where bounds never fail together the rule errs about as often as its levels allow; looks are not disjoint."""
    problem = PROBLEMS[case]
    verdict = judge(problem.certify(problem.draw(TRIALS, "disjoint", seed(case)), ALPHA), problem)
    assert verdict.rate > sharp(ALPHA), verdict
    assert not verdict.rejected, verdict


@pytest.mark.parametrize("case", PROBLEMS)
def test_true_radius_is_where_the_cascade_first_changes_its_answer(case):
    problem = PROBLEMS[case]
    if case == "no stage is sure":
        assert problem.label < 0
        return
    t = np.linspace(0, problem.radius, 2001)[:-1]
    assert (problem.predictor(np.concatenate([t, -t])) == problem.label).all()
    beyond = np.array([problem.radius, -problem.radius]) * (1 + 1e-9)
    assert (problem.predictor(beyond) != problem.label).any()


def false_rows(certificates, problem):
    """Which trials claim falsely."""
    wrong = (certificates.prediction != problem.label) | (certificates.radius > problem.radius)
    return ~certificates.abstained & wrong


@pytest.mark.parametrize("case", ["three stages stop answering", "the second of three is taken where the first stops"])
def test_who_stops_at_the_first_false_claim_gains_nothing_over_going_on(case):
    """The adversary who knows the truth, and may stop each stage by itself: false at no stop that is not at the end."""
    problem = PROBLEMS[case]
    votes = problem.draw(1500, "antithetic", seed(case))
    at_the_end = false_rows(problem.certify(votes, ALPHA), problem)
    for stop in np.ndindex(*(len(LOOKS.looks) + 1,) * len(votes)):
        some = [cut_at(v, k) for v, k in zip(votes, stop, strict=True)]
        assert not (false_rows(problem.certify(some, ALPHA), problem) & ~at_the_end).any()
    assert at_the_end.any()


# The policy itself

ROWS = 20
TARGETS = {"a grid that straddles the truth": straddling, "a tolerance": fine}
DRIVEN = [case for case in PROBLEMS if case != "no stage is sure"]  # of which the targets have a radius


@pytest.fixture(scope="module")
def driven():
    """Certificates of every case and target by the policy, those of going on to the last look, and votes taken."""
    found = {}
    for case in DRIVEN:
        problem = PROBLEMS[case]
        votes = problem.draw(ROWS, "shared", seed(case))
        for name, target in TARGETS.items():
            certificates, taken = carried_out(problem, votes, ALPHA, target(problem))
            found[case, name] = problem, certificates, problem.certify(votes, ALPHA), taken
    return found


def test_policy_never_claims_more_than_all_looks_together(driven):
    """Trial by trial: so what is shown of the last look, on many more trials, holds of the policy."""
    for _, found, at_the_end, _ in driven.values():
        assert (found.radius <= at_the_end.radius).all()
        assert (found.prediction == at_the_end.prediction)[~found.abstained].all()


def test_policy_stops_early(driven):
    """So that the tests here are about stopping."""
    early = [
        taken < ROWS * len(problem.sigmas) * (problem.plan.n0 + problem.plan.n)
        for problem, _, _, taken in driven.values()
    ]
    assert np.mean(early) > 0.8


def test_policy_errs_no_more_often_than_alpha(driven):
    """P[claimed radius > true radius, or wrong class] <= 0.1, all cases together; false alarm 1e-6."""
    verdicts = [judge(found, problem) for problem, found, _, _ in driven.values()]
    together = Verdict(sum(v.errors for v in verdicts), sum(v.trials for v in verdicts))
    assert together.trials == ROWS * len(DRIVEN) * len(TARGETS)
    assert not together.rejected, together
    assert together.rate > 0.02  # the problems leave no slack: it does err


def stopping_at_random(policy, row, **_):
    """After the selection votes the policy may be interrupted at any step, by a coin that knows nothing."""

    def wanted(tally):
        rng = np.random.default_rng(row)
        for step in policy(tally):
            if any(s.part == "estimation" for s in step) and rng.random() < 0.3:
                return
            yield step

    return wanted


def stopping_at_the_first_false_claim(problem):
    """Somebody who knows the truth stops at once when the claim is false, and goes on to every last look otherwise."""

    def wrap(policy, certify, **_):
        def wanted(tally):
            chosen = False
            for step in policy(tally):
                chosen = chosen or any(s.part == "estimation" for s in step)
                if chosen and judge(certify(tally), problem).errors:
                    return
                yield step
            for look in problem.plan.looks:
                if judge(certify(tally), problem).errors:
                    return
                yield {s: look for s in tally.counts if s.part == "estimation"}

        return wanted

    return wrap


@pytest.mark.parametrize("who", ["a coin", "an adversary"])
def test_policy_that_others_stop_errs_no_more_often_than_alpha(who):
    """P[false claim] <= 0.1, all cases together; false alarm 1e-6."""
    errors = trials = 0
    for case in ("both stages stop answering", "the second of three is taken where the first stops"):
        problem = PROBLEMS[case]
        wrap = stopping_at_random if who == "a coin" else stopping_at_the_first_false_claim(problem)
        for coupling in ("antithetic", "disjoint"):
            votes = problem.draw(ROWS, coupling, 720)
            found, _ = carried_out(problem, votes, ALPHA, straddling(problem), wrap)
            assert (found.radius <= problem.certify(votes, ALPHA).radius).all()
            verdict = judge(found, problem)
            errors, trials = errors + verdict.errors, trials + verdict.trials
    together = Verdict(errors, trials)
    assert not together.rejected, together


# What must be caught


def full_level_at_every_look(problem, votes):
    """No look knows of the others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(theory, "shares", lambda looks: np.ones(len(looks)))
        return false_rows(problem.certify(votes, ALPHA), problem)


def fixed_level_at_the_stop(problem, votes):
    """The counts at a stop, by one who knows the truth, taken for those of a run whose n was fixed to be just that."""
    false = np.zeros(len(votes[0]), dtype=bool)
    for k, look in enumerate(LOOKS.looks, start=1):
        plan = SamplingPlan(votes[0].plan.n0, look)
        bare = [replace(v, plan=plan, estimation=v.segments[:, :k].sum(axis=1), segments=None) for v in votes]
        false |= false_rows(problem.certify(bare, ALPHA), problem)
    return false


@pytest.mark.parametrize("twin", [full_level_at_every_look, fixed_level_at_the_stop], ids=lambda t: t.__name__)
@pytest.mark.parametrize(
    ("case", "coupling"),
    [
        ("both stages stop answering", "antithetic"),
        ("three stages stop answering", "independent"),
        ("the first of two is taken by another class", "independent"),
        ("the second of three is taken where the first stops", "disjoint"),
    ],
)
def test_sabotaged_reading_is_caught(twin, case, coupling):
    """The same verdict accepts the rule and rejects its twin on the same votes."""
    problem = PROBLEMS[case]
    votes = problem.draw(TRIALS, coupling, 730)
    accepted = judge(problem.certify(votes, ALPHA), problem)
    caught = Verdict(int(twin(problem, votes).sum()), TRIALS)
    assert not accepted.rejected, accepted
    assert caught.rejected, caught
