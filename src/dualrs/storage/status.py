"""How far a run is, from its ledger alone, also while another process writes it.

Enters: an open ledger. Leaves: numbers. Rows are counted where they lie, their seals unread: seconds for millions.
"""

import time
from dataclasses import dataclass
from pathlib import Path

from dualrs.storage.header import Header
from dualrs.storage.ledger import Ledger

_VOTES = "SELECT coalesce(sum(stop - start), 0) FROM votes"


@dataclass(frozen=True)
class Standing:
    """What a ledger holds at some moment."""

    inputs: int
    done: int
    votes: int


def standing(ledger: Ledger) -> Standing:
    """Count inputs, those that are done, and votes."""
    ledger.trust_header()
    header, rows = ledger.header, ledger.database.rows
    with ledger.snapshot():
        inputs = next(rows("SELECT count(*) FROM inputs"))[0]
        if header.certifies:
            return Standing(inputs, next(rows("SELECT count(*) FROM certificates"))[0], next(rows(_VOTES))[0])
        planned = sum(header.plan.votes(stream.part) for stream in header.scheme.streams)
        query = """
            SELECT coalesce(sum(held = ?), 0), coalesce(sum(held), 0)
            FROM (SELECT sum(stop - start) AS held FROM votes GROUP BY input)"""
        done, votes = next(rows(query, (planned,)))
        return Standing(inputs, done, votes)


def votes_left(header: Header, now: Standing) -> float:
    """About how many votes are missing: what an input takes is told by those that are done, or else by the plan."""
    largest = sum(header.plan.votes(stream.part) for stream in header.scheme.streams)
    each = now.votes / now.done if now.done else largest
    return max(now.inputs * each - now.votes, 0.0)


def votes_per_second(ledger: Ledger, patience: float) -> float:
    """How fast votes come in just now: those between two commits, over a second or until there is one.

    Zero if none comes within ``patience`` seconds. A commit may take a while, so the time between two is what counts.
    """

    def look() -> tuple[int, float]:
        return next(ledger.database.rows(_VOTES))[0], last_written(ledger.path)

    deadline = time.monotonic() + patience
    votes, when = look()
    while time.monotonic() < deadline:
        time.sleep(min(1.0, patience))
        more, then = look()
        if more > votes and then > when:
            return (more - votes) / (then - when)
    return 0.0


def last_written(path: Path) -> float:
    """When a ledger was last written, in seconds since the epoch; its latest commits lie in a file beside it."""
    return max(p.stat().st_mtime for p in (path, Path(f"{path}-wal")) if p.exists())
