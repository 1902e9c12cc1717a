"""The images behind a ledger, where they can be opened: for the page, and for `why`."""

from typing import TYPE_CHECKING

from dualrs.errors import BadData, DualrsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualrs.config import DataSection
    from dualrs.data.dataset import Dataset
    from dualrs.storage import Header

_CIFAR10 = "cifar10/"  # how the names of its splits begin in headers


def open_data(header: "Header", given: "DataSection | None") -> "tuple[Dataset | None, str]":
    """The dataset of a run, or None and a sentence that says why not.

    What is given must be the run's own data. If nothing is, the splits of CIFAR-10 are found by their names.
    """
    if given is not None:
        from dualrs.data.classes import numbered_as
        from dualrs.pipeline.build import build_data

        dataset = numbered_as(build_data(given), header.class_names)
        if dataset.fingerprint != header.dataset_fingerprint:
            raise BadData(
                f"{given.source} is not the data of the run, {header.dataset}: images, ids or labels differ; give what "
                "the run was given, or nothing for a report without images"
            )
        return dataset, ""
    if not header.dataset.startswith(_CIFAR10):
        return None, f"No images: say where {header.dataset} is with --data."
    from dualrs.data.sources import open_dataset

    try:
        found = open_dataset(header.dataset.replace("/", ":", 1))
    except DualrsError as error:
        return None, f"No images: {error}."
    if found is None or found.fingerprint != header.dataset_fingerprint:
        return None, f"No images: {header.dataset} on this machine is not the data of the run."
    return found, ""


def class_names(header: "Header", dataset: "Dataset | None") -> "Sequence[str] | None":
    """What the classes of a run are called, if it was recorded, or the dataset tells."""
    if header.class_names:
        return header.class_names
    if header.dataset.startswith(_CIFAR10):
        from dualrs.data.cifar10 import CLASSES

        return CLASSES
    names = getattr(dataset, "classes", None)
    return names if names is not None and len(names) == header.scheme.classes else None
