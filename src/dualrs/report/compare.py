"""Compare: methods side by side on the same inputs, and how each differs from a baseline.

Enters: ledgers and result tables of other projects, or methods made from them. Leaves: numbers for a table.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dualrs.errors import BadSetting, BadTable
from dualrs.report.accuracy import abstention, average_certified_radius, certified, certified_accuracy
from dualrs.report.alignment import File, align
from dualrs.report.attacked import Campaigns
from dualrs.report.bootstrap import COVERAGE, RESAMPLES, paired_intervals
from dualrs.report.methods import ENVELOPE, NO_METHOD, Derived, envelope, fixed_sigmas, methods
from dualrs.storage.database import MAGIC
from dualrs.storage.ledger import Ledger
from dualrs.storage.peers import read_table
from dualrs.storage.results import Results
from dualrs.storage.verify import Report, silent
from dualrs.theory.radius import RADII

_SUFFIXES = (".ledger", ".tsv", ".txt", ".csv")  # others are parts of a name: sigma_0.25


@dataclass(frozen=True)
class Difference:
    """A difference in certified accuracy, with the ends of its bootstrap interval."""

    value: float
    low: float
    high: float

    def points(self, digits: int) -> str:
        """In points, with its interval."""
        value, low, high = (f"{100 * number:+.{digits}f}" for number in (self.value, self.low, self.high))
        return f"{value} [{low}, {high}]"


@dataclass(frozen=True)
class Row:
    """One method at the radii of a comparison; None where a number is not known or has no meaning.

    ``differences`` is empty without a baseline, and for the baseline itself.
    """

    name: str
    title: str
    guarantee: str
    accuracy: tuple[float, ...]
    abstention: float | None = None
    average_radius: float | None = None
    mean_votes: float | None = None
    worst_votes: int | None = None
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """Methods on the same inputs. ``notes`` is what a reader has to know."""

    inputs: int
    radii: tuple[float, ...]
    rows: tuple[Row, ...]
    baseline: str | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Gathered:
    """Methods of several files, by name, all on the same inputs in the same order, and notes about the files."""

    methods: dict[str, Derived]
    notes: tuple[str, ...]


def gather(paths: Sequence[Path], names: Sequence[str] | None = None, report: Report = silent) -> Gathered:
    """The methods of ledgers, or those of these names, and the one method of each result table.

    Methods are named after their ledger too if there are several, as LEDGER/METHOD; such a name asks for a method of
    one ledger. Files about different inputs are refused: inputs are the same if their ids are or, where a table of
    another project is among the files, the numbers in their ids or their positions. Of a table with more inputs than a
    ledger, those of the ledger are taken.
    """
    paths, attacks = Campaigns.among(paths)
    called = _names_of_files(paths)
    ledgers = sum(is_ledger(path) for path in paths)
    if names is not None and not ledgers:
        raise BadSetting("there is no ledger among the files, and only a ledger has several methods to choose from")
    files: list[File] = []
    about: list[tuple[str, str]] = []  # a file, and what a reader has to know of it
    for path, name in zip(paths, called, strict=True):
        if is_ledger(path):
            wanted = None if names is None else of_ledger(name, names, called)
            if wanted == []:
                continue  # all names are about other ledgers
            with Ledger.open(path) as ledger:
                found = methods(ledger, wanted, report=report) | attacks.on(ledger)
                unfinished = len(ledger.inputs()) - len(next(iter(found.values())).results) if found else 0
                run = ledger.header
                overlap = run.overlap(run.rule, [] if not found else next(iter(found.values())).results.ids.tolist())
                when = "chosen by some of" if overlap is not None and overlap.by_these_votes else "fixed before"
                about.append((name, f"the rule of the run is {run.rule}, {when} its votes"))
                if run.earlier:
                    about.append((name, run.second_look))
                if run.looks:
                    about.append((name, f"adaptive, at most {run.n:,} votes a stage; votes are those that were drawn"))
            if not found:
                raise BadTable(f"{path} has no votes that any method could use; finish its run first")
            if unfinished:
                about.append((name, f"{unfinished} inputs are not finished and are left out"))
            prefix = f"{name}/" if ledgers > 1 else ""
            about += [(f"{prefix}{method.name}", method.note) for method in found.values() if method.note]
            files.append(File(path, {prefix + k: replace(m, name=prefix + k) for k, m in found.items()}, False))
        else:
            table = read_table(path)
            about += [(name, note) for note in table.notes]
            files.append(File(path, {name: _as_reported(name, table.results)}, True))
    attacks.demand_all_used()
    notes = said_together(about)
    aligned = [method for file in align(files, notes) for method in file.methods.values()]
    if twice := [name for name, count in Counter(m.name for m in aligned).items() if count > 1]:
        raise BadSetting(f"two methods are called {twice[0]}; rename a file")
    return Gathered({m.name: m for m in aligned}, tuple(notes))


def said_together(remarks: Iterable[tuple[str, str]]) -> list[str]:
    """A sentence for each remark, with all the names of which it is made: ``a, b: remark``."""
    names: dict[str, list[str]] = {}
    for name, remark in remarks:
        names.setdefault(remark, []).append(name)
    return [f"{', '.join(several)}: {remark}" for remark, several in names.items()]


def compare(found: Mapping[str, Derived], radii: Sequence[float] = RADII, baseline: str | None = None) -> Comparison:
    """Tabulate methods on the same inputs in the same order; differences are against the method named ``baseline``."""
    if baseline is not None and baseline not in found:
        raise BadSetting(f"there is no method {baseline!r} to compare with; the methods are {', '.join(found)}")
    hits = {name: certified(method.results, radii) for name, method in found.items()}
    rows = []
    for name, method in found.items():
        votes, accuracy = method.votes_per_input, certified_accuracy(method.results, radii)
        against = None if baseline is None or name == baseline else hits[baseline]
        rows.append(
            Row(
                name,
                method.title,
                method.guarantee,
                tuple(accuracy.tolist()),
                abstention(method.results),
                average_certified_radius(method.results),
                float(votes.mean()) if len(votes) else None,
                int(votes.max()) if len(votes) else None,
                () if against is None else _differences(hits[name], against),
            )
        )
    rows += _envelopes(found, radii)
    notes = ["ACR, the average certified radius, is dominated by easy inputs: read certified accuracy beside it"]
    if baseline is not None:
        notes.append(
            f"differences are against {baseline}, in points, with {COVERAGE:.0%} intervals of a paired bootstrap over "
            f"inputs ({RESAMPLES:,} resamples)"
        )
    inputs = len(next(iter(found.values())).results)
    return Comparison(inputs, tuple(radii), tuple(rows), baseline, tuple(notes))


def _differences(ours: NDArray[np.bool_], theirs: NDArray[np.bool_]) -> tuple[Difference, ...]:
    values = ours.mean(axis=1) - theirs.mean(axis=1)
    ends = paired_intervals(ours, theirs)
    return tuple(Difference(*map(float, three)) for three in zip(values, *ends, strict=True))


def _envelopes(found: Mapping[str, Derived], radii: Sequence[float]) -> Iterator[Row]:
    """A row for each ledger of which several fixed sigmas are shown."""
    ledgers: dict[str, list[Derived]] = {}
    for name, method in found.items():
        prefix, slash, _ = name.rpartition("/")
        ledgers.setdefault(prefix + slash, []).append(method)
    for prefix, several in ledgers.items():
        if len(fixed := fixed_sigmas(several)) > 1:
            yield Row(f"{prefix}envelope", ENVELOPE, NO_METHOD, tuple(envelope(fixed, radii).tolist()))


def is_ledger(path: Path) -> bool:
    """Whether a file begins as a ledger does, and not as a table."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except FileNotFoundError as missing:
        raise BadTable(f"there is no file {path}") from missing
    except OSError as unreadable:
        raise BadTable(f"{path} cannot be read: {unreadable.strerror}") from unreadable


def _names_of_files(paths: Sequence[Path]) -> list[str]:
    """The stem of each file, or the whole path where two stems are the same."""
    stems = [path.stem if path.suffix in _SUFFIXES else path.name for path in paths]
    return [str(path) if stems.count(stem) > 1 else stem for path, stem in zip(paths, stems, strict=True)]


def _as_reported(name: str, results: Results) -> Derived:
    guarantee = "as its authors say: a table has no votes to derive it from"
    return Derived(name, "as reported", guarantee, False, results, None, np.zeros(0, dtype=np.int64))


def beside(ledger: Path, found: Mapping[str, Derived], name: str, table: Path) -> Derived:
    """The one method of a result table, on the inputs of a ledger's methods in their order; refuses other inputs."""
    if name in found:
        raise BadSetting(f"two methods are called {name}; give the table another name, as NAME={table}")
    imported = read_table(table)
    notes = [*imported.notes]
    reported = File(table, {name: _as_reported(name, imported.results)}, True)
    _, aligned = align([File(ledger, dict(found), False), reported], notes)
    return replace(aligned.methods[name], title=f"{name}, as reported", note="; ".join(notes))


def of_ledger(ledger: str, names: Sequence[str], ledgers: Sequence[str]) -> list[str]:
    """Which of some names of methods are meant of one of several ledgers: those that name it, or none of them."""
    others = tuple(f"{other}/" for other in ledgers if other != ledger)
    return [name.removeprefix(f"{ledger}/") for name in names if not name.startswith(others)]
