"""Dataset: what jobs run over. Indexed 8-bit images with stable ids; labels ride along for reports and training."""

import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from dualrs.data.images import Pixels, as_pixels
from dualrs.errors import BadImage

if TYPE_CHECKING:
    from torch import Tensor


class Dataset(Protocol):
    """Images by index. An id is stable: it addresses the noise of its image, whatever the order or the subset."""

    @property
    def name(self) -> str:
        """What the dataset is called in headers and tables."""

    @property
    def ids(self) -> Sequence[str]:
        """One id per image, all different."""

    @property
    def labels(self) -> Sequence[int] | None:
        """The true class of each image, if known."""

    @property
    def fingerprint(self) -> str:
        """Hash of everything above and of the pixels."""

    def image(self, index: int) -> Pixels:
        """One image, shape (channels, height, width)."""


class ArrayDataset:
    """A dataset that lies in memory: images (inputs, channels, height, width), uint8 or float in [0, 1]."""

    def __init__(
        self,
        images: "Tensor | NDArray[np.generic]",
        labels: "Tensor | NDArray[np.generic] | Sequence[int] | None" = None,
        *,
        ids: Sequence[str | int] | None = None,
        name: str = "array",
    ) -> None:
        self.name = name
        self.pixels = as_pixels(images)
        count = len(self.pixels)
        self.ids = tuple(str(i) for i in (range(count) if ids is None else ids))
        self.labels = None if labels is None else tuple(int(v) for v in labels)
        if len(self.ids) != count or len(set(self.ids)) != count:
            raise BadImage(f"{count} images need {count} different ids, got {len(set(self.ids))}")
        if self.labels is not None and len(self.labels) != count:
            raise BadImage(f"{count} images need {count} labels, got {len(self.labels)}")

    def __len__(self) -> int:
        return len(self.ids)

    def image(self, index: int) -> Pixels:
        """One image, shape (channels, height, width)."""
        return np.asarray(self.pixels[index])

    @cached_property
    def fingerprint(self) -> str:
        """Hash of ids, labels and pixels."""
        digest = hashlib.blake2b(digest_size=16)
        digest.update(repr((self.ids, self.labels, self.pixels.shape)).encode())
        digest.update(self.pixels.data)  # as_pixels made them contiguous
        return digest.hexdigest()


def as_dataset(source: Any, name: str) -> Dataset:
    """Take a dataset as it is, or images with or without labels as arrays: ``images`` or ``(images, labels)``."""
    if all(hasattr(source, a) for a in ("name", "ids", "labels", "fingerprint", "image")):
        return cast(Dataset, source)
    images, labels = source if isinstance(source, tuple) and len(source) == 2 else (source, None)
    if not hasattr(images, "dtype"):
        raise BadImage(
            f"{name} is a {type(source).__name__}; expected a dualrs dataset, an array of images, or (images, labels)"
        )
    return ArrayDataset(images, labels, name=name)
