"""What users have in hand: images of Pillow, lists, datasets of torch and loaders, grey folders."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, TensorDataset

from dualrs.data.dataset import as_dataset
from dualrs.data.folders import ImageFolder
from dualrs.data.images import as_pixels
from dualrs.errors import BadImage

COLOUR = np.random.default_rng(0).integers(0, 256, (4, 3, 5, 6), dtype=np.uint8)
LABELS = [2, 0, 1, 1]
TENSORS = TensorDataset(torch.from_numpy(COLOUR), torch.tensor(LABELS))


def picture(pixels, mode="RGB"):
    return Image.fromarray(pixels.transpose(1, 2, 0)).convert(mode)


class Mapped:
    """A dataset of torch as people write them: by index, with names, and no end of its own."""

    classes = ("a", "b", "c")

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.from_numpy(COLOUR[index % 4]).float() / 255, LABELS[index % 4]


@pytest.mark.parametrize(
    ("source", "labels", "classes"),
    [
        (list(COLOUR), None, ()),
        ([torch.from_numpy(one) for one in COLOUR], None, ()),
        ([picture(one) for one in COLOUR], None, ()),
        ((list(COLOUR), LABELS), LABELS, ()),
        (list(zip(COLOUR, LABELS, strict=True)), LABELS, ()),
        (TENSORS, LABELS, ()),
        (DataLoader(TENSORS, batch_size=3), LABELS, ()),
        (DataLoader(TensorDataset(TENSORS.tensors[0]), batch_size=3), None, ()),
        (Mapped(), LABELS, ("a", "b", "c")),
        (DataLoader(Mapped(), batch_size=2), LABELS, ("a", "b", "c")),
    ],
    ids=["list", "tensors", "pictures", "list and labels", "pairs", "TensorDataset", "loader", "bare loader", "own",
         "own loader"],
)  # fmt: skip
def test_it_is_a_dataset(source, labels, classes):
    found = as_dataset(source, "mine")
    np.testing.assert_array_equal(found.pixels, COLOUR)
    assert found.labels == (None if labels is None else tuple(labels))
    assert (found.name, found.classes) == ("mine", classes)


@pytest.mark.parametrize(("mode", "channels"), [("RGB", 3), ("L", 1), ("LA", 1), ("1", 1), ("RGBA", 3), ("P", 3)])
def test_a_picture_has_its_channels(mode, channels):
    assert as_pixels(picture(COLOUR[0], mode)).shape == (1, channels, 5, 6)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ([COLOUR[0], COLOUR[0][:, 1:]], r"shapes \(3, 5, 6\) and \(3, 4, 6\)"),
        ([], "has no images"),
        (7, "is a int; expected a dualrs dataset"),
        (["a.png"], "is a list; expected a dualrs dataset"),
        ([Image.new("I;16", (4, 4))], "more than 8 bits"),
    ],
)
def test_what_holds_no_images_is_refused(source, words):
    with pytest.raises(BadImage, match=words):
        as_dataset(source, "mine")


def test_grey_folders_stay_grey_and_mixed_ones_are_in_colour(tmp_path):
    for name, mode in (("a", "L"), ("b", "1"), ("c", "LA")):
        picture(COLOUR[0], mode).save(tmp_path / f"{name}.png")
    grey = ImageFolder(tmp_path)
    assert [grey.image(k).shape for k in range(3)] == [(1, 5, 6)] * 3
    assert grey.card["colours"] == "grey, 8 bits a channel"
    assert ImageFolder(tmp_path, resize=4, crop=3).image(0).shape == (1, 3, 3)
    picture(COLOUR[0]).save(tmp_path / "d.png")
    assert [ImageFolder(tmp_path).image(k).shape for k in range(4)] == [(3, 5, 6)] * 4
