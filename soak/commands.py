"""The commands that are killed, and what they leave: everything that two runs of one command must have in common.

Enters: a folder in which a command has ended. Leaves: for every file in it what matters, so that two folders can be
compared: rows of ledgers without seconds and seals, weights and bundles byte for byte, cards without the time it took.
"""

import csv
import json
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TWO = (
    *("--router", "soak.toys:router", "--classifier", "soak.toys:classifier", "--data", "soak.toys:images"),
    *("--sigmas", "0.25,0.5,1.0", "--sigma-e", "1.0", "--n0", "100", "--alpha", "0.01", "--batch-size", "250"),
)
LABEL = (
    "--classifier",
    "soak.toys:classifier",
    "--data",
    "soak.toys:images",
    "--sigmas",
    "0.25,0.5,1.0",
    "--alpha",
    "0.01",
)

ROUNDS = """
title = "toy"
data = "soak.toys:colours_to_train"
test = "soak.toys:colours_to_test"
seed = @SEED@

[start]
classifier = "soak.toys:colour_classifier"
sigmas = [0.25, 1.0]
sigma_e = 1.0

[label]
n = 60

[assign]
n = 60

[router]
network = "soak.toys:colour_router"
epochs = 8
batch_size = 20
rate = 0.1
consistency_weight = 2.0

[finetune]
epochs = 8
batch_size = 20
rate = 0.05
halve_every = 6

[certify]
n = 1000
rule = "paper"
"""


@dataclass(frozen=True)
class Command:
    """What is run, how slowly, and how often it is killed at most before it may end."""

    name: str
    words: tuple[str, ...]
    pause: float
    kills: int
    workers: bool = False
    recipe: str = ""

    def line(self, seed: int) -> list[str]:
        """The command line behind `dualrs`, for a folder that `prepare` was called on."""
        return [*self.words, *(() if self.recipe else ("--seed", str(seed)))]

    def prepare(self, folder: Path, seed: int) -> None:
        """Make the folder in which the command is run."""
        folder.mkdir(parents=True)
        if self.recipe:
            (folder / "rounds.toml").write_text(self.recipe.replace("@SEED@", str(seed)))


COMMANDS = (  # the slowest first, as two are at work at a time
    Command(
        "certify --workers 2",
        ("certify", *TWO, "--n", "2500", "--rule", "fusion", "--workers", "2", "-o", "run.ledger"), 0.04, 4,
        workers=True,
    ),
    Command("rounds", ("rounds", "rounds.toml", "-o", "run"), 0.01, 10, recipe=ROUNDS),
    Command("certify", ("certify", *TWO, "--n", "2500", "--rule", "fusion", "-o", "run.ledger"), 0.02, 6),
    Command(
        "certify --adaptive",
        ("certify", *TWO, "--n", "6400", "--adaptive", "--tolerance", "0.02", "-o", "run.ledger"), 0.02, 6,
    ),
    Command("label", ("label", *LABEL, "--n", "2000", "--batch-size", "250", "-o", "run.ledger"), 0.02, 6),
)  # fmt: skip


def kept(folder: Path) -> dict[str, object]:
    """What matters of every file in a folder, by name."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): _READERS.get(path.suffix, Path.read_bytes)(path) for path in files}


def ledgers(folder: Path) -> list[Path]:
    """The ledgers in a folder."""
    return sorted(folder.rglob("*.ledger"))


def differences(ours: Mapping[str, object], theirs: Mapping[str, object]) -> list[str]:
    """What is in one folder and not in the other, or not the same."""
    found = [f"{name} was left behind" for name in sorted(ours.keys() - theirs.keys())]
    found += [f"{name} is missing" for name in sorted(theirs.keys() - ours.keys())]
    for name in sorted(ours.keys() & theirs.keys()):
        one, other = ours[name], theirs[name]
        if isinstance(one, dict) and isinstance(other, dict):
            found += [f"{name}: {part} differs" for part in one if one[part] != other[part]]
        elif one != other:
            found.append(f"{name} differs")
    return found


def blind_spots(folder: Path, scratch: Path) -> list[str]:
    """What a comparison does not see, of changes that it must see: a campaign that cannot fail would prove nothing."""
    expected, unseen = kept(folder), []

    def spoil(name: str, change: Callable[[Path], object]) -> None:
        copy = scratch / "spoiled"
        shutil.copytree(folder, copy)
        change(copy)
        if not differences(kept(copy), expected):
            unseen.append(name)
        shutil.rmtree(copy)

    def change(sql: str) -> Callable[[Path], None]:
        def changed(copy: Path) -> None:
            with closing(sqlite3.connect(ledgers(copy)[-1])) as connection, connection:
                connection.execute(sql)

        return changed

    def cut(copy: Path) -> None:
        for weights in copy.rglob("*.safetensors"):
            weights.write_bytes(weights.read_bytes()[:-1] + b"\1")

    spoil("a lock that was left", lambda copy: (copy / "run.ledger-lock").touch())
    spoil("votes that changed", change("UPDATE votes SET counts = x'00' WHERE start = 0"))
    spoil("an input that is missing", change("DELETE FROM inputs WHERE position = 0"))
    if any(folder.rglob("*.safetensors")):
        spoil("weights that changed", cut)
    return unseen


def _rows(path: Path) -> dict[str, object]:
    """Header, inputs, votes and certificates of a ledger, read without dualrs."""
    with closing(sqlite3.connect(path)) as connection:
        fields, listed, state = connection.execute("SELECT fields, inputs, state FROM header").fetchone()
        read: dict[str, object] = {"header": {**json.loads(fields), "created": ""}, "list": listed, "state": state}
        for table in ("inputs", "votes", "certificates"):
            names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            columns = ", ".join(name for name in names if name not in ("seal", "seconds"))
            read[table] = sorted(connection.execute(f"SELECT {columns} FROM {table}").fetchall(), key=repr)
    return read


def recorded(path: Path) -> int:
    """How many rows of votes a ledger has, with a run at work or without; never changes the file."""
    if not path.exists():
        return 0
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            return int(connection.execute("SELECT count(*) FROM votes").fetchone()[0])
    except sqlite3.Error:  # not founded yet
        return 0


def _card(path: Path) -> Any:
    return {**json.loads(path.read_text()), "cost": ""}


def _log(path: Path) -> object:
    with path.open(newline="") as file:
        return [(row["step"], row["epoch"], row["loss"], row["rate"]) for row in csv.DictReader(file)]


_READERS: dict[str, Callable[[Path], object]] = {".ledger": _rows, ".json": _card, ".csv": _log}
