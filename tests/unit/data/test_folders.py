"""ImageFolder: class folders and flat folders, decoded when asked for, prepared as the card says."""

import os

import numpy as np
import pytest
import torch
from PIL import Image

from dualrs.data.folders import ImageFolder
from dualrs.errors import BadData, BadImage, BadSetting

RNG = np.random.default_rng(0)


def picture(height=8, width=8):
    return RNG.integers(0, 256, (height, width, 3), dtype=np.uint8)


def save(path, pixels=None, mode="RGB", **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture() if pixels is None else pixels).convert(mode).save(path, **options)
    return path


def cut(path):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


@pytest.fixture
def synsets(tmp_path):
    """Three classes in the manner of ImageNet, written in another order than that of their names."""
    for name in ("n03/c.JPEG", "n01/b.png", "n01/a.JPEG", "n02/deep/d.PNG"):
        save(tmp_path / "val" / name)
    return tmp_path / "val"


def test_class_folders_are_numbered_in_the_order_of_their_names(synsets):
    dataset = ImageFolder(synsets)
    assert dataset.name == "val"
    assert dataset.ids == ("n01/a.JPEG", "n01/b.png", "n02/deep/d.PNG", "n03/c.JPEG")
    assert dataset.labels == (0, 0, 1, 2)
    assert dataset.classes == ("n01", "n02", "n03")
    assert len(dataset) == 4


def test_name_tells_how_images_are_prepared(synsets):
    assert ImageFolder(synsets, resize=6).name == "val, resize 6"
    assert ImageFolder(synsets, resize=6, crop=4).name == "val, resize 6, crop 4"


def test_an_empty_class_keeps_its_number(synsets):
    (synsets / "n02" / "deep" / "d.PNG").unlink()
    assert ImageFolder(synsets).labels == (0, 0, 2)


def test_classes_whose_names_begin_alike_do_not_mix(tmp_path):
    for name in ("cat/z.png", "cat-wild/a.png", "cat.old/m.png"):
        save(tmp_path / name)
    dataset = ImageFolder(tmp_path)
    assert [dataset.classes[label] for label in dataset.labels] == [name.split("/")[0] for name in dataset.ids]


def test_linked_class_folders_count(synsets, tmp_path):
    (tmp_path / "some").mkdir()
    os.symlink(synsets / "n01", tmp_path / "some" / "n01")
    assert ImageFolder(tmp_path / "some").ids == ("n01/a.JPEG", "n01/b.png")


def test_a_flat_folder_has_no_labels(tmp_path):
    save(tmp_path / "b.png")
    save(tmp_path / "a.jpg")
    dataset = ImageFolder(str(tmp_path))
    assert dataset.ids == ("a.jpg", "b.png")
    assert dataset.labels is None


def test_hidden_and_other_files_are_passed_over(synsets):
    for name in (".DS_Store", "notes.txt", "n01/._a.JPEG", "n01/notes.txt"):
        (synsets / name).write_bytes(b"no image")
    (synsets / ".cache").mkdir()
    (synsets / "n01" / "folder.png").mkdir()
    assert len(ImageFolder(synsets)) == 4


def test_pixels_come_back_as_they_were_saved(tmp_path):
    pixels = picture(5, 7)
    save(tmp_path / "a.png", pixels)
    image = ImageFolder(tmp_path).image(0)
    assert image.dtype == np.uint8
    np.testing.assert_array_equal(image, pixels.transpose(2, 0, 1))


@pytest.mark.parametrize("mode", ["RGBA", "CMYK", "P"])
def test_every_8_bit_kind_of_image_in_colour_becomes_rgb(tmp_path, mode):
    save(tmp_path / f"a.{'tif' if mode == 'CMYK' else 'png'}", mode=mode)
    assert ImageFolder(tmp_path).image(0).shape == (3, 8, 8)


@pytest.mark.parametrize("dtype", [np.uint16, np.int32, np.float32])
def test_more_than_8_bits_are_refused(tmp_path, dtype):
    Image.fromarray(np.full((8, 8), 300, dtype=dtype)).save(tmp_path / "deep.tif")
    with pytest.raises(BadImage, match=r"the image deep\.tif has more than 8 bits a channel"):
        ImageFolder(tmp_path).image(0)


# Preprocessing


@pytest.mark.parametrize(
    ("height", "width", "resize", "shape"),
    [(300, 200, 100, (150, 100)), (200, 300, 100, (100, 150)), (333, 500, 256, (256, 384)), (10, 20, 40, (40, 80))],
)
def test_the_shorter_side_is_resized_and_the_longer_follows(tmp_path, height, width, resize, shape):
    save(tmp_path / "a.png", picture(height, width))
    assert ImageFolder(tmp_path, resize).image(0).shape[1:] == shape


@pytest.mark.parametrize(
    ("height", "width", "crop", "top", "left"), [(10, 14, 4, 3, 5), (11, 10, 4, 4, 3), (9, 8, 8, 0, 0)]
)
def test_the_crop_is_central(tmp_path, height, width, crop, top, left):
    """An odd margin is divided as torchvision does: half of it, rounded to the even number."""
    rows, columns = np.mgrid[:height, :width].astype(np.uint8)
    save(tmp_path / "a.png", np.stack([rows, columns, rows], axis=2))
    image = ImageFolder(tmp_path, crop=crop).image(0)
    assert image.shape == (3, crop, crop)
    assert image[:2, 0, 0].tolist() == [top, left]
    assert image[:2, -1, -1].tolist() == [top + crop - 1, left + crop - 1]


@pytest.mark.parametrize(("size", "resize"), [(40, 24), (20, 32)], ids=["shrunk", "enlarged"])
def test_resizing_is_bicubic_with_antialias(tmp_path, size, resize):
    """Against torch, which computes the same filter in floating point; Pillow rounds to 8 bits after each axis."""
    pixels = picture(size, size)
    save(tmp_path / "a.png", pixels)
    image = torch.from_numpy(ImageFolder(tmp_path, resize).image(0)).float()

    def torch_resized(mode):
        batch = torch.from_numpy(pixels).permute(2, 0, 1)[None].float()
        return torch.nn.functional.interpolate(batch, size=(resize, resize), mode=mode, antialias=True)[0]

    # After the first axis values are rounded and clipped, and the second filter passes that on: at most a few levels.
    inside = torch_resized("bicubic").clamp(0, 255)
    assert (image - inside).abs().mean() < 1
    assert (image - torch_resized("bilinear")).abs().mean() > 3


def test_resize_then_crop_makes_all_images_alike(tmp_path):
    for i, (height, width) in enumerate([(50, 40), (30, 90), (32, 32)]):
        save(tmp_path / f"{i}.png", picture(height, width))
    dataset = ImageFolder(tmp_path, resize=32, crop=28)
    assert {dataset.image(i).shape for i in range(3)} == {(3, 28, 28)}


@pytest.mark.parametrize("resize", [None, 16])
def test_images_of_different_shapes_need_a_crop(tmp_path, resize):
    save(tmp_path / "a.png", picture(20, 20))
    save(tmp_path / "b.png", picture(20, 30))
    dataset = ImageFolder(tmp_path, resize)
    dataset.image(0)
    with pytest.raises(BadImage, match=r"the image b\.png has shape .*, but a\.png has .*give crop"):
        dataset.image(1)


def test_an_image_too_small_for_the_crop_is_refused(tmp_path):
    save(tmp_path / "a.png", picture(20, 30))
    with pytest.raises(BadImage, match=r"the image a\.png is 30 x 20, too small for a crop of 24"):
        ImageFolder(tmp_path, crop=24).image(0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"resize": 0}, "resize must be a positive number of pixels, got 0"),
        ({"crop": -3}, "crop must be a positive number of pixels, got -3"),
        ({"resize": 224, "crop": 256}, "a crop of 256 does not fit into a shorter side of 224"),
    ],
    ids=["no size", "negative crop", "crop beyond the size"],
)
def test_impossible_settings_are_refused(synsets, settings, message):
    with pytest.raises(BadSetting, match=message):
        ImageFolder(synsets, **settings)


def test_the_card_states_the_preprocessing(synsets):
    assert ImageFolder(synsets, resize=256, crop=224).card == {
        "images": "4",
        "classes": "3",
        "resize": "shorter side to 256 pixels, bicubic",
        "crop": "central 224 x 224 pixels",
        "colours": "RGB, 8 bits a channel",
    }
    plain = ImageFolder(synsets / "n01").card
    assert (plain["classes"], plain["resize"], plain["crop"]) == ("no labels", "none", "none")


# Damage


@pytest.mark.parametrize(
    "damage",
    [cut, lambda p: p.write_bytes(b"text"), lambda p: p.write_bytes(b""), lambda p: p.unlink()],
    ids=["cut", "text", "empty", "gone"],
)
def test_a_damaged_image_is_named_when_it_is_asked_for(tmp_path, damage):
    save(tmp_path / "a.png")
    bad = save(tmp_path / "b.jpg", picture(64, 64))
    dataset = ImageFolder(tmp_path, crop=8)
    damage(bad)
    dataset.image(0)
    with pytest.raises(BadImage, match=r"image .*b\.jpg"):
        dataset.image(1)


@pytest.mark.parametrize("kind", ["missing", "file", "empty", "empty classes"])
def test_a_folder_without_images_is_refused(tmp_path, kind):
    path = tmp_path / "data"
    if kind == "file":
        path.write_text("text")
    elif kind == "empty":
        path.mkdir()
    elif kind == "empty classes":
        (path / "n01").mkdir(parents=True)
    with pytest.raises(BadData, match=f"(cannot read the folder|there are no images in) {path}"):
        ImageFolder(path)


def test_images_beside_class_folders_are_refused(synsets):
    save(synsets / "stray.png")
    with pytest.raises(BadData, match=r"holds images \(stray\.png\) beside folders \(n01\)"):
        ImageFolder(synsets)


# Fingerprint


def test_fingerprint_is_that_of_equal_content(synsets, tmp_path):
    again = synsets.rename(tmp_path / "moved")
    assert ImageFolder(again).fingerprint == ImageFolder(again).fingerprint
    moved = ImageFolder(again).fingerprint
    assert ImageFolder(again.rename(tmp_path / "val")).fingerprint == moved


def another_byte(folder):
    file = folder / "n03" / "c.JPEG"
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize(
    ("change", "settings"),
    [
        (another_byte, {}),
        (lambda f: (f / "n03" / "c.JPEG").rename(f / "n03" / "e.JPEG"), {}),
        (lambda f: (f / "n03" / "c.JPEG").unlink(), {}),
        (lambda f: (f / "n00").mkdir(), {}),
        (lambda f: None, {"resize": 8}),
        (lambda f: None, {"crop": 8}),
    ],
    ids=["a byte", "a name", "an image less", "other labels", "resized", "cropped"],
)
def test_fingerprint_of_different_content_differs(synsets, change, settings):
    before = ImageFolder(synsets).fingerprint
    change(synsets)
    assert ImageFolder(synsets, **settings).fingerprint != before
