"""Looks and target in the header: absent where they say nothing, deciding where they do; older ledgers still open."""

import json

import pytest
from storage_cases import a_header, finished, one_stage_header

from dualrs.errors import BadSetting, LedgerError
from dualrs.policy import POLICY
from dualrs.storage import Header, Ledger, verify
from dualrs.storage.header import LATER
from dualrs.votes import SamplingPlan

LOOKS = (100, 200, 400, 800, 1600, 2300)
TARGET = "radii 0.0,0.25,0.5"


def adaptive(**changes):
    return a_header(**({"looks": LOOKS, "target": TARGET, "policy": POLICY} | changes))


# As the version before adaptive runs wrote them.
BEFORE = (
    '{"alpha":0.01,"batch_size":100,"classes":5,"command":"dualrs certify","created":"2025-01-01T00:00:00",'
    '"dataset":"toy","dataset_fingerprint":"cc","device":"cpu","dtype":"float32","format":1,"image_shape":[3,32,32],'
    '"models":{"class":"bb","router":"aa"},"n":2300,"n0":50,"noise":"stream-1","rule":"fusion","seed":7,"sigma_e":1.0,'
    '"sigmas":[0.25,0.5,1.0],"versions":{"dualrs":"0.1"}}'
)


def test_header_from_before_is_read_as_it_was_meant():
    header = Header.from_json(BEFORE)
    assert header == a_header(format=1)
    assert (header.looks, header.target) == ((), "")
    assert header.plan == SamplingPlan(50, 2300)
    assert header.to_json() == BEFORE


@pytest.mark.parametrize(
    ("header", "fingerprint"),
    [
        (a_header(format=1), "73701559bd5c95d6f464e736b46adb26"),
        (one_stage_header(format=1), "bbfbe0c3724b7a7634bc021e3073e472"),
        (a_header(votes="all", format=1), "3947e515e1b23fb93349af0df12e7d24"),
    ],
    ids=["two stages", "one stage", "all votes"],
)
def test_fingerprints_of_runs_with_a_fixed_n_are_what_they_always_were(header, fingerprint):
    """Every seal of every ledger hangs on them."""
    assert header.fingerprint == fingerprint


def test_ledger_of_a_fixed_n_has_no_word_of_looks(tmp_path):
    with Ledger.open(finished(tmp_path / "run.ledger")) as ledger:
        fields = next(ledger.database.rows("SELECT fields FROM header"))[0]
        assert not set(LATER) & set(json.loads(fields))
        assert verify(ledger) == []


def test_adaptive_header_survives_the_record():
    header = adaptive()
    again = Header.from_json(header.to_json())
    assert again == header
    assert again.plan == SamplingPlan(50, 2300, LOOKS)
    assert {"looks", "target", "policy"} <= set(json.loads(header.to_json()))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"target": "tolerance 0.01"}, f"target is {TARGET} on record but tolerance 0.01 was given"),
        ({"looks": (100, 2300)}, f"looks is {LOOKS} on record but (100, 2300) was given"),
        ({"looks": (2300,)}, f"looks is {LOOKS} on record but (2300,) was given"),
    ],
    ids=["target", "looks", "one look"],
)
def test_looks_and_target_decide(change, sentence):
    ours, theirs = adaptive(), adaptive(**change)
    assert ours.fingerprint != theirs.fingerprint
    assert ours.differences(theirs) == [sentence]


def test_adaptive_run_is_another_one_than_that_of_a_fixed_n():
    assert len(a_header().differences(adaptive())) == 3
    assert a_header().fingerprint != adaptive().fingerprint


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"target": ""}, id="looks without a target"),
        pytest.param({"looks": ()}, id="a target without looks"),
        pytest.param({"policy": ""}, id="nobody who decides"),
        pytest.param({"votes": "all"}, id="all votes"),
        pytest.param({"rule": "labels", "sigma_e": None, "models": {"class": "bb"}}, id="labels"),
        pytest.param({"rule": "assigned", "classes": 0}, id="assigned sigmas"),
        pytest.param({"looks": (100.5, 2300)}, id="looks that are no whole numbers"),
        pytest.param({"target": 3}, id="a target that is no text"),
    ],
)
def test_nonsense_is_refused(changes):
    with pytest.raises(BadSetting):
        adaptive(**changes)


def test_unknown_field_is_still_an_error():
    with pytest.raises(LedgerError, match="missing or unknown fields: pace"):
        Header.from_json(BEFORE[:-1] + ',"pace":"slow"}')


def test_run_under_another_policy_is_refused_as_its_levels_cannot_be_told():
    text = adaptive().to_json().replace(POLICY, "look by look 1")
    with pytest.raises(LedgerError, match=r"adaptive under 'look by look 1', .* use the version that wrote it"):
        Header.from_json(text)
