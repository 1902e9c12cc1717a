"""What an attack left standing, as a method beside those that it attacked.

Enters: a ledger and the file of a campaign against one of its methods. Leaves: results whose radii are the distances at
which inputs were really broken: upper bounds, where certificates are lower ones.
"""

from collections.abc import Container, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from dualrs.errors import BadSetting, BadTable
from dualrs.report.methods import Derived, methods
from dualrs.storage.attacks import FORMAT, Attacks, joined, read_attacks
from dualrs.storage.ledger import Ledger

_BEGINNING = f'{{"format":"{FORMAT.rpartition(" ")[0]}'.encode()


class Campaigns:
    """Files of attacks, each of which belongs to one of some ledgers."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths, self._used = paths, set[Path]()

    @classmethod
    def among(cls, paths: Sequence[Path]) -> "tuple[list[Path], Campaigns]":
        """Other files, and those that begin as one of `dualrs attack` does."""
        attacks = [path for path in paths if _begins(path)]
        return [path for path in paths if path not in attacks], cls(attacks)

    def against(self, ledger: Ledger) -> dict[Path, Attacks]:
        """The attacks on a run; files with parts of one campaign are joined, under the name of the first."""
        found = {path: read_attacks(path) for path in self.paths}
        own = {path: attacks for path, attacks in found.items() if attacks.settings["run"] == ledger.header.fingerprint}
        self._used |= own.keys()
        parts: dict[str, dict[Path, Attacks]] = {}
        for path, attacks in own.items():
            parts.setdefault(attacks.settings["method"], {})[path] = attacks
        return {next(iter(files)): joined(files) for files in parts.values()}

    def on(self, ledger: Ledger, inputs: Container[int] | None = None) -> dict[str, Derived]:
        """What the attacks on a run left standing, by name; of the inputs at these positions, or of all."""
        found = [left_standing(ledger, path, attacks, inputs) for path, attacks in self.against(ledger).items()]
        return {method.name: method for method in found}

    def demand_all_used(self) -> None:
        """Refuse an attack on none of the ledgers."""
        if other := [path for path in self.paths if path not in self._used]:
            raise BadSetting(f"{other[0]} is an attack on another run than those given; give its ledger beside it")


def _begins(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_BEGINNING)) == _BEGINNING
    except OSError:
        return False  # whoever reads it says why not


def left_standing(ledger: Ledger, path: Path, found: Attacks, inputs: Container[int] | None = None) -> Derived:
    """A method of a ledger, not broken by an attack, whose file is named in refusals.

    All certified inputs must have been searched or, where positions ``inputs`` are given, those there; the others are
    then left out. An input without a certificate counts as broken; one that was not broken, as far as was searched.
    """
    name = found.settings["method"]
    certified = methods(ledger, [name])[name].at(inputs)
    results, ids = certified.results, certified.results.ids.tolist()
    chosen = set(ids)
    rows = {row.id: row for row in found if row.id in chosen}
    left = [i for i, radius in zip(ids, results.radius, strict=True) if radius > 0 and i not in rows]
    nearby = sum(not row.searched for row in rows.values())
    if left or nearby:
        tried = f"it did not search beyond the radii of {nearby} inputs"
        what = f"{len(left)} certified inputs were not attacked yet" if left else tried
        raise BadTable(
            f"{path} does not tell how far the inputs of {ledger.path} stand: {what}; run the attack on all, or look "
            "at those alone that it was run on (--inputs)"
        )
    reach = [0.0 if i not in rows else row.searched if (row := rows[i]).upper is None else row.upper for i in ids]
    return Derived(
        f"{name} attacked",
        f"{certified.title}, not broken by attack",
        "none: an upper bound, which another attack may lower",
        False,
        replace(results, radius=np.array(reach), plain=None),
        None,
        np.zeros(0, dtype=np.int64),
    )
