"""What holds for every kind of run: a new one gets a line in `every_kind.MODELS`, and this suite."""

import json
import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from every_kind import (
    ADAPTIVE,
    ALPHA,
    CERTIFYING,
    DATA,
    FIXED,
    MODELS,
    Voters,
    complete,
    counts_of,
    policies,
    run,
    scheme_of,
)

from dualrs.certificates import Rule
from dualrs.errors import BadSetting, BadTable, DualrsError, LedgerError
from dualrs.policy import Grid
from dualrs.report.gallery import explain_votes
from dualrs.schemes import ALL, NEEDED, ORACLE, POLICY, SCHEMES
from dualrs.storage import Header, Ledger, verify
from dualrs.storage.exports import write
from dualrs.storage.results import Sampled, derive
from dualrs.training.assigned import read_assigned
from dualrs.training.labels import read_labels
from dualrs.votes import Tally

RESULTS = Path(__file__).parents[2] / "results"
# The two in the fixtures are from before the noise of today: five inputs each of runs that were committed then.
COMMITTED = sorted([*RESULTS.rglob("*.ledger"), *(RESULTS.parent / "tests" / "fixtures").glob("*.ledger")])
SEEDS = range(30)  # inputs

every_kind = pytest.mark.parametrize("kind", MODELS)
certifying = pytest.mark.parametrize("kind", CERTIFYING)
every_policy = pytest.mark.parametrize(
    ("kind", "policy"), [pytest.param(k, p, id=f"{k}, {p}") for k in MODELS for p in policies(k)]
)


def test_every_kind_has_a_model():
    assert MODELS.keys() == SCHEMES.keys()
    assert all(type(scheme_of(kind)) is SCHEMES[kind] for kind in MODELS)


# The header


def header(kind, **changes):
    scheme = scheme_of(kind)
    settings = {
        "scheme": scheme, "rule": scheme.own_rule().name if scheme.certifies else kind, "alpha": 0.001, "seed": 5,
        "n0": 20 if scheme.certifies else 0, "n": 1100, "image_shape": (1, 6, 6), "batch_size": 100,
        "dtype": "float32", "device": "cpu", "models": {"class 0.5": "aa"}, "dataset": "toy",
        "dataset_fingerprint": "bb", "noise": "noise 2",
    }  # fmt: skip
    return Header(**settings | changes)


# Of these headers. Another fingerprint makes every ledger of the kind a foreign one: it takes a new format.
WRITTEN = {
    "single": "befe1f84d84cc4edc98b3ed8b7672915",
    "dual": "c4b221e6868b9e374d6df62d1d73ac49",
    "cascade": "44f685d32c06e66262d53f9a96638e44",
    "aces": "942c7df8def339376ded74a2e03dc8bb",
    "labels": "57e3bf14166f098661b6419e13a6831a",
    "assigned": "0a1637aa151b8b7f87095070137fe460",
}


@every_kind
def test_header_goes_through_json_and_back(kind):
    made = header(kind, command="dualrs", created="today", versions={"dualrs": "1"})
    read = Header.from_json(made.to_json())
    assert read == made
    assert (read.scheme, read.fingerprint, read.to_json()) == (made.scheme, made.fingerprint, made.to_json())
    assert json.loads(made.to_json())["scheme"] == kind


@every_kind
def test_fingerprint_is_the_one_that_was_always_written(kind):
    assert header(kind).fingerprint == WRITTEN.get(kind, header(kind).fingerprint)


@every_kind
def test_fingerprint_does_not_depend_on_how_numbers_are_spelled(kind):
    scheme = scheme_of(kind)
    spelled = {
        name: np.int64(value)
        if name == "classes"
        else np.array(value)
        if isinstance(value, tuple)
        else np.float64(value)
        for name, value in scheme.settings.items()
    }
    assert header(kind, scheme=type(scheme)(**spelled)).fingerprint == header(kind).fingerprint


@every_kind
def test_fingerprint_depends_on_every_setting_of_the_scheme(kind):
    """And a sentence names the setting that differs."""
    scheme, ours = scheme_of(kind), header(kind)
    for name, value in scheme.settings.items():
        if kind == "assigned" and name == "classes":
            continue  # which are 0
        other = (tuple(v / 2 for v in value) or (0.5,)) if isinstance(value, tuple) else value + 1
        theirs = header(kind, scheme=replace(scheme, **{name: other}), rule=ours.rule) if kind != "aces" else None
        if theirs is None:  # its rule names a threshold
            changed = replace(scheme, **{name: other})
            theirs = header(kind, scheme=changed, rule=changed.own_rule().name)
        assert theirs.fingerprint != ours.fingerprint
        assert any(sentence.startswith(f"{name} is ") for sentence in ours.differences(theirs))


@every_kind
@pytest.mark.parametrize("change", ["missing", "unknown", "of another kind"])
def test_header_with_other_fields_is_refused(kind, change):
    content = json.loads(header(kind).to_json())
    if change == "missing":
        del content["sigmas"]
    elif change == "unknown":
        content["sigma_f"] = 1.0
    else:
        content["scheme"] = "triple"
    with pytest.raises(LedgerError, match="the header"):
        Header.from_json(json.dumps(content))


@every_kind
@pytest.mark.parametrize("sigmas", [(), (0.5, 0.5), (0.5, 0.0), (0.5, -1.0), ("a",)])
def test_impossible_sigmas_are_refused(kind, sigmas):
    with pytest.raises(BadSetting):
        replace(scheme_of(kind), sigmas=sigmas)


# Votes


@every_kind
def test_what_is_gathered_are_the_votes_of_its_streams(kind):
    """Every stream once, in its own row, and nothing else; of a sigma for each input, those at its own."""
    scheme = scheme_of(kind)
    plan, everything = policies(kind)[ALL if scheme.certifies else "all it has"]
    tallies = [Voters(scheme, seed).drive(plan, everything)[0] for seed in (1, 2, 3)]
    found = counts_of(scheme.gather(tallies, plan))
    for row, tally in enumerate(tallies):
        assert tally.counts.keys() == scheme.streams.keys() or kind == "input-dependent"
        held = [tuple(counts[row].tolist()) for counts in found if counts[row].any()]
        assert sorted(held) == sorted(tuple(tally.total(s, scheme.streams[s]).tolist()) for s in tally.counts)
    assert {len(counts) for counts in found} == {3}
    assert {len(counts) for counts in counts_of(scheme.gather([], plan))} == {0}
    assert not any(counts.any() for counts in counts_of(scheme.gather([Tally()], plan)))


@every_policy
def test_policy_ends_and_its_votes_are_enough(kind, policy):
    """It asks for streams of the run only, and a certificate, or a lesson, follows from what it asked for."""
    scheme = scheme_of(kind)
    plan, wanted = policies(kind)[policy]
    tallies = [Voters(scheme, seed).drive(plan, wanted)[0] for seed in SEEDS]
    votes = scheme.gather(tallies, plan)
    if scheme.certifies:
        found = scheme.own_rule().certify(votes, ALPHA)
        assert 0 < found.abstained.sum() < len(SEEDS), "votes of one outcome show little"
    else:
        assert all((counts.sum(axis=1) == plan.n).all() for counts in counts_of(votes) if counts.any())


@certifying
def test_votes_that_are_not_needed_change_no_claim(kind):
    scheme, rule = scheme_of(kind), scheme_of(kind).own_rule()
    found = {}
    for votes in (NEEDED, ALL):
        plan, wanted = policies(kind)[votes]
        tallies = [Voters(scheme, seed).drive(plan, wanted)[0] for seed in SEEDS]
        found[votes] = rule.certify(scheme.gather(tallies, plan), ALPHA)
    for name in ("prediction", "radius", "sigma_c", "outcome", "r_c"):
        assert getattr(found[NEEDED], name).tolist() == getattr(found[ALL], name).tolist()


@certifying
def test_adaptive_form_is_refused_where_there_is_none(kind):
    scheme, rule = scheme_of(kind), scheme_of(kind).own_rule()
    if rule.outlook is None:
        with pytest.raises(BadSetting, match=f"rule {rule.name} has no adaptive form"):
            scheme.policy(ADAPTIVE, rule, ALPHA, target=Grid())
        with pytest.raises(BadSetting, match="no adaptive form"):
            header(kind, n=1600, looks=ADAPTIVE.looks, target=str(Grid()), policy=POLICY)
    else:
        assert header(kind, n=1600, looks=ADAPTIVE.looks, target=str(Grid()), policy=POLICY).plan == ADAPTIVE


@every_policy
def test_killed_collection_goes_on_from_any_part(kind, policy):
    """Whatever was kept when it was killed: all of the steps before, and any of the units of the last."""
    plan, wanted = policies(kind)[policy]
    rng = np.random.default_rng(0)
    for seed in range(3):
        voters = Voters(scheme_of(kind), seed)
        whole, steps = voters.drive(plan, wanted)
        for last, units in enumerate(steps):
            before = [unit for step in steps[:last] for unit in step]
            for share in (0.0, 0.5, 1.0):
                kept = np.flatnonzero(rng.random(len(units)) < share)
                tally = Tally()
                for unit in (*before, *(units[k] for k in kept)):
                    tally.add(unit, voters.count(unit))
                again, _ = voters.drive(plan, wanted, tally)
                assert same(again, whole)


def same(one, other):
    """Whether two tallies hold the same units with the same counts."""
    held = [
        {(s, start): c.tolist() for s, parts in t.counts.items() for start, c in parts.items()} for t in (one, other)
    ]
    return held[0] == held[1]


# Rules


def methods(kind):
    """The rules that its votes allow, by name; the oracle is none, as it looks at labels."""
    scheme = scheme_of(kind)
    names = scheme.derivable(scheme.own_rule().name) if scheme.certifies else scheme.derivable(kind)
    assert len(set(names)) == len(names)
    return [name for name in names if name != ORACLE]


@pytest.mark.parametrize(("kind", "name"), [pytest.param(k, n, id=f"{k}, {n}") for k in MODELS for n in methods(k)])
def test_every_method_is_a_rule_with_a_title_a_guarantee_and_a_cost(kind, name):
    scheme = scheme_of(kind)
    rule = scheme.rule(name)
    assert isinstance(rule, Rule)
    assert rule.name == name
    votes = complete(scheme, SEEDS)
    assert isinstance(votes, rule.reads)
    rule.check(FIXED, ALPHA)
    found = rule.certify(votes, ALPHA)
    assert len(found) == len(SEEDS)
    assert 0 < found.abstained.sum() < len(SEEDS)
    assert rule.title
    assert re.search(rf"at (most|level) {ALPHA:g}", rule.guarantee(ALPHA))
    assert rule.guaranteed or rule.caveat
    drawn = rule.drawn(votes, found, ALPHA)
    assert drawn.shape == (len(SEEDS),)
    everything = sum(FIXED.steps_of(stream)[-1] for stream in scheme.streams)
    assert ((drawn > 0) & (drawn <= everything)).all()


@certifying
def test_own_rule_is_among_the_methods(kind):
    scheme = scheme_of(kind)
    own = scheme.own_rule()
    assert scheme.own_rule(own.name).name == own.name
    assert scheme.own_method(own.name) in methods(kind)
    votes = complete(scheme, SEEDS)
    method = scheme.rule(scheme.own_method(own.name))
    assert method.certify(votes, ALPHA).radius.tolist() == own.certify(votes, ALPHA).radius.tolist()


@every_kind
@pytest.mark.parametrize("name", ["nonsense", ""])
def test_unknown_rule_is_refused(kind, name):
    for lookup in (scheme_of(kind).own_rule, scheme_of(kind).rule):
        with pytest.raises(BadSetting):
            lookup(name)


# Words


def sampled(kind, votes=NEEDED):
    """Votes on many inputs as a report reads them."""
    scheme = scheme_of(kind)
    plan, wanted = policies(kind)[votes]
    seeds = range(200)
    tallies = [Voters(scheme, seed).drive(plan, wanted)[0] for seed in seeds]
    numbers = np.array(seeds)
    return Sampled(numbers.astype(str), numbers, numbers * 0, numbers * 0.0, scheme.gather(tallies, plan), scheme)


def own_rules(kind):
    """Names of the rules under which a run of a kind may be certified."""
    scheme, found = scheme_of(kind), []
    for name in dict.fromkeys([scheme.own_rule().name, *methods(kind)]):
        try:
            found.append(scheme.own_rule(name).name)
        except BadSetting:
            continue
    return found


def holding_down(why, kind):
    """The class that a cascade names besides its own: the one with most votes where the radius is limited."""
    if kind not in ("cascade", "backed") or not (why.certificate.rival or why.certificate.sigma_c):
        return set()
    limiting = why.certificate.rival or why.certificate.sigma_c
    counts = why.seen.experts[why.scheme.sigmas.index(limiting)][: why.scheme.classes].copy()
    counts[why.certificate.prediction] = -1
    return {str(counts.argmax())}


@pytest.mark.parametrize("votes", [NEEDED, ALL])
@pytest.mark.parametrize(
    ("kind", "name"),
    [pytest.param(k, n, id=f"{k}, {n}") for k in CERTIFYING for n in own_rules(k)],
)
def test_every_certificate_has_a_reason(kind, name, votes):
    """A sentence of its own for every outcome, about the class that is claimed and no other."""
    scheme = scheme_of(kind)
    rule = scheme.own_rule(name)
    if votes == NEEDED and name != scheme.own_rule().name:
        pytest.skip("those votes are for another rule")
    outcomes = set()
    for why in explain_votes(sampled(kind, votes), rule, ALPHA):
        said = scheme.reason(why.seen, lambda number: f"class number {number}")
        outcomes.add(why.certificate.outcome)
        assert said.endswith(".")
        assert said.startswith("It abstains") == why.certificate.abstained
        if not why.certificate.abstained:
            assert why.seen.selected == why.certificate.prediction
            named = set(re.findall(r"class number (\d+)", said)) - {str(why.certificate.prediction)}
            assert named <= holding_down(why, kind)
    assert len(outcomes) > 1


@certifying
def test_view_is_of_as_many_inputs_as_there_are_votes(kind):
    scheme = scheme_of(kind)
    view = scheme.view(complete(scheme, SEEDS))
    assert len(view.experts) == len(scheme.sigmas)
    assert [expert.sigma for expert in view.experts] == list(scheme.sigmas)
    assert view.chosen.shape == view.selected.shape == (len(SEEDS),)
    by_core = view.chosen < 0
    assert not by_core.any() or (view.core[by_core] == view.selected[by_core]).all()
    assert (view.chosen < len(scheme.sigmas)).all()
    assert ((view.selected >= 0) & (view.selected < scheme.classes)).all()
    assert (view.router is None) == (scheme.route_names == ()) == (scheme.router_sigma is None)
    if view.router is not None:
        assert view.router.answers == len(scheme.route_names)
        assert view.router.sigma == scheme.router_sigma


@every_kind
def test_contents_are_said_in_words(kind):
    scheme = scheme_of(kind)
    name = scheme.own_rule().name if scheme.certifies else kind
    assert scheme.contents(name).startswith("certificates") == scheme.certifies
    assert scheme.contents(name)


@pytest.mark.parametrize("kind", [kind for kind in MODELS if kind not in CERTIFYING])
def test_lesson_refuses_to_certify_in_a_sentence(kind):
    scheme = scheme_of(kind)
    for refused in (scheme.own_rule, lambda: scheme.view(None), lambda: scheme.reason(None, str)):
        with pytest.raises(DualrsError, match=r"no rule|no certificate"):
            refused()


# A real run


def rows(path):
    """Everything that a run must give again; not the seconds, nor the seals over them."""
    with closing(sqlite3.connect(path)) as file:
        return {
            "inputs": file.execute("SELECT * FROM inputs ORDER BY id").fetchall(),
            "votes": file.execute("SELECT * FROM votes ORDER BY 1, 2, 3, 4, 5").fetchall(),
            "certificates": [r[:8] + r[9:10] for r in file.execute("SELECT * FROM certificates ORDER BY input")],
        }


RUNS = [
    pytest.param(kind, options, id=f"{kind}{label}")
    for kind in MODELS
    for label, options in {
        "": {},
        **({", all votes": {"all_votes": True}} if kind in CERTIFYING else {}),
        **({", adaptive": {"plan": ADAPTIVE, "target": Grid()}} if len(policies(kind)) > 2 else {}),
    }.items()
]


@pytest.mark.parametrize(("kind", "options"), RUNS)
def test_real_run_verifies_exports_and_is_the_same_after_resuming(kind, options, tmp_path):
    whole = run(kind, tmp_path / "whole.ledger", **options)
    with Ledger.open(whole) as ledger:
        assert verify(ledger) == []
        assert type(ledger.header.scheme) is SCHEMES[kind]
        assert ledger.finished() == set(DATA.ids)
        assert Header.from_json(ledger.header.to_json()).fingerprint == ledger.header.fingerprint
        exported(ledger, tmp_path / "whole.csv")

    for batches in (1, 5, 10):
        path, reports = tmp_path / f"stopped {batches}.ledger", count()

        def stop(progress, reports=reports, batches=batches):
            if next(reports) == batches:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run(kind, path, report=stop, indices=range(3), **options)
        assert not path.exists() or rows(path) != rows(whole)  # a run without votes leaves nothing
        run(kind, path, **options)
        assert rows(path) == rows(whole)
        with Ledger.open(path) as ledger:
            assert verify(ledger) == []


def exported(ledger, path):
    """What a reader gets out of a ledger: a table of certificates or, of votes to train with, what is learnt."""
    if ledger.header.certifies:
        results, certificates = derive(ledger)
        assert list(certificates) == [kept.certificate for kept in ledger.certificates().values()]
        write(results, path)
        assert [line.split(",")[0] for line in path.read_text().splitlines()] == ["id", *DATA.ids]
        return
    with pytest.raises(BadTable, match=f"holds {ledger.header.contents}, and no certificates"):
        derive(ledger)
    read = {"labels": read_labels, "assigned": read_assigned}[ledger.header.scheme.name]
    assert read(ledger).ids == DATA.ids
    assert read(ledger).sigmas == ledger.header.scheme.sigmas


# Ledgers of an earlier version


@pytest.mark.parametrize("path", COMMITTED, ids=lambda p: p.relative_to(RESULTS.parent).as_posix())
def test_committed_ledger_opens_as_the_kind_of_run_that_it_is(path):
    with Ledger.open(path) as ledger:
        header = ledger.header
        assert ledger.header_damage is None  # its fingerprint and seal are those of the header as it is read
        assert header.format == (1 if path.parent.name == "fixtures" else 2)
        kind = {name: name for name in ("aces", "ace", "mixed", "backed")} | {"first-noise-aces": "aces"}
        kind |= dict.fromkeys(("calibration", "training", "pool", "methods", "photographs", "gated"), "cascade")
        kind |= dict.fromkeys(("diffsmooth", "densepure", "adaptive"), "single")
        kind |= dict.fromkeys(("neighbours-0.25", "neighbours-0.5", "neighbours-1.0", "ascent"), "input-dependent")
        assert type(header.scheme) is SCHEMES[kind.get(path.parent.name) or kind.get(path.stem, "dual")]
        assert header.own_rule.name == header.rule
        assert Header.from_json(header.to_json()) == header
        assert len(ledger.votes([ledger.inputs()[0].id])) == 1
