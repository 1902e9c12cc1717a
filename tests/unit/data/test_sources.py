"""References to datasets: which are taken, where their paths begin, and what is refused."""

import datasets
import numpy as np
import pytest
from PIL import Image

from dualrs.data.folders import ImageFolder
from dualrs.data.hub_data import HubDataset
from dualrs.data.sources import FORMS, anchored_dataset, open_dataset
from dualrs.errors import BadData, BadRecipe, BadSetting

PICTURE = Image.fromarray(np.zeros((8, 8, 3), dtype=np.uint8))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A recipe's folder with images and a saved dataset, away from the current one."""
    (tmp_path / "images" / "n01").mkdir(parents=True)
    PICTURE.save(tmp_path / "images" / "n01" / "a.png")
    table = datasets.Dataset.from_dict({"img": [PICTURE]}, features=datasets.Features({"img": datasets.Image()}))
    datasets.DatasetDict({"test": table}).save_to_disk(tmp_path / "saved" / "toys")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return tmp_path


@pytest.mark.parametrize(
    "reference", ["net.py:data", "package.module:data", "cifar10", "cifar10.py:train", "digits:x", ""]
)
def test_other_references_are_left_to_others(reference):
    assert open_dataset(reference) is None


def test_the_subset_is_always_there():
    assert open_dataset("cifar10:subset").name == "cifar10/subset"


@pytest.mark.parametrize("split", ["train", "test"])
def test_the_splits_of_cifar10_are_looked_up_in_the_store(monkeypatch, tmp_path, split):
    monkeypatch.setenv("DUALRS_DATA", str(tmp_path))
    with pytest.raises(BadData, match="run: dualrs data cifar10"):
        open_dataset(f"cifar10:{split}")


def test_relative_paths_begin_at_the_folder(folder):
    images = open_dataset("folder:images", folder, resize=8, crop=4)
    assert isinstance(images, ImageFolder)
    assert images.image(0).shape == (3, 4, 4)
    toys = open_dataset("hub:saved/toys:test", folder, crop=4)
    assert isinstance(toys, HubDataset)
    assert toys.name == "toys/test, crop 4"
    assert toys.image(0).shape == (3, 4, 4)


def test_absolute_paths_are_taken_as_they_are(folder):
    assert len(open_dataset(f"folder:{folder}/images").ids) == 1
    assert len(open_dataset(f"hub:{folder}/saved/toys:test").ids) == 1


def test_paths_begin_at_the_current_folder_without_another(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert len(open_dataset("folder:images").ids) == 1


def test_paths_may_begin_at_home(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder))
    assert len(open_dataset("folder:~/images").ids) == 1
    assert len(open_dataset("hub:~/saved/toys:test").ids) == 1


@pytest.mark.parametrize(
    ("reference", "whole"),
    [
        ("folder:images", "folder:{}/images"),
        ("folder:absent", "folder:{}/absent"),
        ("folder:~/images", "folder:{}/images"),
        ("hub:saved/toys:test", "hub:{}/saved/toys:test"),
        ("hub:~/saved/toys:test", "hub:{}/saved/toys:test"),
        ("hub:some/id:test", "hub:some/id:test"),
        ("hub:toys", "hub:toys"),
        ("folder:", "folder:"),
        ("cifar10:test", "cifar10:test"),
        ("net.py:test", "{}/net.py:test"),
        ("package.module:test", "package.module:test"),
    ],
)
def test_anchored_references_mean_the_same_from_any_folder(folder, monkeypatch, reference, whole):
    monkeypatch.setenv("HOME", str(folder))
    assert anchored_dataset(reference, folder) == whole.format(folder)
    assert anchored_dataset(anchored_dataset(reference, folder), folder / "saved") == whole.format(folder)


@pytest.mark.parametrize(
    ("reference", "kind", "message"),
    [
        ("cifar10:val", BadRecipe, "there is no cifar10:val; write cifar10:train, cifar10:test or cifar10:subset"),
        ("cifar10:", BadRecipe, "there is no cifar10:;"),
        ("folder:", BadRecipe, "folder:PATH"),
        ("folder:absent", BadData, "cannot read the folder .*absent"),
        ("hub:toys", BadRecipe, "hub:toys lacks the dataset or the split; write hub:ID-OR-FOLDER:SPLIT"),
        ("hub:toys:", BadRecipe, "lacks the dataset or the split"),
        ("hub::test", BadRecipe, "lacks the dataset or the split"),
        ("hub:./absent/toys/:test", BadData, "is neither a folder nor an id of the hub"),
    ],
)
def test_bad_references_are_refused(reference, kind, message):
    with pytest.raises(kind, match=message):
        open_dataset(reference)


@pytest.mark.parametrize("settings", [{"resize": 40}, {"crop": 28}])
def test_cifar10_is_taken_as_it_is(settings):
    with pytest.raises(BadSetting, match="leave out resize and crop"):
        open_dataset("cifar10:subset", **settings)


def test_every_scheme_is_among_the_forms():
    assert {form.split(":")[0] for form in FORMS.replace(" or ", ", ").split(", ")} == {"cifar10", "folder", "hub"}
