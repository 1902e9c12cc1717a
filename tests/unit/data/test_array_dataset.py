"""ArrayDataset and as_dataset: ids, labels, fingerprints, and what is refused."""

import numpy as np
import pytest
import torch

from dualrs.data.dataset import ArrayDataset, as_dataset
from dualrs.errors import BadData, BadImage

IMAGES = np.random.default_rng(0).integers(0, 256, (3, 1, 2, 2), dtype=np.uint8)
LABELS = [2, 0, 1]


def test_images_come_back_by_index():
    dataset = ArrayDataset(IMAGES, LABELS)
    assert len(dataset) == 3
    np.testing.assert_array_equal(dataset.image(2), IMAGES[2])
    assert dataset.labels == (2, 0, 1)


def test_ids_are_positions_unless_given():
    assert ArrayDataset(IMAGES).ids == ("0", "1", "2")
    assert ArrayDataset(IMAGES, ids=[10, "b", 30]).ids == ("10", "b", "30")


def test_labels_are_optional():
    assert ArrayDataset(IMAGES).labels is None


@pytest.mark.parametrize(
    "labels", [LABELS, tuple(LABELS), np.array(LABELS), torch.tensor(LABELS)], ids=["list", "tuple", "numpy", "torch"]
)
def test_labels_of_any_kind_become_integers(labels):
    kept = ArrayDataset(IMAGES, labels).labels
    assert kept == (2, 0, 1)
    assert {type(v) for v in kept} == {int}


def test_float_images_are_kept_as_eight_bit_ones():
    np.testing.assert_array_equal(ArrayDataset(torch.from_numpy(IMAGES) / 255).pixels, IMAGES)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"labels": [1, 2]}, "3 images need 3 labels, got 2", id="a label too few"),
        pytest.param({"labels": [1, 2, 3, 4]}, "3 images need 3 labels, got 4", id="a label too many"),
        pytest.param({"ids": ["a", "b"]}, "3 images need 3 different ids, got 2", id="an id too few"),
        pytest.param({"ids": ["a", "b", "a"]}, "3 images need 3 different ids, got 2", id="an id twice"),
        pytest.param({"ids": [1, 2, "1"]}, "3 images need 3 different ids, got 2", id="a number and its text"),
    ],
)
def test_wrong_numbers_are_refused(options, message):
    with pytest.raises(BadImage, match=message):
        ArrayDataset(IMAGES, **options)


def test_fingerprint_is_that_of_equal_content():
    assert ArrayDataset(IMAGES, LABELS).fingerprint == ArrayDataset(IMAGES / 255, np.array(LABELS)).fingerprint


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(ArrayDataset(IMAGES[::-1], LABELS), id="images in another order"),
        pytest.param(ArrayDataset(IMAGES ^ 1, LABELS), id="pixels off by one"),
        pytest.param(ArrayDataset(IMAGES, [2, 1, 0]), id="other labels"),
        pytest.param(ArrayDataset(IMAGES), id="no labels"),
        pytest.param(ArrayDataset(IMAGES, LABELS, ids="abc"), id="other ids"),
        pytest.param(ArrayDataset(IMAGES[:2], LABELS[:2]), id="fewer images"),
        pytest.param(ArrayDataset(IMAGES.reshape(3, 1, 4, 1), LABELS), id="another shape"),
    ],
)
def test_fingerprint_of_different_content_differs(other):
    assert other.fingerprint != ArrayDataset(IMAGES, LABELS).fingerprint


def test_dataset_is_taken_as_it_is():
    dataset = ArrayDataset(IMAGES, name="own name")
    assert as_dataset(dataset, "reference") is dataset


@pytest.mark.parametrize(
    ("source", "labels"),
    [
        pytest.param(IMAGES, None, id="images of numpy"),
        pytest.param(torch.from_numpy(IMAGES), None, id="images of torch"),
        pytest.param((IMAGES, LABELS), (2, 0, 1), id="images and labels"),
        pytest.param((torch.from_numpy(IMAGES) / 255, torch.tensor(LABELS)), (2, 0, 1), id="floats and labels"),
    ],
)
def test_arrays_become_a_dataset_under_the_name_given(source, labels):
    dataset = as_dataset(source, "net.py:test")
    assert dataset.name == "net.py:test"
    assert dataset.labels == labels
    np.testing.assert_array_equal(dataset.image(1), IMAGES[1])


class Nameless:
    """Everything that a dataset has, but a name."""

    ids, labels, fingerprint = ("0",), None, "f"

    def image(self, index):
        return IMAGES[0]


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        pytest.param([IMAGES, LABELS], "list", id="a list"),
        pytest.param((IMAGES, LABELS, "extra"), "tuple", id="three things"),
        pytest.param({"images": IMAGES}, "dict", id="a dict"),
        pytest.param(Nameless(), "Nameless", id="a dataset without a name"),
        pytest.param(None, "NoneType", id="nothing"),
        pytest.param("data.npz", "str", id="a file name"),
        pytest.param((None, LABELS), "tuple", id="labels without images"),
    ],
)
def test_other_things_are_refused_by_name(source, kind):
    with pytest.raises(BadImage, match=f"net.py:test is a {kind}; expected a dualrs dataset"):
        as_dataset(source, "net.py:test")


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["cat", "dog"], "the label 'cat' at 0: labels are class numbers"),
        ([0, "dog"], "the label 'dog' at 1"),
        ([0, None], "the label None at 1"),
        ([0, 0.5], "the label 0.5 at 1"),
        ([0, -1], "the label -1 at 1"),
        (np.array([0, np.nan]), "nan"),
        (np.eye(3)[:2], r"shape \(2, 3\).*give labels.argmax\(1\)"),
        (torch.eye(3)[:2], r"shape \(2, 3\).*give labels.argmax\(1\)"),
        (torch.tensor(1), r"shape \(\)"),
    ],
)
def test_labels_that_are_no_class_numbers_are_refused(labels, words):
    with pytest.raises(BadData, match=words):
        ArrayDataset(np.zeros((2, 1, 4, 4), np.uint8), labels)


def test_whole_numbers_of_any_kind_are_labels():
    for labels in ([0, 2], (0.0, 2.0), np.array([0, 2], np.uint8), torch.tensor([0, 2]), [np.int64(0), 2]):
        assert ArrayDataset(np.zeros((2, 1, 4, 4), np.uint8), labels).labels == (0, 2)
