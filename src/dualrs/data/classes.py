"""Classes by name: the labels of a dataset, numbered as a network numbers its classes.

Enters: a dataset, and what a network calls its classes, if it says. Leaves: the dataset with that network's numbers. A
dataset whose classes do not fit the network is refused: its accuracy would be that of other classes.
"""

import re
import warnings
from collections.abc import Sequence

from dualrs.data.dataset import Dataset, Relabelled, class_numbers
from dualrs.errors import BadData, ClassesByNumber

_NAMED = 3  # classes that a message names


def class_names(dataset: Dataset) -> tuple[str, ...]:
    """What a dataset calls its classes, in the order of their numbers; empty if it does not say."""
    return tuple(getattr(dataset, "classes", ()))


def numbered_as(dataset: Dataset, classes: Sequence[str]) -> Dataset:
    """The dataset with labels that are numbers among ``classes``, found by name; itself where that changes nothing.

    Without names on both sides, numbers are all there is. Names that are not all among ``classes`` leave the numbers as
    they are, with a warning, where as many classes stand on both sides and no name has two numbers.
    """
    own = class_names(dataset)
    ours, theirs = [_plain(name) for name in own], [_plain(name) for name in classes]
    if dataset.labels is None or not ours or not theirs or ours == theirs:
        return dataset
    place = {name: number for number, name in enumerate(theirs)}
    if set(ours) <= set(theirs) and len(set(ours)) == len(ours) and len(place) == len(theirs):
        return Relabelled(dataset, [place[ours[label]] for label in dataset.labels], classes=classes)
    moved = [name for number, name in enumerate(ours) if name in place and theirs[number : number + 1] != [name]]
    if moved or len(ours) != len(theirs):
        unknown = [name for name, plain in zip(own, ours, strict=True) if plain not in place]
        raise BadData(
            f"the classes of {dataset.name} ({_some(own)}) do not fit those of the network ({_some(classes)}): "
            + (f"it knows no {_some(unknown)}" if unknown else "a name stands twice")
            + "; name the folders as the network names its classes, or give the data that it was trained for"
        )
    warnings.warn(
        ClassesByNumber(
            f"the network calls its {len(theirs)} classes {_some(classes)}, and {dataset.name} calls them "
            f"{_some(own)}: they are taken for the same by their numbers"
        ),
        stacklevel=2,
    )
    return dataset


def demand_fit(dataset: Dataset, answers: int) -> None:
    """Refuse labels that a network with so many classes cannot answer, and data of another number of classes."""
    if dataset.labels is None:
        return
    labels = class_numbers(dataset.labels, dataset.name)
    highest = max(range(len(labels)), key=labels.__getitem__)
    if labels[highest] >= answers:
        raise BadData(
            f"{dataset.name} has the label {labels[highest]} (input {dataset.ids[highest]}), and the network has "
            f"{answers} classes, numbered from 0: give the data, or the network, that belong together"
        )
    if (own := class_names(dataset)) and len(own) != answers:
        raise BadData(
            f"{dataset.name} has {len(own)} classes ({_some(own)}), and the network has {answers}, which it does not "
            "name: their numbers cannot be told. Give a folder for each of its classes, in its order, empty ones too"
        )


def _plain(name: str) -> str:
    """A name without what people write differently: capitals, and what stands for a space."""
    return re.sub(r"[\s_-]+", " ", name).strip().casefold()


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
