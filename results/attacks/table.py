"""The table of a campaign: what came of the attacks in some files, one row each."""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dualrs.storage.attacks import Attack, read_attacks

COLUMNS = (
    "method, certificates, tried, broken, chance, cost of trial, bracketed, median ratio, no change found, cost of both"
)


def cost(rows: Sequence[Attack]) -> str:
    """Images forward, images backward and votes in the mean."""
    if not rows:
        return ""
    return " / ".join(
        f"{np.mean([getattr(row, what) for row in rows]):,.0f}" for what in ("forward", "backward", "votes")
    )


def main(paths: list[str]) -> None:
    """Print the table."""
    names = COLUMNS.split(", ")
    print(f"| {' | '.join(names)} |")
    print(f"|{' --- |' + ' ---: |' * (len(names) - 1)}")
    for path in paths:
        found = read_attacks(Path(path))
        cells = [
            found.settings["method"],
            f"{found.settings['count']}",
            f"{len(found)}",
            f"{found.broken}",
            f"{found.chance:.3g}",
            cost([row for row in found if not row.searched]),
            f"{len(found.bracketed)}",
            f"{found.ratio:.2f}" if found.bracketed else "",
            f"{sum(row.upper is None for row in found.bracketed)}",
            cost(found.bracketed),
        ]
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main(sys.argv[1:])
