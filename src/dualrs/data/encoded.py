"""Images that lie encoded (JPEG, PNG) in a folder or a table, and are decoded when they are asked for.

Enters: encoded bytes, one image at a time. Leaves: 8-bit pixels, RGB, or grey where all images are, resized and cropped
as the card states. This happens before noise is added, so radii are in pixels of the image that leaves here.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO

from dualrs.data.images import GREY, Pixels, picture_pixels
from dualrs.errors import BadImage, BadSetting


@dataclass(frozen=True)
class Preprocessing:
    """Resize the shorter side to ``resize`` pixels, then cut out the central square with sides of ``crop`` pixels.

    Resizing is Pillow's bicubic, which smooths when it shrinks; the longer side is rounded down. An odd margin of the
    crop is divided as torchvision divides it. Orientation tags are ignored and transparency is dropped, as the field
    does. None leaves a step out.
    """

    resize: int | None = None
    crop: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("resize", self.resize), ("crop", self.crop)):
            if value is not None and value < 1:
                raise BadSetting(f"{name} must be a positive number of pixels, got {value}")
        if self.resize is not None and self.crop is not None and self.crop > self.resize:
            raise BadSetting(f"a crop of {self.crop} does not fit into a shorter side of {self.resize} pixels")

    def __str__(self) -> str:
        steps = (("resize", self.resize), ("crop", self.crop))
        return "".join(f", {name} {pixels}" for name, pixels in steps if pixels is not None)

    def decode(self, content: bytes, name: str, *, grey: bool = False) -> Pixels:
        """Pixels of an encoded image, shape (1 or 3, height, width); ``name`` is for complaints."""
        from PIL import Image, UnidentifiedImageError

        try:
            with Image.open(BytesIO(content)) as opened:
                mode, image = opened.mode, opened.convert("L" if grey else "RGB")
        except Exception as error:  # whatever a decoder makes of a damaged file
            reason = "it is of no known format" if isinstance(error, UnidentifiedImageError) else error
            raise BadImage(f"cannot decode the image {name}: {reason}; restore it or take it out") from error
        if mode.startswith(("I", "F")):
            raise BadImage(f"the image {name} has more than 8 bits a channel ({mode}); save it with 8")
        short = min(image.size)
        if self.resize is not None and self.resize != short:
            width, height = (self.resize * side // short for side in image.size)
            image = image.resize((width, height), Image.Resampling.BICUBIC)
        if self.crop is not None:
            if self.crop > min(image.size):
                raise BadImage(
                    f"the image {name} is {image.width} x {image.height}, too small for a crop of {self.crop}"
                )
            left, top = (round((side - self.crop) / 2) for side in image.size)
            image = image.crop((left, top, left + self.crop, top + self.crop))
        return picture_pixels(image, name, grey=grey)


class EncodedImages(ABC):
    """A dataset of encoded images; a kind of it says where they lie by giving the bytes of each."""

    def __init__(
        self,
        name: str,
        ids: Sequence[str],
        labels: Sequence[int] | None,
        classes: Sequence[str],
        preprocessing: Preprocessing,
    ) -> None:
        self.name = f"{name}{preprocessing}"  # in the header of a ledger, and above its tables
        self.ids = tuple(ids)
        self.labels = None if labels is None else tuple(labels)
        self.classes = tuple(classes)
        self.preprocessing = preprocessing

    @abstractmethod
    def content(self, index: int) -> bytes:
        """The bytes of one encoded image."""

    def __len__(self) -> int:
        return len(self.ids)

    def image(self, index: int) -> Pixels:
        """One image, shape (3, height, width), or (1, height, width) where all are grey."""
        pixels = self.preprocessing.decode(self.content(index), self.ids[index], grey=self._grey)
        if self.preprocessing.crop is None and pixels.shape != self._shape:
            raise BadImage(
                f"the image {self.ids[index]} has shape {pixels.shape}, but {self.ids[0]} has {self._shape}: a network "
                "takes one; give crop (and resize)"
            )
        return pixels

    @cached_property
    def _shape(self) -> tuple[int, ...]:
        return self.preprocessing.decode(self.content(0), self.ids[0], grey=self._grey).shape

    @cached_property
    def _grey(self) -> bool:
        """Whether all images are grey; of a mixture, all are taken as RGB. The first in colour ends the search."""
        from PIL import Image

        for index in range(len(self.ids)):
            try:
                with Image.open(BytesIO(self.content(index))) as opened:
                    if opened.mode not in GREY:
                        return False
            except (
                Exception
            ):  # one that cannot be read says nothing of the others, and is complained of when it is asked
                continue
        return True

    @property
    def card(self) -> dict[str, str]:
        """What was evaluated, in words: how many images, of how many classes, prepared how."""
        resize, crop = self.preprocessing.resize, self.preprocessing.crop
        return {
            "images": f"{len(self.ids):,}",
            "classes": f"{len(self.classes):,}" if self.labels is not None else "no labels",
            "resize": "none" if resize is None else f"shorter side to {resize} pixels, bicubic",
            "crop": "none" if crop is None else f"central {crop} x {crop} pixels",
            "colours": f"{'grey' if self._grey else 'RGB'}, 8 bits a channel",
        }

    @cached_property
    def fingerprint(self) -> str:
        """Hash of ids, labels, preprocessing and of the encoded bytes.

        The bytes and not the pixels, because reading is affordable and decoding is not: for the 50,000 images of
        ImageNet's validation set (6.7 GB) some 15 seconds from a fast disk against some 20 minutes.
        """
        digest = hashlib.blake2b(digest_size=16)
        digest.update(repr((self.ids, self.labels, self.preprocessing)).encode())
        for index in range(len(self.ids)):
            digest.update(hashlib.blake2b(self.content(index), digest_size=16).digest())
        return digest.hexdigest()
