"""Entries: a row of the board from a ledger, derived again from its votes, or from a table, as reported."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dualrs.report.accuracy import abstention, average_certified_radius, certified_accuracy
from dualrs.report.board.card import EntryCard, read_card
from dualrs.report.methods import methods, own_method
from dualrs.storage.ledger import Ledger
from dualrs.storage.peers import read_table
from dualrs.storage.results import Results
from dualrs.storage.verify import Report, silent, verify
from dualrs.theory.bounds import Floats

VERIFIED, REPORTED = "verified", "as reported"


@dataclass(frozen=True, eq=False)
class Entry:
    """A row: what it is, what came out, and what vouches for it.

    ``accuracy`` is certified accuracy at the radii of the tables. ``problems`` are why a ledger does not verify; such a
    row has no numbers. Numbers that are not known are NaN.
    """

    name: str
    card: EntryCard
    method: str
    guarantee: str
    data: str
    evidence: str
    about: dict[str, str]
    guaranteed: bool = False
    inputs: int = 0
    accuracy: Floats | None = None
    acr: float = np.nan
    abstained: float = np.nan
    votes: float = np.nan
    seconds: float = np.nan
    problems: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """As the card has it, or the file's name."""
        return self.card.title or self.name


def of_ledger(path: Path, name: str, redrawn: str = "", report: Report = silent) -> Entry:
    """The row of a run, under the rule that it was made for: no other is covered by its guarantee.

    Every certificate is derived again. ``redrawn`` says which of its votes were drawn again, if any were.
    """
    card = read_card(path)
    with Ledger.open(path) as ledger:
        problems = tuple(verify(ledger, report))
        header = ledger.header
        about = {
            "n": f"{header.n:,}" + (" at most, adaptive" if header.looks else ""),
            "n0": f"{header.n0:,}",
            "alpha": f"{header.alpha:g}",
            "sigmas": ", ".join(f"{sigma:g}" for sigma in header.scheme.sigmas),
            "networks": ", ".join(f"{role} {print_}" for role, print_ in sorted(header.models.items())),
            "noise": header.noise,
            "ledger, SHA-256": hashlib.sha256(path.read_bytes()).hexdigest(),
        }
        if problems:
            return Entry(name, card, header.rule, "", header.dataset, "does not verify", about, problems=problems)
        (found,) = methods(ledger, [own_method(header)]).values()
    evidence = "; ".join(filter(None, (VERIFIED, redrawn, "" if found.guaranteed else "no guarantee")))
    votes = float(found.votes_per_input.mean()) if len(found.votes_per_input) else np.nan
    measured = _measured(found.results)
    said = (found.title, found.guarantee, header.dataset, evidence, about, found.guaranteed)
    return Entry(name, card, *said, votes=votes, **measured)


def of_table(path: Path, name: str) -> Entry:
    """The row of a result table, which has no votes: its numbers are what it says."""
    card, imported = read_card(path), read_table(path)
    about = {"notes on the table": "; ".join(imported.notes)} if imported.notes else {}
    guarantee = "as its authors state it: without votes nothing can be derived again"
    data = card.data or "data not said"
    return Entry(name, card, REPORTED, guarantee, data, REPORTED, about, **_measured(imported.results))


def _measured(results: Results) -> dict[str, Any]:
    """The numbers of a row that follow from results."""
    known = np.isfinite(results.seconds)
    return {
        "inputs": len(results),
        "accuracy": certified_accuracy(results),
        "acr": average_certified_radius(results),
        "abstained": abstention(results),
        "seconds": float(results.seconds[known].mean()) if known.any() else np.nan,
    }
