"""What reports make of a ledger of ACES: a method per threshold, and why each input has its radius."""

import re

import numpy as np
import pytest
from report_cases import a_header, made

from dualrs.certificates import Outcome
from dualrs.errors import UnusableVotes
from dualrs.report.accuracy import certified_accuracy
from dualrs.report.diagnostics import fixed_radii, p_a
from dualrs.report.gallery import ABSTAINED, BY_CORE, LIMITED_BY_RIVAL, MISROUTED, explain
from dualrs.report.methods import methods
from dualrs.storage import Ledger, verify
from dualrs.storage.results import read_sampled

THRESHOLDS = (0.5, 1.0)


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    header = a_header(rule="aces-0.5", sigmas=(0.5,), sigma_e=0.5, thresholds=THRESHOLDS)
    with Ledger.open(made(tmp_path_factory.mktemp("aces") / "run.ledger", header, count=60)) as opened:
        yield opened


def test_methods_are_the_thresholds_and_the_sigma_alone(ledger):
    assert verify(ledger) == []
    found = methods(ledger)
    assert list(found) == ["sigma-0.5", "aces-0.5", "aces-1"]
    for name in ("aces-0.5", "aces-1"):
        method = found[name]
        assert method.guaranteed
        smoothed = method.certificates.sigma_c > 0
        assert 0 < smoothed.sum() < 60
        np.testing.assert_array_equal(method.votes_per_input, np.where(smoothed, 2 * 550, 551))
        at_zero, beyond = certified_accuracy(method.results, (0, 1e-9))
        by_core = (method.certificates.outcome == Outcome.PREDICTED) & method.results.correct
        assert at_zero - beyond == pytest.approx(by_core.mean())
        assert by_core.any()


def test_a_threshold_that_nobody_asked_for_is_refused(ledger):
    with pytest.raises(UnusableVotes, match=r"about the thresholds 0\.5, 1; there is no 0\.7"):
        methods(ledger, ["aces-0.7"])


def test_every_input_has_its_reason(ledger):
    every = explain(ledger)
    assert {why.certificate.outcome for why in every} >= {*Outcome} - {Outcome.CLASS_UNDECIDED, Outcome.STAGE_UNDECIDED}
    for why in every:
        assert len(why.scheme.route_names) == len(why.seen.router) == 3
        assert not {LIMITED_BY_RIVAL, MISROUTED} & set(why.flags)
        reason = why.reason()
        match why.certificate.outcome:
            case Outcome.PREDICTED:
                assert reason.startswith("The core network answers")
                assert why.seen.selected == why.core == why.certificate.prediction
                assert BY_CORE in why.flags
            case Outcome.ROUTER_UNDECIDED:
                assert re.fullmatch(
                    r"It abstains: \d+ of 500 votes of the selector find an entropy (up to|above) 0\.5, which is too "
                    r"few to show who answers\.",
                    reason,
                )
                assert ABSTAINED in why.flags
                assert BY_CORE not in why.flags
            case Outcome.CERTIFIED:
                assert "limits it" in reason


def test_votes_of_the_reason_add_up_at_another_threshold_too(ledger):
    for why in explain(ledger, "aces-1"):
        if why.certificate.sigma_c == 0 and why.certificate.outcome is Outcome.PREDICTED:
            assert f"{why.seen.router[2]} of 500 votes of the selector find an entropy above 1." in why.reason()


def test_the_votes_for_the_true_class_are_those_of_the_classifier(ledger):
    assert len(p_a(read_sampled(ledger))) == 60


def test_a_comparison_of_sigmas_has_one(ledger):
    assert fixed_radii(ledger).sigmas == (0.5,)
