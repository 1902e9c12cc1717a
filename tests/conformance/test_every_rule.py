"""What holds for every rule, the run's own and those for comparison: a rule that a scheme derives is in this suite."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from every_kind import ADAPTIVE, ALPHA, CERTIFYING, FIXED, Voters, complete, policies, scheme_of

from dualrs.certificates import Certificates, Radii
from dualrs.errors import BadSetting, TooFewVotes, UnusableVotes
from dualrs.policy import Hopes
from dualrs.schemes import NAMES, ORACLE, AcesVotes, CascadeVotes, DualVotes, TwoStage, rule
from dualrs.schemes.cascade import Stages
from dualrs.votes import BINS, SamplingPlan, Tally, Votes

SOURCE = Path(__file__).parents[2] / "src"
SEEDS = range(60)  # inputs


def found_by_schemes():
    """Every rule that some scheme can apply to its votes, with the first scheme that can."""
    found = {}
    for kind in CERTIFYING:
        scheme = scheme_of(kind)
        own = [name for name in (*NAMES, "paper-1:4", "paper-4:1", "cascade-0.4", "aces-0.5") if reads(scheme, name)]
        for name in dict.fromkeys((*own, *scheme.derivable(scheme.own_rule().name))):
            if name != ORACLE:
                applied = scheme.rule(name)
                found.setdefault(f"{name}, of {applied.reads.whose}", (scheme, applied))
    return found


def reads(scheme, name):
    return rule(name).reads is scheme.own_rule().reads


RULES = found_by_schemes()
every_rule = pytest.mark.parametrize(("scheme", "rule_"), RULES.values(), ids=RULES)


def test_every_name_is_in_the_suite():
    assert {*NAMES, "paper-1:4", "aces-0.5", "sigma-0.5"} <= {made.name for _, made in RULES.values()}
    assert {made.reads for _, made in RULES.values()} == {scheme_of(kind).own_rule().reads for kind in CERTIFYING}


def same(found, expected):
    for name in ("prediction", "radius", "sigma_c", "r_sigma", "r_c", "limited_by", "outcome"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


@every_rule
def test_inputs_do_not_know_of_each_other(scheme, rule_):
    """In another order, or alone, an input has the same certificate."""
    whole = rule_.certify(complete(scheme, SEEDS), ALPHA)
    order = np.random.default_rng(0).permutation(len(SEEDS))
    same(rule_.certify(complete(scheme, order.tolist()), ALPHA), whole.rows(order))
    for seed in (0, 17):
        same(rule_.certify(complete(scheme, [seed]), ALPHA), whole.rows(np.array([seed])))
    assert len(rule_.certify(complete(scheme, []), ALPHA)) == 0


@every_rule
def test_claim_has_a_class_and_a_radius_and_an_abstention_neither(scheme, rule_):
    found = rule_.certify(complete(scheme, SEEDS), ALPHA)
    certified = found.outcome == "certified"
    assert 0 < certified.sum() < len(SEEDS)
    assert (found.radius[certified] > 0).all()
    assert (found.radius[~certified] == 0).all()
    np.testing.assert_array_equal(found.abstained, ~np.isin(found.outcome, ["certified", "predicted"]))
    np.testing.assert_array_equal(found.radius[certified], np.minimum(found.r_c, found.r_sigma)[certified])


# Rules for two stages, and cohen, are in tests/property/test_votes_taken_away.py; what is stated has no votes
MONOTONE = {
    name: held
    for name, held in RULES.items()
    if held[1].reads is not DualVotes and held[1].name not in ("cohen", "stated")
}


@pytest.mark.parametrize(("scheme", "rule_"), MONOTONE.values(), ids=MONOTONE)
def test_more_votes_for_the_class_never_lower_the_radius(scheme, rule_):
    """At the sigma where it answers; a cascade may not even get there if an earlier stage has more."""
    rng = np.random.default_rng(0)
    tallies = [Voters(scheme, seed).drive(*policies(scheme.name)["all"])[0] for seed in SEEDS]
    before = rule_.certify(scheme.gather(tallies, FIXED), ALPHA)
    more = [with_more(t, scheme, s, y, rng) for t, s, y in zip(tallies, before.sigma_c, before.selected, strict=True)]
    after = rule_.certify(scheme.gather(more, FIXED), ALPHA)
    assert (after.radius >= before.radius).all()
    assert (after.radius > before.radius).any()
    claimed = ~before.abstained
    np.testing.assert_array_equal(after.prediction[claimed], before.prediction[claimed])


def with_more(tally, scheme, sigma, y, rng):
    """Estimation votes at a sigma moved to the class that the certificate is about, as sure as can be."""
    made = Tally({stream: dict(parts) for stream, parts in tally.counts.items()})
    for stream, parts in made.counts.items():
        if (stream.stage, stream.part, stream.sigma) == ("class", "estimation", sigma):
            for start, counts in parts.items():
                moved = rng.integers(0, counts + 1)
                sure = (y + 1) * len(counts) // scheme.classes - 1
                parts[start] = counts - moved + moved.sum() * np.eye(len(counts), dtype=np.int64)[sure]
    return made


# How many votes it takes


def unanimous(scheme, n):
    """One input on which every vote of every network is for its first answer, as sure as can be.

    A router without noise names the last candidate, so that votes count.
    """
    plan, tally = SamplingPlan(1, n), Tally()
    for stream, answers in scheme.streams.items():
        sure = len(getattr(scheme, "confidences", ())) if stream.stage == "class" else 0
        if stream.sigma == 0 and answers >= BINS:
            sure = BINS - 1 if stream.stage == "class" else answers - 1
        tally.put(stream, 0, plan.steps_of(stream)[-1] * np.eye(answers, dtype=np.int64)[sure])
    return scheme.gather([tally], plan)


@every_rule
@pytest.mark.parametrize("alpha", [0.001, 0.05, 2**-10], ids=lambda a: f"alpha {a:g}")
def test_too_few_votes_are_refused_exactly_where_unanimous_votes_certify_nothing(scheme, rule_, alpha):
    """Two candidates, where every rule asks least, or two levels that are nearly one.

    The refusal says how many votes to take, and those suffice.
    """
    if rule_.parameter not in (None, *scheme.sigmas[:2]) and rule_.reads is not AcesVotes:
        pytest.skip("a sigma that is not among two candidates")
    if rule_.name == "stated":
        pytest.skip("it needs no votes")
    alike = {"levels": 2, "highest": scheme.lowest * (1 + 2e-5)} if scheme.name == "input-dependent" else {}
    two = replace(scheme, sigmas=scheme.sigmas[:2], **alike)
    found, enough = two.rule(rule_.name), None
    for n in range(1, 30):
        certified = found.certify(unanimous(two, n), alpha)[0].outcome == "certified"
        enough = n if certified and enough is None else enough
        if certified:
            found.check(SamplingPlan(n0=1, n=n), alpha)
        else:
            assert enough is None
            with pytest.raises(TooFewVotes, match=f"n = {n} cannot certify anything under rule {found.name} ") as told:
                found.check(SamplingPlan(n0=1, n=n), alpha)
    assert str(told.value).endswith(f"take n >= {enough}")


@every_rule
def test_plan_without_selection_votes_is_refused(scheme, rule_):
    with pytest.raises(BadSetting, match="n0 must be at least 1"):
        rule_.check(SamplingPlan(n0=0, n=1000), 0.001)


@every_rule
@pytest.mark.parametrize("alpha", [0, 1])
def test_alpha_is_checked_before_sampling(scheme, rule_, alpha):
    with pytest.raises(BadSetting, match="alpha must lie"):
        rule_.check(SamplingPlan(n0=10, n=1000), alpha)


# What it may rest on


@every_rule
@pytest.mark.parametrize("kind", CERTIFYING)
def test_votes_of_another_kind_are_refused_in_a_sentence(scheme, rule_, kind):
    votes = complete(scheme_of(kind), [0])
    if isinstance(votes, rule_.reads):
        rule_.certify(votes, ALPHA)
        return
    needs = "is for one sigma" if rule_.reads is Votes else f"needs votes of {rule_.reads.whose}"
    with pytest.raises(UnusableVotes, match=f"rule {rule_.name} {needs}, but these .*are of {votes.whose}"):
        rule_.certify(votes, ALPHA)


def hoped(votes):
    """Hopes of one input, now and at the last look, in the place of its votes."""
    hopeful = np.array([False, True])
    if isinstance(votes, Votes):
        return Hopes.of(votes, hopeful)
    if isinstance(votes, CascadeVotes):
        return Stages(tuple(Hopes.of(e, hopeful) for e in votes.experts))
    return TwoStage(Hopes.of(votes.router, hopeful), tuple(Hopes.of(e, hopeful) for e in votes.experts))


ADAPTIVE_RULES = {name: held for name, held in RULES.items() if held[1].outlook is not None}


@pytest.mark.parametrize(("scheme", "rule_"), ADAPTIVE_RULES.values(), ids=ADAPTIVE_RULES)
def test_hopes_have_radii_and_are_never_concluded(scheme, rule_):
    votes = complete(scheme, [0], ADAPTIVE)
    real, dreamt = (rule_.outlook(given, ALPHA) for given in (votes, hoped(votes)))
    assert isinstance(dreamt, Radii)
    assert dreamt.radius[0] == real.radius[0]
    assert len(Certificates.conclude(real)) == 1
    with pytest.raises(TypeError, match="only real votes make certificates"):
        Certificates.conclude(dreamt)
    with pytest.raises((TypeError, UnusableVotes)):
        rule_.certify(hoped(votes), ALPHA)


def test_one_hope_among_votes_is_enough_to_refuse():
    scheme = scheme_of("dual")
    votes = complete(scheme, [0], ADAPTIVE)
    once = np.array([True])
    mixed = TwoStage(votes.router, (Hopes.of(votes.experts[0], once), *votes.experts[1:]))
    with pytest.raises(TypeError, match="only real votes make certificates"):
        Certificates.conclude(scheme.own_rule().outlook(mixed, ALPHA))


TYPED = """
from dualrs.certificates import Certificates, Radii
from dualrs.policy import Hopes
from dualrs.votes import Votes


def real(found: Radii[Votes]) -> Certificates:
    return Certificates.conclude(found)


def dreamt(found: Radii[Hopes]) -> Certificates:
    return Certificates.conclude(found)
"""


@pytest.mark.slow
def test_type_checker_refuses_certificates_from_hopes(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "typed.py").write_text(TYPED)
    (tmp_path / "mypy.ini").write_text(f"[mypy]\nstrict = True\nmypy_path = {SOURCE}\nfollow_imports = silent\n")
    words = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--no-error-summary", "typed.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert done.returncode == 1, done.stdout + done.stderr
    assert len(errors) == 1, done.stdout
    assert errors[0].startswith('typed.py:12: error: Argument 1 to "conclude" of "Certificates" has incompatible type')
