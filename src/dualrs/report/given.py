"""Given: what a word of the command line names.

Enters: FILE, NAME=FILE, NAME@SIGMA=FILE or @SIGMA=FILE, where FILE may be SELECTOR,CERTIFIER or
SELECTOR,CERTIFIER,CORE. Leaves: paths, a name and a sigma.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dualrs.errors import BadSetting

_SUFFIXES = (".ledger", ".tsv", ".txt", ".csv")  # others are parts of a name: sigma_0.25


@dataclass(frozen=True)
class Given:
    """A ledger, a table of another project, at one sigma if it has one, or the logs whose radii one method has.

    ``name`` is empty where none was given, and ``sigma`` None.
    """

    paths: tuple[Path, ...]
    name: str = ""
    sigma: float | None = None

    @classmethod
    def parse(cls, word: str) -> "Given":
        """What a word names. A file that is called so goes before the grammar."""
        if "=" not in word or Path(word).exists():
            return cls(_paths(word))
        called, _, files = word.partition("=")
        name, at, sigma = called.rpartition("@")
        return cls(_paths(files), name, _sigma(sigma, word)) if at else cls(_paths(files), called)

    @property
    def path(self) -> Path:
        """Of the file, or of the first of several."""
        return self.paths[0]


def names_of(given: Sequence[Given]) -> list[str]:
    """The name of each, or the stem of its file, or the whole path where two stems are the same."""
    stems = [one.path.stem if one.path.suffix in _SUFFIXES else one.path.name for one in given]
    known = [one.name or stem for one, stem in zip(given, stems, strict=True)]
    return [one.name or (str(one.path) if known.count(own) > 1 else own) for one, own in zip(given, known, strict=True)]


def _paths(text: str) -> tuple[Path, ...]:
    return (Path(text),) if Path(text).exists() else tuple(map(Path, text.split(",")))


def _sigma(text: str, word: str) -> float:
    try:
        sigma = float(text)
    except ValueError:
        sigma = math.nan
    if not 0 < sigma < math.inf:
        raise BadSetting(f"{word}: after @ stands a sigma above 0, as in NAME@0.5=FILE; got {text!r}")
    return sigma
