"""Images as dualrs keeps them: 8-bit, channels first. Whatever is not one is refused, or rounded with a warning."""

import hashlib
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualrs.errors import BadImage, InputQuantized

if TYPE_CHECKING:
    from torch import Tensor

GREY = ("1", "L", "LA")  # modes of Pillow
LEVELS = 255  # grey levels per unit of pixel value

Pixels = NDArray[np.uint8]  # (inputs, channels, height, width), or one image without the first


def is_picture(image: object) -> bool:
    """Whether it is an image of Pillow, which is not imported for that."""
    return hasattr(image, "getbands") and hasattr(image, "convert")


def picture_pixels(picture: Any, name: str, *, grey: bool | None = None) -> Pixels:
    """Pixels of an image of Pillow, (1 or 3, height, width): grey ones have one channel, unless ``grey`` says it."""
    if picture.mode.startswith(("I", "F")):
        raise BadImage(f"the image {name} has more than 8 bits a channel ({picture.mode}); save it with 8")
    grey = picture.mode in GREY if grey is None else grey
    array = np.asarray(picture.convert("L" if grey else "RGB"))
    return np.ascontiguousarray(array[None] if grey else array.transpose(2, 0, 1))


def as_pixels(images: Any) -> Pixels:
    """Turn one image or a batch into 8-bit pixels of shape (inputs, channels, h, w).

    An image is a tensor or an array, uint8 or float in [0, 1], or one of Pillow.
    """
    if is_picture(images):
        return picture_pixels(images, "given")[None]
    if not hasattr(images, "dtype"):
        raise BadImage(f"expected a tensor or an array of images, got {type(images).__name__}")
    array = np.asarray(images if isinstance(images, np.ndarray) else _from_torch(images))
    if array.ndim == 3:
        array = array[None]
    if array.ndim != 4 or 0 in array.shape:
        raise BadImage(f"expected an image (channels, height, width) or a batch of them, got shape {array.shape}")
    if array.dtype == np.uint8:
        return np.ascontiguousarray(array)
    if not np.issubdtype(array.dtype, np.floating):
        raise BadImage(f"images must be uint8, or float in [0, 1]; got {array.dtype}")
    _check_range(array)
    scaled = array.astype(np.float64) * LEVELS
    pixels = np.rint(scaled)
    off_grid = np.abs(scaled - pixels)
    # Half precision has one number nearest to each grey level and others between; bfloat16 has hardly any between, so
    # that an 8-bit image cannot be told from another.
    is_half = str(images.dtype).removeprefix("torch.") == "float16"
    if ((pixels / LEVELS).astype(np.float16) != array).any() if is_half else off_grid.max() > 1e-3:
        distance = np.sqrt((off_grid**2).sum(axis=(1, 2, 3))).max() / LEVELS
        warnings.warn(
            InputQuantized(
                "a float image is not an 8-bit image; it was rounded to the nearest one, at L2 distance up to "
                f"{distance:.4f}, and certificates are centred there"
            ),
            stacklevel=3,
        )
    return np.ascontiguousarray(pixels.astype(np.uint8))


def content_id(image: Pixels) -> str:
    """An id for an image that has none: its own content, so that noise does not depend on its place in a batch."""
    return hashlib.blake2b(repr(image.shape).encode() + image.tobytes(), digest_size=16).hexdigest()


def _from_torch(images: "Tensor") -> NDArray[np.generic]:
    tensor = images.detach().cpu()
    return np.asarray((tensor.float() if tensor.is_floating_point() and tensor.itemsize == 2 else tensor).numpy())


def _check_range(array: NDArray[np.floating]) -> None:
    bad = ~np.isfinite(array).all(axis=(1, 2, 3))
    if bad.any():
        raise BadImage(f"image {int(np.flatnonzero(bad)[0])} has NaN or infinite pixels")
    low, high = float(array.min()), float(array.max())
    if low < 0 or high > 1:
        advice = (
            "clip to [0, 1]"
            if max(-low, high - 1) < 1 / LEVELS  # as resizing overshoots
            else "divide by 255"
            if low >= 0 and high <= LEVELS
            else "give the image as it was before normalisation, which belongs in the module"
        )
        raise BadImage(f"pixels must lie in [0, 1], found values from {low:.9g} to {high:.9g}; {advice}")
