"""Classes by name: labels get the network's numbers, and what does not fit is refused."""

import warnings

import numpy as np
import pytest

from dualrs.data.classes import demand_fit, numbered_as
from dualrs.data.dataset import ArrayDataset
from dualrs.errors import BadData, ClassesByNumber


def dataset(labels, classes=()):
    return ArrayDataset(np.arange(len(labels), dtype=np.uint8).reshape(-1, 1, 1, 1), labels, classes=classes)


def test_labels_follow_the_names():
    data = dataset([0, 1, 2, 2], ["bird", "cat", "dog"])
    found = numbered_as(data, ["cat", "dog", "bird"])
    assert found.labels == (2, 0, 1, 1)
    assert found.classes == ("cat", "dog", "bird")
    assert (found.name, found.ids) == (data.name, data.ids)
    assert (found.image(3) == data.image(3)).all()
    assert found.fingerprint != data.fingerprint
    assert numbered_as(found, data.classes).labels == data.labels


def test_capitals_and_what_stands_for_a_space_are_no_difference():
    data = dataset([0, 1], ["polar bear", "tabby-cat"])
    assert numbered_as(data, ["Tabby_cat", "Polar Bear"]).labels == (1, 0)


def test_some_of_the_classes_are_found_among_all_of_them():
    assert numbered_as(dataset([0, 1], ["cat", "owl"]), ["owl", "dog", "cat"]).labels == (2, 0)


@pytest.mark.parametrize("classes", [(), ("cat", "dog"), ("Cat", "Dog")])
def test_nothing_changes_where_there_is_nothing_to_change(classes):
    data = dataset([0, 1], ["cat", "dog"])
    assert numbered_as(data, classes) is data


def test_data_without_labels_or_names_stay():
    for data in (dataset([0, 1]), ArrayDataset(np.zeros((1, 1, 1, 1), np.uint8), classes=["dog", "cat"])):
        assert numbered_as(data, ["cat", "dog"]) is data


@pytest.mark.parametrize(
    ("own", "classes"),
    [
        (["cat", "dog", "fox"], ["dog", "cat", "owl"]),  # dog has two numbers
        (["a", "b", "c", "d", "e"], ["cat", "dog", "owl"]),
        (["train", "val"], ["cat", "dog", "owl"]),
        (["crane", "dog", "crane "], ["crane", "crane", "dog"]),  # which crane?
    ],
)
def test_other_classes_are_refused(own, classes):
    with pytest.raises(BadData, match="do not fit those of the network"):
        numbered_as(dataset(range(len(own)), own), classes)


def test_names_in_another_language_are_matched_by_number_with_a_warning():
    data = dataset([0, 1], ["n01440764", "n01443537"])
    with pytest.warns(ClassesByNumber, match="tench, goldfish, and array calls them n01440764, n01443537"):
        assert numbered_as(data, ["tench", "goldfish"]) is data


def test_labels_beyond_the_classes_are_refused():
    with pytest.raises(BadData, match=r"the label 7 \(input 1\), and the network has 5 classes"):
        demand_fit(dataset([0, 7, 4]), 5)


def test_another_number_of_named_classes_is_refused():
    with pytest.raises(BadData, match=r"3 classes \(cat, dog, owl\), and the network has 5"):
        demand_fit(dataset([0, 1], ["cat", "dog", "owl"]), 5)


def test_what_fits_is_taken():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        demand_fit(dataset([0, 4]), 5)
        demand_fit(dataset([0, 1], ["cat", "dog", "owl"]), 3)
        demand_fit(ArrayDataset(np.zeros((1, 1, 1, 1), np.uint8)), 2)
