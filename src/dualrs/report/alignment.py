"""Alignment: the same inputs in the same order, whichever file they come from.

Enters: the methods of ledgers and of tables of other projects. Leaves: the same methods with their rows in one order,
or a refusal that names what differs.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dualrs.errors import BadTable
from dualrs.report.methods import Derived
from dualrs.storage.results import Results


@dataclass(frozen=True)
class File:
    """A file and its methods, all on the same inputs in the same order. ``reported``: it is a table without votes."""

    path: Path
    methods: dict[str, Derived]
    reported: bool

    @property
    def results(self) -> Results:
        """Of its first method."""
        return next(iter(self.methods.values())).results


def align(files: Sequence[File], notes: list[str]) -> Iterator[File]:
    """The files with their rows in the order of one of them; refuses other inputs and other labels.

    That one is the first ledger or, of tables alone, the first of the shortest.
    """
    chosen = min(range(len(files)), key=lambda k: (files[k].reported, len(files[k].results) * files[k].reported))
    how, keys = _keys(files, chosen, notes)
    first, wanted = files[chosen], keys[chosen]
    for file, own in zip(files, keys, strict=True):
        place = {key: row for row, key in enumerate(own)}
        lacks = [key for key in wanted if key not in place]
        more = place.keys() - set(wanted)
        if more and not lacks and file.reported:
            notes.append(
                f"{next(iter(file.methods))}: {len(more)} inputs are not in {first.path.name} and are left out"
            )
        elif lacks or more:
            parts = [f"{len(lacks)} of {first.path} it lacks (the first is {lacks[0]})"] if lacks else []
            parts += [f"{len(more)} are not in {first.path} (one is {min(more)})"] if more else []
            raise BadTable(
                f"{file.path} is about other inputs than {first.path}, {how}: {' and '.join(parts)}. Methods are "
                "compared on exactly the same inputs; give files that share them"
            )
        order = np.array([place[key] for key in wanted], dtype=np.int64)
        moved = {name: method.rows(order) for name, method in file.methods.items()}
        label = next(iter(moved.values())).results.label
        if (other := label != first.results.label).any():
            row = int(np.flatnonzero(other)[0])
            raise BadTable(
                f"{file.path} gives input {wanted[row]} the label {label[row]}, {first.path} the label "
                f"{first.results.label[row]}: these are other data, and {other.sum()} labels differ"
            )
        yield replace(file, methods=moved)


def _keys(files: Sequence[File], chosen: int, notes: list[str]) -> tuple[str, list[list[str]]]:
    """How inputs are told apart, in words, and the key of each input of each file.

    A table of another project gives its inputs numbers. In a ledger of some inputs of a dataset these are the positions
    or, if the dataset was a selection of a larger one, stand in the ids: test/00020. What leaves the fewest inputs of
    the chosen file without their like, and then the fewest with another label, is right.
    """
    results = [file.results for file in files]
    ids: list[list[str]] = [r.ids.tolist() for r in results]
    if not any(file.reported for file in files):
        return "by id", ids
    positions = [[str(place) for place in r.index] for r in results]
    numbers = [
        own if file.reported else _numbers(r.ids) for file, r, own in zip(files, results, positions, strict=True)
    ]
    ways = {"by id": ids, "by the number in its id": numbers, "by position": positions}
    how = min(ways, key=lambda way: _unlike(ways[way], results, chosen))
    if ways[how] is numbers and numbers != positions:
        notes.append("inputs are matched by the numbers in their ids, as positions are those in a selection")
    return how, ways[how]


def _numbers(ids: NDArray[np.str_]) -> list[str]:
    """The number at the end of each id; the id itself where there is none."""
    found = [re.search(r"[0-9]+$", name) for name in ids]
    return [str(int(number[0])) if number else str(name) for number, name in zip(found, ids, strict=True)]


def _unlike(keys: Sequence[Sequence[str]], results: Sequence[Results], chosen: int) -> tuple[int, int]:
    """How many inputs of the chosen file have no like in the others, by these keys, and how many another label."""
    lacking = others = 0
    for own, result in zip(keys, results, strict=True):
        label = dict(zip(own, result.label.tolist(), strict=True))
        lacking += len(own) - len(label)  # a key that stands twice tells nothing
        found = [(label.get(key), ours) for key, ours in zip(keys[chosen], results[chosen].label.tolist(), strict=True)]
        lacking += sum(theirs is None for theirs, _ in found)
        others += sum(theirs is not None and theirs != ours for theirs, ours in found)
    return lacking, others
