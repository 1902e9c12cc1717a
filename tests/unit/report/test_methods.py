"""Every method from one ledger: what each says, what it costs, and what is refused without its votes."""

from dataclasses import replace

import numpy as np
import pytest
from compared_ledgers import header, ids, ledger_file
from tuning_ledgers import MISLED, SETTLED, made

from dualrs.certificates import ABSTAIN
from dualrs.certificates.multiscale import multiscale as multiscale_radii
from dualrs.certificates.rule import concluded
from dualrs.errors import BadSetting, BadTable, TooFewVotes, UnusableVotes
from dualrs.report.accuracy import certified_accuracy
from dualrs.report.methods import envelope, methods
from dualrs.schemes import DualVotes, rule
from dualrs.storage import Ledger, derive
from dualrs.votes import Part, Stage

multiscale = concluded(multiscale_radii)

FIXED = ["sigma-0.25", "sigma-0.5", "sigma-1"]
ALL = [*FIXED, "cascade", "multiscale", "multiscale-authors", "paper", "nosplit", "fusion", "oracle"]


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return ledger_file(tmp_path_factory.mktemp("methods") / "run.ledger")


@pytest.fixture(scope="module")
def found(file):
    with Ledger.open(file) as ledger:
        return methods(ledger)


@pytest.fixture(scope="module")
def votes(file):
    with Ledger.open(file) as ledger:
        return ledger.votes([row.id for row in ledger.inputs()])


def test_complete_votes_allow_every_method(found):
    assert list(found) == ALL
    assert all(name == method.name and method.title and method.guarantee for name, method in found.items())


@pytest.mark.parametrize("name", ["paper", "nosplit", "fusion"])
def test_dual_rules_are_what_show_derives(file, found, name):
    with Ledger.open(file) as ledger:
        results, certificates = derive(ledger, rule=name)
    np.testing.assert_array_equal(found[name].results.radius, results.radius)
    assert list(found[name].certificates) == list(certificates)


def test_fixed_sigmas_are_cohen_on_one_expert(found, votes):
    for expert in votes.experts:
        method = found[f"sigma-{expert.sigma:g}"]
        np.testing.assert_array_equal(method.results.radius, rule("cohen").certify(expert, 0.01).radius)
        assert set(method.votes_per_input) == {430}


def test_multiscale_counts_the_stages_that_it_reaches(found, votes):
    expected = multiscale(votes.experts, 0.01)
    np.testing.assert_array_equal(found["multiscale"].results.radius, expected.radius)
    stages = {1.0: 1, 0.5: 2, 0.25: 3}
    assert found["multiscale"].votes_per_input.tolist() == [430 * stages[s] for s in expected.sigma_c]
    assert len(set(found["multiscale"].votes_per_input)) == 3


def test_fusion_counts_router_chosen_and_helpful_experts(found, votes):
    cost = []
    for row in range(len(votes)):  # one input after the other, as a run would
        one = [replace(v, selection=v.selection[[row]], estimation=v.estimation[[row]]) for v in votes.experts]
        router = replace(
            votes.router, selection=votes.router.selection[[row]], estimation=votes.router.estimation[[row]]
        )
        chosen = router.selection[0].argmax()
        first = [v if i == chosen else replace(v, selection=v.selection * 0, estimation=v.estimation * 0)
                 for i, v in enumerate(one)]  # fmt: skip
        helpful = rule("fusion").helpful(DualVotes(router, tuple(first)), 0.01)
        cost.append(2 * 430 + 400 * int(helpful.sum()))
    assert found["fusion"].votes_per_input.tolist() == cost
    assert set(found["paper"].votes_per_input) == {860}
    assert 860 < np.mean(cost) < max(cost)


def test_oracle_takes_the_largest_radius_that_is_right_and_has_no_certificate(found):
    oracle, fixed = found["oracle"], [found[name].results for name in FIXED]
    right = np.max([np.where(r.correct, r.radius, 0) for r in fixed], axis=0)
    np.testing.assert_array_equal(np.where(oracle.results.correct, oracle.results.radius, 0), right)
    assert (oracle.results.correct == (right > 0)).all()
    assert oracle.certificates is None
    assert oracle.guarantee.startswith("none")
    for k, row in zip(oracle.results.sigma_c, range(len(right)), strict=True):
        same = fixed[[0.25, 0.5, 1.0].index(k)]
        assert oracle.results.prediction[row] == (same.prediction[row] if right[row] > 0 else ABSTAIN)
    assert oracle.results.abstained.any()  # it names no class that it knows to be wrong


def test_envelope_is_the_best_fixed_sigma_at_each_radius(found):
    radii, fixed = (0.0, 0.3, 0.6, 1.2), [found[name].results for name in FIXED]
    curves = np.stack([certified_accuracy(r, radii) for r in fixed])
    assert envelope(fixed, radii).tolist() == curves.max(axis=0).tolist()
    # the oracle may do better than any one sigma at a radius, and never worse
    assert (certified_accuracy(found["oracle"].results, radii) >= envelope(fixed, radii)).all()


def test_only_the_sound_ones_claim_a_level(found):
    none = {name for name, method in found.items() if method.guarantee.startswith("none")}
    assert none == {"multiscale-authors", "oracle"}
    assert all("at most 0.01 for each input" in m.guarantee for name, m in found.items() if name not in none)


def test_methods_at_another_alpha(file, votes):
    with Ledger.open(file) as ledger:
        found = methods(ledger, ["multiscale", "paper-1:4"], alpha=0.05)
    assert list(found) == ["multiscale", "paper-1:4"]
    np.testing.assert_array_equal(found["multiscale"].results.radius, multiscale(votes.experts, 0.05).radius)
    assert "at most 0.05" in found["multiscale"].guarantee


def test_an_alpha_that_the_votes_cannot_reach(file):
    with Ledger.open(file) as ledger, pytest.raises(TooFewVotes):
        methods(ledger, ["sigma-0.5"], alpha=1e-200)


def test_own_rule_of_the_run_is_among_the_methods(tmp_path):
    with Ledger.open(ledger_file(tmp_path / "run.ledger", count=8, rule="paper-1:4")) as ledger:
        assert "paper-1:4" in methods(ledger)


# Votes that are missing


def test_methods_without_their_votes_are_left_out_unless_asked_for(tmp_path):
    path = _thrifty(tmp_path / "part.ledger")
    with Ledger.open(path) as ledger:
        assert list(methods(ledger)) == ["paper", "nosplit", "fusion"]
        for name, reason in {
            "sigma-0.25": r"at sigma 0\.25, \d+ of 60 inputs have none, or not all \(first: toy/0\d\d\)",
            "multiscale": r"at sigma 1, \d+ of 60 inputs have none",
            "oracle": r"at sigma 0\.25",
        }.items():
            with pytest.raises(UnusableVotes, match=reason) as refusal:
                methods(ledger, [name])
            assert "part.ledger" in str(refusal.value)
            assert "dualrs certify --all-votes" in str(refusal.value)


def test_fusion_is_not_derived_from_votes_that_would_sell_it_short(tmp_path):
    """From the votes of rule paper it is sound, but not what fusion would say with the votes it asks for."""
    path = _thrifty(tmp_path / "paper.ledger", rule_name="paper")
    with Ledger.open(path) as ledger:
        assert list(methods(ledger)) == ["paper", "nosplit"]
        with pytest.raises(UnusableVotes, match=r"inputs have no votes of an expert that could raise their radius"):
            methods(ledger, ["fusion"])


def _thrifty(path, rule_name="fusion"):
    """The complete votes of `ledger_file`, of which only those are kept that a run under the rule would draw."""
    whole = ledger_file(path.with_suffix(".whole"))
    with Ledger.open(whole) as source, Ledger.create_or_resume(path, header(rule=rule_name, votes="needed")) as ledger:
        ledger.add_inputs(source.inputs())
        for name in ids(60):
            held = {unit: counts for unit, counts in source.units() if unit.input_id == name}
            votes = source.votes([name])
            chosen = votes.sigmas[votes.router.selection[0].argmax()]
            helpful = _helpful(votes, chosen) if rule_name == "fusion" else set()
            for unit, counts in held.items():
                stream = unit.stream
                wanted = stream.stage is Stage.ROUTER or stream.sigma == chosen
                if wanted or (stream.sigma in helpful and stream.part is Part.ESTIMATION):
                    ledger.record(unit, counts)
        for name, certificate in zip(ids(60), rule(rule_name).certify(ledger.votes(ids(60)), 0.01), strict=True):
            ledger.conclude(name, certificate, 1.0)
    return path


def _helpful(votes, chosen):
    kept = tuple(
        e if e.sigma == chosen else replace(e, selection=e.selection * 0, estimation=e.estimation * 0)
        for e in votes.experts
    )
    wanted = rule("fusion").helpful(DualVotes(votes.router, kept), 0.01)[:, 0]
    return {s for s, w in zip(votes.sigmas, wanted, strict=True) if w}


def test_oracle_needs_labels(tmp_path):
    with Ledger.open(ledger_file(tmp_path / "u.ledger", count=8, labelled=False)) as ledger:
        assert "oracle" not in methods(ledger)
        with pytest.raises(BadTable, match="looks at labels"):
            methods(ledger, ["oracle"])


def test_one_sigma_has_one_method(tmp_path):
    path = ledger_file(tmp_path / "one.ledger", count=8, rule="cohen", sigmas=(0.5,), sigma_e=None, votes="needed")
    with Ledger.open(path) as ledger:
        assert list(methods(ledger)) == ["sigma-0.5"]
        for name in ("fusion", "multiscale"):
            with pytest.raises(UnusableVotes, match="is of one sigma; run `dualrs certify --all-votes` with a router"):
                methods(ledger, [name])


@pytest.mark.parametrize("name", ["best", "sigma-0.3", "cohens"])
def test_unknown_method_is_refused_with_those_there_are(file, name):
    with Ledger.open(file) as ledger, pytest.raises(BadSetting, match=r"sigma-0\.25"):
        methods(ledger, [name])


def test_the_votes_of_a_cascade_are_counted_where_some_stages_pass_and_others_do_not(tmp_path):
    """The stages then differ in their answers: a pass is one more."""
    path = made(tmp_path / "run.ledger", [[MISLED, SETTLED]] * 20 + [[SETTLED, SETTLED]] * 20, rule="cascade-0.6")
    with Ledger.open(path) as ledger:
        found = methods(ledger)
    assert found["cascade-0.6"].votes_per_input.tolist() == [2 * 100 + 2 * 400] * 20 + [100 + 400] * 20
