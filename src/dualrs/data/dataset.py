"""Dataset: what jobs run over. Indexed 8-bit images with stable ids; labels ride along for reports and training."""

import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from dualrs.data.images import Pixels, as_pixels, is_picture
from dualrs.errors import BadData, BadImage

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
    """A dataset that lies in memory: images (inputs, channels, height, width), uint8 or float in [0, 1].

    ``classes`` are the names of its classes, if they have any.
    """

    def __init__(
        self,
        images: "Tensor | NDArray[np.generic]",
        labels: "Tensor | NDArray[np.generic] | Sequence[int] | None" = None,
        *,
        ids: Sequence[str | int] | None = None,
        name: str = "array",
        classes: Sequence[str] = (),
    ) -> None:
        self.name, self.classes = name, tuple(classes)
        self.pixels = as_pixels(images)
        count = len(self.pixels)
        self.ids = tuple(str(i) for i in (range(count) if ids is None else ids))
        self.labels = None if labels is None else class_numbers(labels, name)
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


def class_numbers(labels: Any, name: str) -> tuple[int, ...]:
    """Labels as whole numbers from 0 on; ``name`` is that of their dataset, for complaints."""
    array = np.asarray(labels.cpu() if hasattr(labels, "cpu") else labels)
    if array.ndim != 1:
        one_hot = "; of one-hot labels, give labels.argmax(1)" if array.ndim == 2 else ""
        raise BadData(f"{name} has labels of shape {array.shape}, not one class number for each image{one_hot}")
    try:
        numbers = array.astype(np.float64)
        odd = (numbers != np.floor(numbers)) | (numbers < 0)
    except (TypeError, ValueError):  # texts, None
        odd = np.array([not isinstance(label, int | np.integer) for label in labels])
    if odd.any():
        first = int(odd.argmax())
        raise BadData(
            f"{name} has the label {labels[first]!r} at {first}: labels are class numbers, 0, 1, 2, ...; number the "
            "classes in the order of the network's logits, and leave out images whose class is not known"
        )
    return tuple(int(number) for number in array)


class Relabelled:
    """A dataset with other labels: all of its images, or those at ``places``, read when they are asked for."""

    def __init__(
        self,
        dataset: Dataset,
        labels: Sequence[int],
        *,
        classes: Sequence[str] = (),
        places: Sequence[int] | None = None,
        name: str = "",
    ) -> None:
        self._dataset, self._places = dataset, places
        self.name, self.labels, self.classes = name or dataset.name, tuple(labels), tuple(classes)
        self.ids = dataset.ids if places is None else tuple(dataset.ids[i] for i in places)

    def image(self, index: int) -> Pixels:
        """One image, shape (channels, height, width)."""
        return self._dataset.image(index if self._places is None else self._places[index])

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the dataset, of which of its images these are if not all, and of their labels."""
        some = () if self._places is None else (self.ids,)
        said = repr((self._dataset.fingerprint, *some, self.labels))
        return hashlib.blake2b(said.encode(), digest_size=16).hexdigest()


def as_dataset(source: Any, name: str) -> Dataset:
    """Take a dataset as it is, or images with or without labels, into memory.

    ``images`` or ``(images, labels)`` as arrays; a list of images, or of pairs of image and label; a dataset of torch,
    or its DataLoader.
    """
    if all(hasattr(source, a) for a in ("name", "ids", "labels", "fingerprint", "image")):
        return cast(Dataset, source)
    images, labels = source if isinstance(source, tuple) and len(source) == 2 else (source, None)
    if hasattr(images, "dtype") or is_picture(images):
        return ArrayDataset(images, labels, name=name)
    found = _collected(images)
    if found is None:
        raise BadImage(
            f"{name} is a {type(source).__name__}; expected a dualrs dataset, an array or a list of images, (images, "
            "labels), or a dataset of torch or its DataLoader"
        )
    pixels, told = found
    shapes = list(dict.fromkeys(some.shape[1:] for some in pixels))
    if len(shapes) != 1:
        what = f"images of shapes {shapes[0]} and {shapes[1]}: a network takes one" if shapes else "no images"
        raise BadImage(f"{name} has {what}")
    names = getattr(getattr(images, "dataset", images), "classes", ())
    classes = names if all(isinstance(n, str) for n in names) else ()
    return ArrayDataset(
        np.concatenate(pixels), (told or None) if labels is None else labels, name=name, classes=classes
    )


def _collected(source: Any) -> tuple[list[Pixels], list[Any]] | None:
    """Images, and labels if there are any, of a list, a dataset of torch or a loader of batches; None of all else."""
    indexed = hasattr(source, "__getitem__") and hasattr(source, "__len__")  # of torch; it need not know its end
    if isinstance(source, str | dict | tuple) or not (indexed or hasattr(source, "__iter__")):
        return None
    pixels: list[Pixels] = []
    labels: list[Any] = []
    for item in (source[i] for i in range(len(source))) if indexed else source:
        image, *told = item if isinstance(item, tuple | list) else (item,)
        if not hasattr(image, "dtype") and not is_picture(image):
            return None
        pixels.append(as_pixels(image))
        labels += np.atleast_1d(np.asarray(told[0])).tolist() if told else []
    return pixels, labels
