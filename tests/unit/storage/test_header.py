import json
from dataclasses import replace

import numpy as np
import pytest
from storage_cases import a_header, one_stage_header

from dualrs.errors import BadSetting, LedgerError
from dualrs.policy import POLICY
from dualrs.schemes import Aces, Assigned, Dual, Single
from dualrs.storage import Header
from dualrs.votes import SamplingPlan

DECIDING = {
    "format": 1,
    "rule": "paper",
    "alpha": 0.001,
    "seed": 8,
    "n0": 60,
    "n": 2400,
    "sigmas": (0.25, 0.5, 0.75),
    "sigma_e": 1.5,
    "classes": 6,
    "image_shape": (3, 32, 33),
    "batch_size": 200,
    "dtype": "float16",
    "device": "cuda",
    "models": {"router": "aa", "class": "other"},
    "dataset": "cifar10",
    "dataset_fingerprint": "dd",
    "noise": "stream-2",
    "votes": "all",
}
INFORMATIONAL = {"versions": {"dualrs": "9"}, "command": "another", "created": "later"}
TUNED = {"rule": "cascade-0.4", "dataset": "toy", "dataset_fingerprint": "cc", "seed": "7", "inputs": "abcdefgh"}


def test_every_field_is_known_to_decide_or_not():
    assert set(DECIDING) | set(INFORMATIONAL) | {"scheme"} == set(json.loads(a_header(votes="all").to_json()))


def test_votes_are_recorded_only_where_more_than_the_needed_ones_were_asked_for():
    """So that the ledgers of runs without --all-votes are, byte for byte, what they always were."""
    plain, everything = a_header(), a_header(votes="all")
    assert "votes" not in json.loads(plain.to_json())
    assert Header.from_json(plain.to_json()).votes == "needed"
    assert Header.from_json(everything.to_json()).votes == "all"
    assert plain.differences(everything) == ["votes is needed on record but all was given"]


def test_thresholds_are_recorded_only_where_there_are_any():
    assert "thresholds" not in json.loads(a_header().to_json())
    ours, theirs = (
        one_stage_header(rule="aces-0.5", sigma_e=0.5, thresholds=thresholds) for thresholds in ((0.5, 1), (0.5, 2))
    )
    assert Header.from_json(ours.to_json()) == ours
    assert ours.scheme == Aces((0.5,), 5, (0.5, 1.0))
    assert ours.fingerprint != theirs.fingerprint
    assert ours.differences(theirs) == ["thresholds is (0.5, 1.0) on record but (0.5, 2.0) was given"]


@pytest.mark.parametrize(
    "changes",
    [
        {"sigma_e": None},
        {"sigma_e": 1.0},
        {"sigma_e": 0.5, "looks": (100, 2300), "target": "tolerance 0.1", "policy": POLICY},
    ],
)
def test_thresholds_go_with_one_sigma_and_a_fixed_n(changes):
    with pytest.raises(BadSetting, match=r"thresholds are of ACES|has no adaptive form"):
        one_stage_header(rule="aces-0.5", thresholds=(0.5,), **changes)


@pytest.mark.parametrize("name", DECIDING)
def test_a_deciding_field_changes_the_fingerprint_and_is_named_with_both_values(name):
    ours, theirs = a_header(), a_header(**{name: DECIDING[name]})
    assert ours.fingerprint != theirs.fingerprint
    (sentence,) = ours.differences(theirs)
    assert ("class" if name == "models" else name) in sentence
    if name != "models":
        assert str(getattr(ours, name, getattr(ours.scheme, name, None))) in sentence
        assert str(DECIDING[name]) in sentence


@pytest.mark.parametrize("name", INFORMATIONAL)
def test_an_informational_field_decides_nothing(name):
    ours, theirs = a_header(), a_header(**{name: INFORMATIONAL[name]})
    assert ours.fingerprint == theirs.fingerprint
    assert ours.differences(theirs) == []
    assert ours != theirs


def test_earlier_looks_decide_nothing_and_are_absent_where_there_are_none():
    plain, second = a_header(), a_header(earlier={"1000": "0.001"})
    assert "earlier" not in json.loads(plain.to_json())
    assert plain.second_look == ""
    assert Header.from_json(second.to_json()) == second
    assert plain.fingerprint == second.fingerprint
    assert plain.differences(second) == []
    assert "certified before, n 1,000 at alpha 0.001" in second.second_look


@pytest.mark.parametrize("odd", [{"many": "0.1"}, {"-1": "0.1"}, {"9" * 5000: "0.1"}, {"1000": "2"}, {"1000": "nan"}])
def test_earlier_looks_are_numbers(odd):
    with pytest.raises(BadSetting, match="earlier looks are numbers of votes, with an alpha each"):
        a_header(earlier=odd)


def test_the_record_of_a_tuned_rule_decides_nothing_and_is_absent_where_there_is_none():
    """So that a ledger from before there were such records is, byte for byte, what it was."""
    plain, tuned = a_header(), a_header(tuned=TUNED)
    assert "tuned" not in json.loads(plain.to_json())
    assert Header.from_json(tuned.to_json()) == tuned
    assert plain.fingerprint == tuned.fingerprint
    assert plain.differences(tuned) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"when": "now"}, "unknown fields: when"), ({"inputs": "abc"}, "8 letters each"), ({"seed": 7}, "must be text")],
)
def test_a_record_of_another_kind_is_refused(changes, said):
    with pytest.raises(BadSetting, match=said):
        a_header(tuned=TUNED | changes)


def test_a_model_on_one_side_only_is_named():
    ours, theirs = a_header(), a_header(models={"router": "aa", "class 0.5": "bb"})
    assert ours.differences(theirs) == [
        "model 'class' is bb on record but nothing was given",
        "model 'class 0.5' is nothing on record but bb was given",
    ]


@pytest.mark.parametrize("header", [a_header(), one_stage_header()], ids=["dual", "one stage"])
def test_json_round_trip(header):
    again = Header.from_json(header.to_json())
    assert again == header
    assert again.fingerprint == header.fingerprint
    assert again.to_json() == header.to_json()


def test_floats_survive_exactly():
    header = a_header(sigmas=(0.1 + 0.2, np.nextafter(0.5, 1)), sigma_e=1 / 3 + 1, alpha=1e-300)
    assert Header.from_json(header.to_json()) == header


def test_the_spelling_of_a_value_does_not_matter():
    plain = a_header(sigmas=(0.5, 1.0), sigma_e=1.0, n=1000)
    odd = a_header(sigmas=[np.float64(0.5), 1], sigma_e=1, n=np.int64(1000), image_shape=[3, 32, 32])
    assert plain == odd
    assert plain.fingerprint == odd.fingerprint


def test_plan_and_streams():
    assert a_header().plan == SamplingPlan(50, 2300)
    assert a_header().scheme == Dual((0.25, 0.5, 1.0), 5, 1.0)
    assert one_stage_header().scheme == Single((0.5,), 5)


@pytest.mark.parametrize(
    "changes",
    [
        {"alpha": float("nan")},
        {"alpha": "0.1"},
        {"n": 10.5},
        {"sigmas": ()},
        {"sigmas": (0.5, 0.5)},
        {"sigmas": (0.5, -1.0)},
        {"classes": 0},
        {"classes": -1},
        {"classes": (1 << 20) + 1},
        {"classes": 1 << 19, "confidences": (0.3, 0.4)},  # pairs of class and bin are columns too
        {"confidences": (0.4, 0.3)},
        {"confidences": (0.4, 1.0)},
        {"rule": "labels", "classes": 0},
        {"rule": "assigned"},
        {"rule": "assigned", "classes": -1},
        {"rule": "assigned", "classes": 0, "sigma_e": None},
        {"image_shape": (32, 32)},
        {"rule": 3},
        {"votes": "some"},
        {"models": {"router": 1}},
    ],
    ids=str,
)
def test_nonsense_is_refused(changes):
    with pytest.raises(BadSetting):
        a_header(**changes)


def test_classes_may_be_none_only_where_sigmas_are_assigned():
    header = a_header(rule="assigned", classes=0, n0=0)
    assert Header.from_json(header.to_json()) == header
    assert header.scheme == Assigned((0.25, 0.5, 1.0), 0, 1.0)


@pytest.mark.parametrize(
    ("header", "contents", "certifies"),
    [
        (a_header(), "certificates under rule fusion", True),
        (one_stage_header(rule="labels"), "labels", False),
        (a_header(rule="assigned", classes=0), "assigned sigmas", False),
    ],
    ids=["certify", "label", "assign"],
)
def test_what_a_ledger_holds(header, contents, certifies):
    assert (header.contents, header.certifies) == (contents, certifies)


def test_differences_may_leave_out_fields():
    ours, theirs = a_header(), a_header(alpha=0.5, seed=8)
    assert ours.differences(theirs, apart_from=("alpha",)) == ["seed is 7 on record but 8 was given"]


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "{}", a_header().to_json().replace('"n0"', '"n00"'), a_header().to_json()[:-1] + ',"x":1}'],
)
def test_unreadable_json_is_a_ledger_error(text):
    with pytest.raises(LedgerError):
        Header.from_json(text)


@pytest.mark.parametrize("name", ["alpha", "n", "n0", "classes", "batch_size", "sigma_e"])
def test_a_number_of_hundreds_of_digits_is_refused(name):
    with pytest.raises(BadSetting, match=f"{name} must be"):
        a_header(**{name: 10**400})
    with pytest.raises(LedgerError, match=f"{name} must be"):
        Header.from_json(json.dumps(json.loads(a_header().to_json()) | {name: 10**400}))


def test_more_classes_than_counts_can_be_kept_of_are_refused():
    with pytest.raises(BadSetting, match="at most 1,048,576"):
        a_header(classes=10**9)


@pytest.mark.parametrize(
    ("name", "value"), [("thresholds", -1e308), ("thresholds", 0.5), ("sigmas", 0.5), ("sigma_e", [0.5])]
)
def test_one_number_is_no_list_and_a_list_is_no_number(name, value):
    header = a_header() if name == "sigma_e" else one_stage_header(rule="aces-0.5", sigma_e=0.5, thresholds=(0.5, 1))
    written = json.loads(replace(header, format=2).to_json())
    with pytest.raises(LedgerError, match=f"{name} must be"):
        Header.from_json(json.dumps(written | {name: value}))
