"""The table of a campaign: what came of the attacks in some files, one row each."""

import sys
from pathlib import Path

import numpy as np

from dualrs.storage.attacks import read_attacks

COLUMNS = "method, certificates, attacked, broken, chance, median ratio, no change found, forward, backward, votes"


def main(paths: list[str]) -> None:
    """Print the table; costs are means over inputs."""
    names = COLUMNS.split(", ")
    print(f"| {' | '.join(names)} |")
    print(f"|{' --- |' + ' ---: |' * (len(names) - 1)}")
    for path in paths:
        found = read_attacks(Path(path))
        costs = [np.mean([getattr(row, what) for row in found]) for what in ("forward", "backward", "votes")]
        cells = [
            found.settings["method"],
            f"{found.settings['count']}",
            f"{len(found)}",
            f"{found.broken}",
            f"{found.chance:.3g}",
            f"{found.ratio:.2f}",
            f"{sum(row.upper is None for row in found)}",
            *(f"{cost:,.0f}" for cost in costs),
        ]
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main(sys.argv[1:])
