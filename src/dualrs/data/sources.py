"""References to datasets that are not Python objects: CIFAR-10, folders of images, datasets of the hub."""

from collections.abc import Callable
from pathlib import Path

from dualrs.data.dataset import Dataset
from dualrs.errors import BadRecipe, BadSetting

FORMS = "cifar10:train, cifar10:test, cifar10:subset, folder:PATH or hub:ID-OR-FOLDER:SPLIT"


def open_dataset(
    reference: str, folder: Path | None = None, resize: int | None = None, crop: int | None = None
) -> Dataset | None:
    """The dataset that a reference of one of `FORMS` names; None if it is of another form.

    Relative paths start at ``folder``. An id of the hub is taken as a folder if there is one of that name.
    """
    scheme, colon, rest = reference.partition(":")
    if not colon or scheme not in _SCHEMES:
        return None
    return _SCHEMES[scheme](rest, folder or Path.cwd(), resize, crop)


def _cifar10(split: str, folder: Path, resize: int | None, crop: int | None) -> Dataset:
    from dualrs.data import cifar10

    if resize is not None or crop is not None:
        raise BadSetting("the images of CIFAR-10 are taken as they are, 32 x 32; leave out resize and crop")
    match split:
        case "train" | "test":
            return cifar10.load(split)
        case "subset":
            return cifar10.subset()
        case _:
            raise BadRecipe(f"there is no cifar10:{split}; write cifar10:train, cifar10:test or cifar10:subset")


def _folder(path: str, folder: Path, resize: int | None, crop: int | None) -> Dataset:
    from dualrs.data.folders import ImageFolder

    if not path:
        raise BadRecipe("say which folder: folder:PATH")
    return ImageFolder(folder / Path(path).expanduser(), resize, crop)


def _hub(rest: str, folder: Path, resize: int | None, crop: int | None) -> Dataset:
    from dualrs.data.hub_data import HubDataset

    source, _, split = rest.rpartition(":")
    if not source or not split:
        raise BadRecipe(f"hub:{rest} lacks the dataset or the split; write hub:ID-OR-FOLDER:SPLIT")
    here = folder / Path(source).expanduser()
    return HubDataset(here if here.is_dir() else source, split, resize, crop)


_SCHEMES: dict[str, Callable[[str, Path, int | None, int | None], Dataset]] = {
    "cifar10": _cifar10,
    "folder": _folder,
    "hub": _hub,
}
