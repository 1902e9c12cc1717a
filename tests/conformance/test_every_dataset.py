"""What holds for every dataset, wherever its images lie: one line each, and the suite."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from dualrs import Smoothed, certify_dataset
from dualrs.data.cifar10 import subset
from dualrs.data.dataset import ArrayDataset, as_dataset
from dualrs.data.folders import ImageFolder
from dualrs.data.sources import open_dataset
from dualrs.storage import Ledger

PIXELS = np.random.default_rng(0).integers(0, 256, (4, 3, 8, 8), dtype=np.uint8)


def files(folder, *names):
    for name, pixels in zip(names, PIXELS, strict=True):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.transpose(1, 2, 0)).save(path)
    return folder


def classes(folder):
    return files(folder, "cat/a.png", "cat/b.png", "dog/a.png", "dog/b.png")


def flat(folder):
    return files(folder, "a.png", "b.png", "c.png", "d.png")


def hub(folder):
    """A folder as the library of the hub writes it."""
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])})
    rows = {"image": [Image.fromarray(p.transpose(1, 2, 0)) for p in PIXELS], "label": [0, 0, 1, 1]}
    made = datasets.DatasetDict(test=datasets.Dataset.from_dict(rows, features=features))
    made.save_to_disk(folder)
    return folder


DATASETS = {
    "array": lambda folder: ArrayDataset(PIXELS, [0, 1, 2, 0]),
    "array without labels": lambda folder: ArrayDataset(PIXELS, ids="abcd"),
    "floats of torch": lambda folder: ArrayDataset(torch.from_numpy(PIXELS) / 255, torch.tensor([0, 1, 2, 0])),
    "images and labels": lambda folder: as_dataset((PIXELS, [0, 1, 2, 0]), "net.py:test"),
    "folder of classes": lambda folder: ImageFolder(classes(folder)),
    "flat folder": lambda folder: ImageFolder(flat(folder)),
    "folder, resized": lambda folder: open_dataset(f"folder:{classes(folder)}", resize=6, crop=4),
    "hub": lambda folder: open_dataset(f"hub:{hub(folder)}:test"),
    "cifar10 subset": lambda folder: subset(),
}


@dataclass
class Kind:
    name: str
    folder: object
    made: int = 0

    def __call__(self):
        self.made += 1
        return DATASETS[self.name](self.folder / str(self.made) / "images")


@pytest.fixture(params=DATASETS)
def make(request, tmp_path):
    """Makes the dataset, as often as it is called, each from files of its own."""
    return Kind(request.param, tmp_path)


def test_ids_are_different_and_always_the_same(make):
    dataset = make()
    assert all(isinstance(name, str) for name in dataset.ids)
    assert len(set(dataset.ids)) == len(dataset.ids) == len(dataset)
    assert list(make().ids) == list(dataset.ids)


def test_labels_are_numbers_of_classes_or_there_are_none(make):
    labels = make().labels
    if labels is not None:
        assert len(labels) == len(make())
        assert {type(label) for label in labels} == {int}
        assert min(labels) >= 0


def test_images_are_eight_bit_of_one_shape_and_always_the_same(make):
    dataset, again = make(), make()
    some = [0, len(dataset) - 1, 1]
    first = dataset.image(0)
    assert first.dtype == np.uint8
    assert first.ndim == 3
    assert len(first) in (1, 3)
    for index in some:
        assert dataset.image(index).shape == first.shape
        np.testing.assert_array_equal(dataset.image(index), again.image(index))
    assert not np.array_equal(dataset.image(1), first)


def test_fingerprint_and_name_are_those_of_the_content(make):
    dataset = make()
    assert dataset.name == make().name
    assert len(dataset.fingerprint) == 32
    assert make().fingerprint == dataset.fingerprint
    assert dataset.fingerprint != ArrayDataset(PIXELS ^ 1, [0, 1, 2, 0]).fingerprint


def test_it_is_a_dataset_as_it_is(make):
    dataset = make()
    assert as_dataset(dataset, "some name") is dataset


class Bright(nn.Module):
    """Light or dark, for images of any size, and as many classes as are wanted."""

    def __init__(self, classes):
        super().__init__()
        self.classes = classes

    def forward(self, x):
        mean = x.mean(dim=(1, 2, 3), keepdim=True).flatten(1) - 0.5
        return torch.cat([-mean, mean, -9 - mean.expand(-1, self.classes - 2)], dim=1)


def test_it_is_certified_under_its_ids_with_its_labels(make, tmp_path):
    dataset = make()
    classes = len(getattr(dataset, "classes", ())) or 1 + max(dataset.labels or [1])
    model = Smoothed(Bright(max(classes, 2)).eval(), 0.25, batch_size=50)
    indices = [0, 2, 3]
    sample = certify_dataset(model, dataset, tmp_path / "run.ledger", n=100, n0=10, seed=0, indices=indices)
    assert sample.ids == tuple(dataset.ids[i] for i in indices)
    assert sample.labels == [None if dataset.labels is None else dataset.labels[i] for i in indices]
    with Ledger.open(tmp_path / "run.ledger") as ledger:
        assert [row.position for row in ledger.inputs()] == indices
        assert (ledger.header.dataset, ledger.header.dataset_fingerprint) == (dataset.name, dataset.fingerprint)
    alone = model.certify(np.stack([dataset.image(i) for i in indices]), n=100, n0=10, seed=0, ids=sample.ids)
    assert list(sample.certify()) == list(alone)
