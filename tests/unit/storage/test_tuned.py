"""On how many of its inputs the rule of a run was tuned, and what is said of them."""

import pytest
from storage_cases import a_header

from dualrs.storage.tuned import Tuned

IDS = [f"test/{i:05}" for i in range(30)]


def tuned(**changes):
    settings = {"rule": "fusion", "dataset": "toy/test", "dataset_fingerprint": "cc", "seed": "1", "ids": IDS[:20]}
    return Tuned.on(**settings | changes)


def overlap(record, ids, rule="fusion", **changes):
    return a_header(tuned=record.fields, **{"dataset": "toy/test", "seed": 7, **changes}).overlap(rule, ids)


def test_inputs_are_counted_by_id():
    assert overlap(tuned(), IDS[15:]).note == "tuned on 5 of these 15 inputs: no estimate of accuracy on others"
    assert overlap(tuned(), IDS[20:]) is None
    assert overlap(tuned(), IDS, rule="paper") is None
    assert a_header().overlap("fusion", IDS) is None


@pytest.mark.parametrize(
    ("dataset", "fingerprint", "shared"),
    [
        ("renamed", "cc", 20),
        ("toy/subset", "dd", 20),  # another selection of the same images
        ("other/test", "dd", 0),
        ("array", "dd", 0),
    ],
)
def test_an_id_means_the_same_input_only_in_the_same_data(dataset, fingerprint, shared):
    assert tuned().shared(dataset, fingerprint, IDS) == shared


def test_arrays_without_names_of_their_own_are_not_mixed_up():
    assert tuned(dataset="array", ids=["0", "1"]).shared("array", "dd", ["0", "1"]) == 0


def test_a_guarantee_covers_a_choice_under_other_noise_and_none_by_the_very_votes():
    other, same = overlap(tuned(), IDS), overlap(tuned(seed="7"), IDS)
    assert not other.by_these_votes
    assert other.covered("sound") == "sound; its numbers were chosen on 20 of these inputs, by votes under other noise"
    assert same.by_these_votes
    assert "but its numbers were chosen by these votes on 20 of the inputs, which it does not cover" in same.covered("")


def test_a_secret_seed_is_recognised():
    seed = 2**100 + 1
    assert overlap(tuned(seed=hex(seed)), IDS, seed=seed).by_these_votes
