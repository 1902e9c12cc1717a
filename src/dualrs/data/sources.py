"""References to datasets that are not Python objects: CIFAR-10, folders of images, datasets of the hub.

Enters: a reference. Leaves: the dataset; or the same reference with its path made absolute.
"""

from pathlib import Path

from dualrs.data.dataset import Dataset
from dualrs.errors import BadRecipe, BadSetting, did_you_mean
from dualrs.references import anchored_object

_CIFAR10 = ("cifar10:train", "cifar10:test", "cifar10:subset")
FORMS = "cifar10:train, cifar10:test, cifar10:subset, folder:PATH or hub:ID-OR-FOLDER:SPLIT"


def anchored_dataset(reference: str, folder: Path) -> str:
    """The same reference with its path made absolute; an id of the hub is a path if there is such a folder."""
    scheme, _, rest = reference.partition(":")
    source, _, split = rest.rpartition(":")
    if scheme == "folder" and rest:
        return f"folder:{folder / Path(rest).expanduser()}"
    if scheme == "hub" and source and (place := folder / Path(source).expanduser()).is_dir():
        return f"hub:{place}:{split}"
    return anchored_object(reference, folder)


def nearest_dataset(reference: str, folder: Path | None = None) -> str:
    """What was perhaps meant by a reference that names nothing, to end a sentence with."""
    rest = reference.partition(":")[2]
    if (folder or Path.cwd()).joinpath(reference).is_dir():
        return f"; did you mean folder:{reference}?"
    return did_you_mean(reference, [*_CIFAR10, *(f"{known}:{rest}" for known in ("cifar10", "folder", "hub") if rest)])


def open_dataset(
    reference: str, folder: Path | None = None, resize: int | None = None, crop: int | None = None
) -> Dataset | None:
    """The dataset that a reference of one of `FORMS` names, paths from ``folder`` on; None if it is of another form."""
    scheme, colon, rest = anchored_dataset(reference, folder or Path.cwd()).partition(":")
    match scheme + colon:
        case "cifar10:":
            return _cifar10(rest, resize, crop)
        case "folder:":
            return _folder(rest, resize, crop)
        case "hub:":
            return _hub(rest, resize, crop)
    return None


def _cifar10(split: str, resize: int | None, crop: int | None) -> Dataset:
    from dualrs.data import cifar10

    if resize is not None or crop is not None:
        raise BadSetting("the images of CIFAR-10 are taken as they are, 32 x 32; leave out resize and crop")
    match split:
        case "train" | "test":
            return cifar10.load(split)
        case "subset":
            return cifar10.subset()
        case _:
            near = did_you_mean(f"cifar10:{split}", _CIFAR10)
            raise BadRecipe(f"there is no cifar10:{split}; write cifar10:train, cifar10:test or cifar10:subset{near}")


def _folder(path: str, resize: int | None, crop: int | None) -> Dataset:
    from dualrs.data.folders import ImageFolder

    if not path:
        raise BadRecipe("say which folder: folder:PATH")
    return ImageFolder(Path(path), resize, crop)


def _hub(rest: str, resize: int | None, crop: int | None) -> Dataset:
    from dualrs.data.hub_data import HubDataset

    source, _, split = rest.rpartition(":")
    if not source or not split:
        raise BadRecipe(f"hub:{rest} lacks the dataset or the split; write hub:ID-OR-FOLDER:SPLIT")
    return HubDataset(source, split, resize, crop)
