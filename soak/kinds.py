"""The kinds of files that are mutated: how each is spoiled, how the library reads it, and what the reading must give.

Enters: pristine files. Leaves, for a number: a spoiled file, then what its reader says. A reader may refuse a file with
an error of dualrs; where it does not, a strict mutation must leave its answer as it was.
"""

import hashlib
import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch

from dualrs.config import load_any
from dualrs.errors import DualrsError, LedgerError
from dualrs.models.card import Card
from dualrs.models.weights import load_weights
from dualrs.schemes import AcesVotes, DualVotes
from dualrs.storage import Ledger, derive, read_table, verify
from dualrs.storage.header import FORMAT, Header
from dualrs.training.checkpoint import read_checkpoint
from dualrs.training.loop import _resume
from dualrs.votes import Counts, Votes
from soak.commands import recorded
from soak.damage import damaged
from soak.pickles import edited_content, sealed, unsealed, with_code
from soak.pristine import FIRST, IDENTITY, trained
from soak.sql import edited_ledger
from soak.texts import edited_json, edited_table, edited_toml

Answer = Mapping[str, object]


@dataclass(frozen=True)
class Spoiled:
    """A mutated file: which one it was, what was done to it, and whether its answer must be the old one."""

    path: Path
    variant: str
    words: str
    strict: bool


class Kind(ABC):
    """One kind of file. ``share`` is how many of 120 mutations are of it."""

    name: str
    share: int
    folder: str
    pattern: str

    def __init__(self, pristine: Path, place: Path) -> None:
        self.pristine, self.place = pristine / self.folder, place / self.name
        self.marker = place / "executed"
        self.variants = sorted(str(p.relative_to(self.pristine)) for p in self.pristine.rglob(self.pattern))
        self._answers: dict[str, Answer] = {}

    def spoil(self, rng: Random) -> Spoiled:
        """Put fresh files in place and mutate one."""
        shutil.rmtree(self.place, ignore_errors=True)
        shutil.copytree(self.pristine, self.place)
        variant = rng.choice(self.variants)
        words, strict = self.mutate(self.place / variant, rng)
        return Spoiled(self.place / variant, variant, words, strict)

    def expected(self, variant: str) -> Answer:
        """What the pristine file says."""
        if variant not in self._answers:
            self._answers[variant] = self.read(self.pristine / variant)
        return self._answers[variant]

    def same(self, found: Answer, spoiled: Spoiled) -> bool:
        """Whether an answer is that of the pristine file."""
        return found == self.expected(spoiled.variant)

    @abstractmethod
    def mutate(self, path: Path, rng: Random) -> tuple[str, bool]:
        """Spoil a file; what was done, and whether the mutation is strict."""

    @abstractmethod
    def read(self, path: Path) -> Answer:
        """What the library's readers say, after all of them were called."""


def _damage(path: Path, rng: Random) -> str:
    content, words = damaged(path.read_bytes(), rng)
    path.write_bytes(content)
    return words


class Ledgers(Kind):
    """Votes and certificates: whatever differs must be noticed, by verify or by whoever reads them."""

    name, share, folder, pattern = "ledger", 40, "ledgers", "*.ledger"

    def spoil(self, rng: Random) -> Spoiled:
        """As the others, with one file in place."""
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir(parents=True)
        variant = rng.choice(self.variants)
        shutil.copy(self.pristine / variant, self.place)
        words, strict = self.mutate(self.place / variant, rng)
        return Spoiled(self.place / variant, variant, words, strict)

    def mutate(self, path: Path, rng: Random) -> tuple[str, bool]:
        """Damage, or edits by SQL; of seals that were computed anew nothing is asked but order."""
        if rng.random() < 0.55:
            return _damage(path, rng), True
        words, anew = edited_ledger(path, rng)
        return words, not anew

    def same(self, found: Answer, spoiled: Spoiled) -> bool:
        """Equal; in the first format, which lists no inputs, one that is gone altogether cannot be missed."""
        expected = self.expected(spoiled.variant)
        if spoiled.variant != FIRST:
            return found == expected
        return all(expected.get(name) == value for name, value in found.items())

    def read(self, path: Path) -> Answer:
        """Open, verify, derive and resume."""
        with Ledger.open(path) as ledger:
            problems = verify(ledger)
            with suppress(*([DualrsError] if problems else [])):
                answer = _answer(ledger)
        if path.parent != self.pristine:
            self._resume(path)
        if problems:
            raise LedgerError("; ".join(problems))
        return answer

    def _resume(self, path: Path) -> None:
        """Go on with the run, as far as that is allowed; votes that are there must still be there."""
        before, header = recorded(path), replace(self._headers[path.name], format=FORMAT)
        try:
            Ledger.header_of(path)
            with Ledger.create_or_resume(path, header) as ledger:
                _answer(ledger)
        finally:
            if path.exists() and (after := recorded(path)) < before:
                raise AssertionError(f"{before - after} rows of votes were overwritten")

    @cached_property
    def _headers(self) -> dict[str, Header]:
        found: dict[str, Header] = {}
        for variant in self.variants:
            with Ledger.open(self.pristine / variant) as ledger:
                found[variant] = ledger.header
        return found


def _answer(ledger: Ledger) -> Answer:
    """All that a ledger says of each input."""
    said: dict[str, list[object]] = {row.id: [row] for row in ledger.inputs()}
    for name, concluded in ledger.certificates().items():
        said.setdefault(name, []).append(concluded)
    header = ledger.header
    if header.certifies:
        results, certificates = derive(ledger)
        ids = [str(name) for name in results.ids]
        for name, certificate in zip(ids, certificates, strict=True):
            said.setdefault(name, []).append(certificate)
        counts = _counts(ledger.votes(ids))
    else:
        ids = ledger.complete()
        held = ledger.votes(ids)
        counts = _counts(*(held if isinstance(held, tuple) else (held,)))
    for place, name in enumerate(ids):
        said.setdefault(name, []).append([table[place].tolist() for table in counts])
    return said


def _counts(*votes: Any) -> list[Counts]:
    found: list[Counts] = []
    for one in votes:
        match one:
            case Votes():
                found += [one.selection, one.estimation, *([] if one.segments is None else [one.segments])]
            case DualVotes():
                found += _counts(one.router, *one.experts)
            case AcesVotes():
                found += [*_counts(one.selector, one.classifier), one.core]
    return found


class Weights(Kind):
    """Files of weights beside their cards, which have the checksum."""

    name, share, folder, pattern = "weights", 10, "weights", "*.safetensors"

    def mutate(self, path: Path, rng: Random) -> tuple[str, bool]:
        """Damage; half of it with the checksum computed anew."""
        words, card = _damage(path, rng), path.with_suffix(".json")
        if rng.random() < 0.5:
            return words, True
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        card.write_text(Card.read(card).model_copy(update={"sha256": digest}).model_dump_json())
        return f"{words}, with a new checksum", False

    def read(self, path: Path) -> Answer:
        """Build the network and load it."""
        return {"weights": _plain(load_weights(path).state_dict())}


class Cards(Weights):
    """Cards beside files of weights: whatever else they say, weights that load are the old ones."""

    name, share, pattern = "card", 20, "*.json"

    def mutate(self, path: Path, rng: Random) -> tuple[str, bool]:
        """Damage, or edits of the JSON."""
        if rng.random() < 0.3:
            return _damage(path, rng), True
        text, words = edited_json(path.read_text(), rng)
        path.write_text(text, errors="surrogatepass")
        return words, True

    def read(self, path: Path) -> Answer:
        """Read the card, then the weights that it is about."""
        Card.read(path)
        return super().read(path.with_suffix(".safetensors"))


class Checkpoints(Kind):
    """Checkpoints of trainings: pickles, of which no code may be run."""

    name, share, folder, pattern = "checkpoint", 15, "checkpoint", "*.checkpoint"

    def mutate(self, path: Path, rng: Random) -> tuple[str, bool]:
        """Damage, which must be noticed; other contents, which need not be; code, which must not be run.

        Contents and code come with a digest computed anew, as does some damage: without it, nobody looks at them.
        """
        kind = rng.random()
        if kind < 0.5:
            return _damage(path, rng), True
        if kind < 0.6:
            archive, words = damaged(unsealed(path), rng)
        else:
            edit = edited_content if kind < 0.8 else with_code
            archive, words = edit(read_checkpoint(path), rng, self.marker)
        path.write_bytes(sealed(archive))
        return f"{words}, with a new digest", False

    def read(self, path: Path) -> Answer:
        """Go on with the training."""
        network, optimizer = trained()
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.zero_()
        numbers = _resume(path, IDENTITY, network, optimizer, images=0)
        return {
            "numbers": _plain(numbers),
            "weights": _plain(network.state_dict()),
            "optimizer": _plain(optimizer.state_dict()),
        }


def _plain(value: object) -> object:
    """The same without tensors, to be compared bit by bit."""
    match value:
        case torch.Tensor():
            return str(value.dtype), value.shape, value.contiguous().numpy().tobytes()
        case dict():
            return {key: _plain(held) for key, held in value.items()}
        case list() | tuple():
            return [_plain(held) for held in value]
        case _:
            return repr(value)


class Recipes(Kind):
    """Recipes for certifying and for rounds."""

    name, share, folder, pattern = "recipe", 20, "recipes", "*.toml"

    def mutate(self, path: Path, rng: Random) -> tuple[str, bool]:
        """Damage, or edits of lines."""
        if rng.random() < 0.3:
            return _damage(path, rng), False
        text, words = edited_toml(path.read_text(), rng)
        path.write_text(text, errors="surrogatepass", newline="")
        return words, False

    def read(self, path: Path) -> Answer:
        """Load it; paths in it begin where it lies."""
        return {
            "recipe": repr(load_any(path)).replace(str(path.parents[path.parent.name == "ablations"].resolve()), "")
        }


class Tables(Kind):
    """Result tables of other projects."""

    name, share, folder, pattern = "table", 15, "tables", "*.tsv"

    def mutate(self, path: Path, rng: Random) -> tuple[str, bool]:
        """Damage, or edits of cells."""
        if rng.random() < 0.3:
            return _damage(path, rng), False
        text, words = edited_table(path.read_text(), rng)
        path.write_text(text, encoding="utf-8", errors="surrogatepass", newline="")
        return words, False

    def read(self, path: Path) -> Answer:
        """Read it; what comes out is a table of results, whatever it says."""
        results = read_table(path).results
        assert len(set(results.ids.tolist())) == len(results) > 0, "an input stands twice"
        assert np.isfinite(results.radius).all(), "a radius is not finite"
        assert (results.prediction >= -1).all(), "a prediction is no class"
        assert not (results.correct & results.abstained).any(), "an abstention is correct"
        return {
            "rows": [
                results.index.tolist(),
                results.label.tolist(),
                results.prediction.tolist(),
                results.radius.tolist(),
            ]
        }


KINDS: tuple[type[Kind], ...] = (Ledgers, Weights, Cards, Checkpoints, Recipes, Tables)
