"""The file of an attack: one line of JSON for the campaign, and one for each certificate that was attacked.

Lines are only ever added: where an input has several, the last one holds. A last line that was cut off is dropped when
the campaign is resumed.
"""

import json
import os
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc

from dualrs.certificates import ABSTAIN
from dualrs.errors import BadTable, ForeignLedger

FORMAT = "dualrs attack 1"
UNLIKELY = 0.001  # the chance of so many broken certificates below which something is wrong


@dataclass(frozen=True, eq=False)
class Attack:
    """What came of an attack on the certificate of one image.

    ``flipped`` is the class that a verdict finds inside the certified radius, `ABSTAIN` if none. ``upper`` is the
    distance of the nearest 8-bit image found that is answered with another class, ``answer``; None where the search
    found none up to ``searched``. ``change`` is that image minus the attacked one, in grey levels, and ``aim`` says
    which weakness led to it. ``forward`` and ``backward`` count the images that went through networks, and ``votes``
    those of the smoothed model.
    """

    id: str
    prediction: int
    radius: float
    flipped: int = ABSTAIN
    upper: float | None = None
    answer: int = ABSTAIN
    aim: str = ""
    searched: float = 0.0
    forward: int = 0
    backward: int = 0
    votes: int = 0
    change: NDArray[np.int16] | None = None

    @property
    def broken(self) -> bool:
        """Whether the certificate was broken."""
        return self.flipped != ABSTAIN

    def line(self) -> dict[str, Any]:
        """The row in plain types."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        if self.change is not None:
            packed = b64encode(zlib.compress(self.change.astype("<i2").tobytes(), 9)).decode()
            plain["change"] = {"shape": list(self.change.shape), "levels": packed}
        return plain

    @classmethod
    def of_line(cls, plain: dict[str, Any]) -> "Attack":
        """The row that a line describes."""
        change = plain["change"]
        if change is not None:
            levels = np.frombuffer(zlib.decompress(b64decode(change["levels"])), dtype="<i2")
            plain = plain | {"change": levels.reshape(change["shape"])}
        return cls(**plain)


@dataclass(frozen=True)
class Attacks(Sequence[Attack]):
    """What came of attacks on certificates of level ``alpha``; ``settings`` are those of a campaign, if it was one."""

    rows: tuple[Attack, ...]
    alpha: float
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Attack:  # type: ignore[override]
        return self.rows[index]

    @property
    def broken(self) -> int:
        """How many certificates were broken."""
        return sum(row.broken for row in self.rows)

    @property
    def chance(self) -> float:
        """The probability of so many broken certificates or more, if each is wrong with probability alpha."""
        return float(bdtrc(self.broken - 1, len(self), self.alpha)) if self.broken else 1.0

    @property
    def bracketed(self) -> tuple[Attack, ...]:
        """Those that were searched for beyond the radius too."""
        return tuple(row for row in self.rows if row.searched)

    @property
    def ratio(self) -> float:
        """Attacked over certified radius in the median of the bracketed; what no attack reached is infinitely far."""
        ratios = [np.inf if row.upper is None else row.upper / row.radius for row in self.bracketed]
        return float(np.median(ratios)) if ratios else np.nan

    def __str__(self) -> str:
        part = "" if len(self.bracketed) == len(self) else f" of {len(self.bracketed)}"
        reached = f"; attacked / certified radius {self.ratio:.2f} in the median{part}" if self.bracketed else ""
        return f"{self.broken} of {len(self)} certificates broken (chance {self.chance:.3g}){reached}"


def read_attacks(path: Path) -> Attacks:
    """The attacks in a file, less a last line that was cut off."""
    try:
        content = path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        settings, *rest = [json.loads(line) for line in whole.splitlines()]
        if settings.pop("format") != FORMAT:
            raise ValueError
        rows = {row.id: row for row in map(Attack.of_line, rest)}
        found = Attacks(tuple(rows.values()), float(settings["alpha"]), settings)
    except OSError as error:
        raise BadTable(f"cannot read the attack {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError, zlib.error) as error:
        raise BadTable(f"{path} is not a file of `dualrs attack`, or it was altered") from error
    return found


def joined(parts: Mapping[Path, Attacks]) -> Attacks:
    """The attacks of several files, which are parts of one campaign: the same settings, and every input once."""
    (name, first), *rest = parts.items()
    rows = {row.id: row for row in first}
    for path, part in rest:
        if part.settings != first.settings:
            raise BadTable(f"{path} and {name} are attacks with other settings, and no parts of one campaign")
        if twice := [row.id for row in part if row.id in rows]:
            raise BadTable(f"{path}: input {twice[0]} was attacked in another file too; give one of them")
        rows |= {row.id: row for row in part}
    return Attacks(tuple(rows.values()), first.alpha, first.settings)


class AttackFile:
    """A file of an attack that is written line by line; one of the same settings is resumed."""

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self.done: dict[str, Attack] = {}
        settings = dict(json.loads(json.dumps(settings)))
        kept = b""
        if path.exists() and path.stat().st_size:
            found = read_attacks(path)
            if found.settings != settings:
                differ = [k for k in {*found.settings, *settings} if found.settings.get(k) != settings.get(k)]
                what = f"is an attack with another {', '.join(sorted(differ))}"
                if "version" in differ:
                    what = "was made by another version of the attack, and results of two versions are not mixed"
                raise ForeignLedger(f"{path} {what}; give another name with -o")
            self.done = {row.id: row for row in found}
            content = path.read_bytes()
            kept = content[: content.rfind(b"\n") + 1]
        self._file: IO[bytes] = path.open("r+b" if kept else "wb")
        self._file.truncate(len(kept))
        self._file.seek(len(kept))
        if not kept:
            self._write({"format": FORMAT} | settings)

    def add(self, row: Attack) -> None:
        """Keep a row, in place of an earlier one of the same input."""
        self.done[row.id] = row
        self._write(row.line())

    def _write(self, plain: dict[str, Any]) -> None:
        self._file.write(json.dumps(plain, separators=(",", ":")).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def __enter__(self) -> "AttackFile":
        return self

    def __exit__(self, *problem: object) -> None:
        self._file.close()
