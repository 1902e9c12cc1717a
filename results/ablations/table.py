"""What comes of each router, and whether a finding of the paper shows in it; from the ledgers in ledgers.tar.xz.

python results/ablations/table.py routers      # or: findings
"""

import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dualrs.report.bootstrap import mean_interval
from dualrs.report.diagnostics import fixed_radii, slack
from dualrs.report.methods import methods
from dualrs.storage import Ledger
from dualrs.storage.results import derive

HERE = Path(__file__).parent
RADII = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0)
SMALL, MEDIUM, LARGE, ALL = (0.0, 0.25, 0.5), (0.75, 1.0), (1.25, 1.5, 1.75, 2.0), RADII
BEST, HELD = "best sigma", "held down"
LITTLE = 2.5  # points that still are a small difference

ROUTERS = {
    "hard-labels": "hard labels, no consistency",
    "no-consistency": "soft labels, no consistency",
    "lambda-10": "soft labels, λ = 10",
    "first": "**soft labels, λ = 40, strong gate**",
    "seed-1": "the same, another seed of training",
    "lambda-80": "soft labels, λ = 80",
    "weak-gate": "weak gate",
    "unbalanced": "best sigmas not weighed (w_e = 1)",
    "tenth-of-data": "labels on a tenth of the images",
    "votes-8": "labels from 8 votes, not 64",
    "small": "router of a quarter of the cost",
    "large": "router of twice the cost",
    "sigmas-0.25-0.5": "sigmas 0.25, 0.5",
    "sigmas-0.25-1.0": "sigmas 0.25, 1.0",
    "sigmas-0.5-1.0": "sigmas 0.5, 1.0",
}


@dataclass(frozen=True)
class Finding:
    """What the paper says of one router against another: that ``what`` is more (+1), less (-1) or hardly other (0)."""

    said: str
    one: str
    other: str
    what: Sequence[float] | str
    sign: int


FINDINGS = (
    Finding("Soft labels certify more than hard ones", "no-consistency", "hard-labels", ALL, 1),
    Finding("They find the best sigma less often", "no-consistency", "hard-labels", BEST, -1),
    Finding("The router holds fewer inputs down", "no-consistency", "hard-labels", HELD, -1),
    Finding("Consistency costs a little at small radii", "first", "no-consistency", SMALL, -1),
    Finding("It gains at large ones", "first", "no-consistency", LARGE, 1),
    Finding("It finds the best sigma less often", "first", "no-consistency", BEST, -1),
    Finding("It holds far fewer inputs down", "first", "no-consistency", HELD, -1),
    Finding("λ = 40, not 10: better at medium radii", "first", "lambda-10", MEDIUM, 1),
    Finding("λ = 40, not 10: fewer inputs held down", "first", "lambda-10", HELD, -1),
    Finding("λ = 80, not 40: hardly other", "lambda-80", "first", ALL, 0),
    Finding("The strong gate holds fewer inputs down than the weak one", "first", "weak-gate", HELD, -1),
    Finding("Sigmas 0.25, 0.5 gain at small radii", "sigmas-0.25-0.5", "first", SMALL, 1),
    Finding("They lose at large ones", "sigmas-0.25-0.5", "first", LARGE, -1),
    Finding("Sigmas 0.25, 1.0 lose at 0.75 and 1.0", "sigmas-0.25-1.0", "first", MEDIUM, -1),
    Finding("They gain beyond 1.0", "sigmas-0.25-1.0", "first", LARGE, 1),
    Finding("Fewer votes for labels: hardly other", "votes-8", "first", ALL, 0),
    Finding("A tenth of the labels: hardly other", "tenth-of-data", "first", ALL, 0),
    Finding("A router of a quarter of the cost: hardly other", "small", "first", ALL, 0),
    Finding("A router of twice the cost: hardly other", "large", "first", ALL, 0),
)


@dataclass(frozen=True)
class Router:
    """What came of a router on each input: certified at each radius, sigma the best one, radius held down by it."""

    certified: NDArray[np.bool_]  # (radii, inputs)
    best: NDArray[np.bool_]
    held: NDArray[np.bool_]

    @classmethod
    def read(cls, path: Path) -> "Router":
        """From its ledger, under the paper's rule."""
        with Ledger.open(path) as ledger:
            found = methods(ledger, ["paper"])["paper"].results
            hits = np.array([found.correct & (found.radius > 0) & (found.radius >= r) for r in RADII])
            return cls(hits, fixed_radii(ledger).regret <= 0, slack(derive(ledger, "paper")[1]) < 0)

    def of(self, what: Sequence[float] | str) -> NDArray[np.float64]:
        """A number for each input: a share of some radii, or whether one of the others holds."""
        if isinstance(what, str):
            return (self.best if what == BEST else self.held).astype(np.float64)
        return np.asarray(self.certified[[RADII.index(r) for r in what]].mean(axis=0))


@contextmanager
def unpacked() -> Iterator[Path]:
    """The folder of ledgers."""
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(HERE / "ledgers.tar.xz") as archive:
            archive.extractall(folder, filter="data")
        yield Path(folder) / "ledgers"


def routers(found: dict[str, Router]) -> None:
    """Certified accuracy of each."""
    print(f"| router | {' | '.join(f'{r:g}' for r in RADII)} | {BEST} | {HELD} |")
    print(f"|---|{'---:|' * (len(RADII) + 2)}")
    for name, label in ROUTERS.items():
        one = found[name]
        shares = [*one.certified.mean(axis=1), one.best.mean(), one.held.mean()]
        print(f"| {label} | {' | '.join(f'{100 * share:.1f}' for share in shares)} |")


def findings(found: dict[str, Router]) -> None:
    """What the paper says, the difference here with its interval, and whether they agree."""
    print("| the paper | measured as | difference, points | interval | here |")
    print("|---|---|---:|---|---|")
    for one in FINDINGS:
        more = 100 * (found[one.one].of(one.what) - found[one.other].of(one.what))
        low, high = mean_interval(more)
        so = min(one.sign * low, one.sign * high) > 0 if one.sign else max(abs(low), abs(high)) <= LITTLE
        here = "agrees" if so else "does not" if low > 0 or high < 0 else "not visible"
        measured = one.what if isinstance(one.what, str) else f"mean over {one.what[0]:g} to {one.what[-1]:g}"
        print(f"| {one.said} | {measured} | {more.mean():+.1f} | {low:+.1f} to {high:+.1f} | {here} |")


def main(table: str) -> None:
    """Print a table."""
    with unpacked() as folder:
        found = {name: Router.read(folder / f"{name}.ledger") for name in ROUTERS}
    {"routers": routers, "findings": findings}[table](found)


if __name__ == "__main__":
    main(sys.argv[1])
