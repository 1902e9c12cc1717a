"""Images: what counts as one, what is refused with which advice, and what is rounded with a warning."""

import numpy as np
import pytest
import torch

from dualrs.data.images import as_pixels, content_id
from dualrs.errors import BadImage, InputQuantized

ALL_LEVELS = np.arange(256, dtype=np.uint8).reshape(1, 1, 16, 16)
PHOTO = np.random.default_rng(0).integers(0, 256, (2, 3, 5, 4), dtype=np.uint8)


@pytest.mark.parametrize("make", [lambda a: a, torch.from_numpy], ids=["numpy", "torch"])
def test_eight_bit_images_are_taken_as_they_are(make):
    pixels = as_pixels(make(PHOTO))
    assert pixels.dtype == np.uint8
    np.testing.assert_array_equal(pixels, PHOTO)


def test_single_image_becomes_a_batch_of_one():
    np.testing.assert_array_equal(as_pixels(PHOTO[1]), PHOTO[1:])


def test_pixels_of_a_view_lie_in_one_piece():
    pixels = as_pixels(PHOTO[::-1, :, ::2].transpose(0, 1, 3, 2))
    assert pixels.flags["C_CONTIGUOUS"]
    np.testing.assert_array_equal(pixels, PHOTO[::-1, :, ::2].transpose(0, 1, 3, 2))


@pytest.mark.parametrize(
    "as_float",
    [
        pytest.param(lambda k: k.astype(np.float32) / 255, id="numpy float32"),
        pytest.param(lambda k: k / 255, id="numpy float64"),
        pytest.param(lambda k: (k / 255).astype(np.float16), id="numpy float16"),
        pytest.param(lambda k: k.astype(np.float32) * np.float32(1 / 255), id="multiplied by 1/255"),
        pytest.param(lambda k: torch.from_numpy(k) / 255, id="torch float32"),
        pytest.param(lambda k: torch.from_numpy(k).double() / 255, id="torch float64"),
        pytest.param(lambda k: (torch.from_numpy(k) / 255).half(), id="torch float16"),
        pytest.param(lambda k: torch.from_numpy(k).half() / 255, id="divided in float16"),
        pytest.param(lambda k: (torch.from_numpy(k) / 255).requires_grad_(), id="a tensor with gradients"),
    ],
)
@pytest.mark.parametrize("original", [ALL_LEVELS, PHOTO], ids=["all grey levels", "a photo"])
def test_float_image_of_grey_levels_is_its_eight_bit_original_without_a_warning(as_float, original):
    np.testing.assert_array_equal(as_pixels(as_float(original)), original)


@pytest.mark.parametrize("levels", [0.06, 0.13, 0.2, 0.24])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_off_the_grid_is_not_rounded_in_silence(dtype, levels):
    """A quarter of a level in every pixel of a photo is a distance of 0.05: the centre moved, and that is said."""
    grey = torch.full((3, 8, 8), 40.0) + levels
    with pytest.warns(InputQuantized, match="rounded to the nearest one"):
        np.testing.assert_array_equal(as_pixels((grey / 255).to(dtype)), np.full((1, 3, 8, 8), 40))


def test_numpy_half_precision_off_the_grid_is_not_rounded_in_silence():
    with pytest.warns(InputQuantized):
        as_pixels((np.full((1, 4, 4), 200.2) / 255).astype(np.float16))


def test_bfloat16_image_is_its_eight_bit_original_but_cannot_be_told_from_others():
    """Eight bits of mantissa keep the grey levels apart, if only just: up to half a level lies between."""
    with pytest.warns(InputQuantized):
        np.testing.assert_array_equal(as_pixels((torch.from_numpy(ALL_LEVELS) / 255).bfloat16()), ALL_LEVELS)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_image_off_the_grid_is_centred_at_the_nearest_one_with_a_warning(dtype):
    image = (PHOTO / 255).astype(dtype)
    image[1, 0, 0, 0] = 100.3 / 255
    image[1, 2, 4, 3] = 7.6 / 255
    with pytest.warns(InputQuantized, match="rounded to the nearest one, at L2 distance up to 0.0020") as caught:
        pixels = as_pixels(image)
    assert len(caught) == 1
    expected = PHOTO.copy()
    expected[1, 0, 0, 0], expected[1, 2, 4, 3] = 100, 8
    np.testing.assert_array_equal(pixels, expected)


def test_distance_in_the_warning_is_the_largest_of_any_image():
    off = np.array([0.1, 0.4, 0.2]) / 255  # a shift of every pixel, image by image
    images = np.full((3, 1, 2, 2), 50 / 255) + off[:, None, None, None]
    with pytest.warns(InputQuantized, match=f"{np.sqrt(4) * 0.4 / 255:.4f}"):
        as_pixels(images)


@pytest.mark.parametrize(
    ("image", "message"),
    [
        pytest.param(np.array([[[0.5, np.nan]]]), "image 0 has NaN or infinite", id="not a number"),
        pytest.param(np.array([[[0.5, np.inf]]]), "image 0 has NaN or infinite", id="infinity"),
        pytest.param(np.array([[[[0.5]]], [[[0.1]]], [[[-np.inf]]]]), "image 2 has NaN", id="infinity in the third"),
        pytest.param(PHOTO.astype(np.float32), "from 0 to 248; divide by 255", id="floats from 0 to 255"),
        pytest.param(np.array([[[0.0, 2.0]]]), "from 0 to 2; divide by 255", id="floats of few grey levels"),
        pytest.param(PHOTO / 127.5 - 1, "from -1 to 0.945098[0-9]*; .*before normalisation", id="pixels from -1 to 1"),
        pytest.param((PHOTO / 255 - 0.485) / 0.229, "before normalisation, which belongs in the", id="normalised"),
        pytest.param(np.array([[[-1e-6, 0.5]]]), r"from -1e-06 to 0.5; clip to", id="a pixel just below 0"),
        pytest.param(np.array([[[1 + 1e-6, 0.5]]]), "to 1.000001; clip to", id="a pixel just above 1"),
        pytest.param(np.array([[[300.0, 0.5]]]), "from 0.5 to 300", id="a pixel beyond all scales"),
        pytest.param(PHOTO.astype(np.int64), "must be uint8, or float in .*; got int64", id="wide integers"),
        pytest.param(PHOTO.astype(np.int8), "got int8", id="signed bytes"),
        pytest.param(PHOTO.astype(bool), "got bool", id="bits"),
        pytest.param(PHOTO.astype(complex), "got complex128", id="complex numbers"),
        pytest.param(np.array([[["a"]]]), "got <U1", id="letters"),
        pytest.param(torch.from_numpy(PHOTO).int(), "got int32", id="wide integers of torch"),
        pytest.param(PHOTO[0, 0], r"got shape \(5, 4\)", id="no channels"),
        pytest.param(PHOTO[None], r"got shape \(1, 2, 3, 5, 4\)", id="a dimension too many"),
        pytest.param(torch.tensor(0.5), r"got shape \(\)", id="a single pixel"),
        pytest.param(PHOTO[:0], r"got shape \(0, 3, 5, 4\)", id="an empty batch"),
        pytest.param(torch.zeros(0, 3, 5, 4), r"got shape \(0, 3, 5, 4\)", id="an empty batch of torch"),
        pytest.param(PHOTO[:, :, :0], r"got shape \(2, 3, 0, 4\)", id="images without pixels"),
        pytest.param([[[0.5]]], "list", id="a list"),
        pytest.param(None, "NoneType", id="nothing"),
        pytest.param("cat.png", "str", id="a file name"),
    ],
)
def test_thing_that_is_not_an_image_is_refused(image, message):
    with pytest.raises(BadImage, match=message):
        as_pixels(image)


def test_zero_and_one_are_the_ends_of_the_range():
    np.testing.assert_array_equal(as_pixels(np.array([[[0.0, 1.0, -0.0]]])), [[[[0, 255, 0]]]])


# Ids by content


def test_equal_images_have_equal_ids_wherever_they_lie():
    assert content_id(PHOTO[1]) == content_id(as_pixels(PHOTO[1] / 255)[0])
    assert content_id(PHOTO[1]) == content_id(PHOTO[::-1][0])


def test_different_images_have_different_ids():
    other = PHOTO[0].copy()
    other[0, 0, 0] ^= 1
    assert len({content_id(i) for i in (*PHOTO, other, PHOTO[0].reshape(5, 3, 4), PHOTO[0].T)}) == 5
