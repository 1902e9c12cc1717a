"""Compare: methods side by side on the same inputs, and how each differs from a baseline.

Enters: ledgers and result tables of other projects, or methods made from them. Leaves: numbers for a table.
"""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dualrs.errors import BadSetting, BadTable
from dualrs.report.accuracy import abstention, average_certified_radius, certified, certified_accuracy
from dualrs.report.alignment import File, align
from dualrs.report.attacked import Campaigns
from dualrs.report.bootstrap import COVERAGE, RESAMPLES, paired_intervals
from dualrs.report.given import Given, names_of
from dualrs.report.methods import ENVELOPE, NO_METHOD, Derived, envelope, methods
from dualrs.report.reported import Reported, as_reported, demand_sets, oracles_of_sets, read_reported
from dualrs.report.whatif import NO_ROUTER, ROUTER, ROUTERS, FixedSigmas
from dualrs.storage.database import MAGIC
from dualrs.storage.ledger import Ledger
from dualrs.storage.peers import read_table
from dualrs.storage.verify import Report, silent
from dualrs.theory.radius import RADII


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

    ``differences`` is empty without a baseline, and for the baseline itself. ``guaranteed`` is whether the method is a
    certificate, and not a bound to compare with.
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
    guaranteed: bool = False


@dataclass(frozen=True)
class Choice:
    """What there is to choose among the fixed sigmas of a ledger, or of a set of tables, by its name.

    ``best`` has for how many inputs each sigma is best; for the others none is right. ``needed`` is, at each radius,
    the least accuracy of a router that is expected to reach the best fixed sigma there; None where nobody certifies.
    """

    name: str
    best: dict[float, int]
    needed: tuple[float | None, ...]


@dataclass(frozen=True)
class Comparison:
    """Methods on the same inputs. ``notes`` is what a reader has to know, ``choices`` what routers are measured by."""

    inputs: int
    radii: tuple[float, ...]
    rows: tuple[Row, ...]
    baseline: str | None
    notes: tuple[str, ...]
    choices: tuple[Choice, ...] = ()


@dataclass(frozen=True)
class Gathered:
    """Methods of several files, by name, all on the same inputs in the same order, and notes about the files."""

    methods: dict[str, Derived]
    notes: tuple[str, ...]


def gather(
    files: Sequence[Path | Given],
    names: Sequence[str] | None = None,
    report: Report = silent,
    inputs: Container[int] | None = None,
) -> Gathered:
    """The methods of ledgers, or those of these names, and the one method of each result table.

    Methods are named after their ledger too if there are several, as LEDGER/METHOD; such a name asks for a method of
    one ledger. Tables with a sigma are methods of a set, as NAME/sigma-0.5, and give it an oracle if there are several.
    Files about different inputs are refused: inputs are the same if their ids are or, where a table of another project
    is among the files, the numbers in their ids or their positions. Of a table with more inputs than a ledger, those of
    the ledger are taken, and of a ledger those at the positions ``inputs`` of the dataset, or all.
    """
    given = [file if isinstance(file, Given) else Given((file,)) for file in files]
    others, attacks = Campaigns.among([one.path for one in given])
    given = [one for one in given if one.path in others]
    called = names_of(given)
    ledgers = sum(is_ledger(one.path) for one in given)
    if names is not None and not ledgers:
        raise BadSetting("there is no ledger among the files, and only a ledger has several methods to choose from")
    if inputs is not None and not ledgers:
        raise BadSetting("there is no ledger among the files, and positions of inputs are those that a ledger has")
    found_in: list[File] = []
    tables: list[Reported] = []
    about: list[tuple[str, str]] = []  # a file, and what a reader has to know of it
    for one, name in zip(given, called, strict=True):
        path = one.path
        if is_ledger(path):
            if one.sigma is not None:
                raise BadSetting(f"{path} is a ledger, which knows its sigmas; leave out @{one.sigma:g}")
            wanted = None if names is None else of_ledger(name, names, called)
            if wanted == []:
                continue  # all names are about other ledgers
            with Ledger.open(path) as ledger:
                whole = methods(ledger, wanted, report=report)
                unfinished = len(ledger.inputs()) - len(next(iter(whole.values())).results) if whole else 0
                found = {k: method.at(inputs) for k, method in whole.items()} | attacks.on(ledger, inputs)
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
            found_in.append(File(path, {prefix + k: replace(m, name=prefix + k) for k, m in found.items()}, False))
        else:
            table = read_reported(one, name, beside_ledger=ledgers > 0)
            about += [(table.method.name, note) for note in table.notes]
            tables.append(table)
            found_in.append(File(path, {table.method.name: table.method}, True))
    attacks.demand_all_used()
    demand_sets(tables)
    notes = said_together(about)
    aligned = [method for file in align(found_in, notes) for method in file.methods.values()]
    if twice := [name for name, count in Counter(m.name for m in aligned).items() if count > 1]:
        raise BadSetting(f"two methods are called {twice[0]}; give the files names, as NAME=FILE")
    oracles = oracles_of_sets(aligned, (table.set for table in tables))
    return Gathered({m.name: m for m in (*aligned, *oracles)}, tuple(notes))


def said_together(remarks: Iterable[tuple[str, str]]) -> list[str]:
    """A sentence for each remark, with all the names of which it is made: ``a, b: remark``."""
    names: dict[str, list[str]] = {}
    for name, remark in remarks:
        names.setdefault(remark, []).append(name)
    return [f"{', '.join(several)}: {remark}" for remark, several in names.items()]


def compare(
    found: Mapping[str, Derived],
    radii: Sequence[float] = RADII,
    baseline: str | None = None,
    routers: Sequence[float] | None = None,
) -> Comparison:
    """Tabulate methods on the same inputs in the same order; differences are against the method named ``baseline``.

    ``routers`` are accuracies of routers to expect something of, wherever there are several fixed sigmas. By default
    they are `ROUTERS` if all methods are of tables, and none beside votes, which a rule can route for real.
    """
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
                method.guaranteed,
            )
        )
    sets = _sets(found)
    if routers is None:
        routers = () if any(method.certificates is not None for method in found.values()) else ROUTERS
    elif routers and not sets:
        raise BadSetting("a router chooses among sigmas, and there are not several; give tables as NAME@SIGMA=FILE")
    if odd := [accuracy for accuracy in routers if not 0 <= accuracy <= 1]:
        raise BadSetting(f"the accuracy of a router lies between 0 and 1, got {odd[0]:g}")
    for prefix, fixed in sets.items():
        rows.append(Row(f"{prefix}envelope", ENVELOPE, NO_METHOD, tuple(envelope(fixed.results, radii).tolist())))
        rows += [_routed(prefix, fixed, radii, accuracy) for accuracy in dict.fromkeys(routers)]
    choices = [_choice(prefix, fixed, radii) for prefix, fixed in sets.items()] if routers else []
    notes = ["ACR, the average certified radius, is dominated by easy inputs: read certified accuracy beside it"]
    if baseline is not None:
        notes.append(
            f"differences are against {baseline}, in points, with {COVERAGE:.0%} intervals of a paired bootstrap over "
            f"inputs ({RESAMPLES:,} resamples)"
        )
    if choices:
        notes.append("needed: how often a router has to name the best sigma to be expected to reach the envelope")
    inputs = len(next(iter(found.values())).results)
    return Comparison(inputs, tuple(radii), tuple(rows), baseline, tuple(notes), tuple(choices))


def _differences(ours: NDArray[np.bool_], theirs: NDArray[np.bool_]) -> tuple[Difference, ...]:
    values = ours.mean(axis=1) - theirs.mean(axis=1)
    ends = paired_intervals(ours, theirs)
    return tuple(Difference(*map(float, three)) for three in zip(values, *ends, strict=True))


def _sets(found: Mapping[str, Derived]) -> dict[str, FixedSigmas]:
    """The fixed sigmas of each ledger and set of which several are shown, by what begins their names."""
    together: dict[str, list[Derived]] = {}
    for name, method in found.items():
        prefix, slash, _ = name.rpartition("/")
        together.setdefault(prefix + slash, []).append(method)
    several = {prefix: FixedSigmas.among(methods) for prefix, methods in together.items()}
    return {prefix: fixed for prefix, fixed in several.items() if fixed is not None}


def _routed(prefix: str, fixed: FixedSigmas, radii: Sequence[float], accuracy: float) -> Row:
    return Row(
        f"{prefix}{ROUTER}{accuracy:g}",
        "names the best sigma so often, and else one of the others at random",
        NO_ROUTER,
        tuple(fixed.routed(radii, accuracy).tolist()),
        average_radius=fixed.routed_radius(accuracy),
    )


def _choice(prefix: str, fixed: FixedSigmas, radii: Sequence[float]) -> Choice:
    needed = tuple(None if np.isnan(share) else float(share) for share in fixed.needed(radii))
    return Choice(prefix.removesuffix("/"), dict(zip(fixed.sigmas, fixed.best_counts, strict=True)), needed)


def is_ledger(path: Path) -> bool:
    """Whether a file begins as a ledger does, and not as a table."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except FileNotFoundError as missing:
        raise BadTable(f"there is no file {path}") from missing
    except OSError as unreadable:
        raise BadTable(f"{path} cannot be read: {unreadable.strerror}") from unreadable


def beside(ledger: Path, found: Mapping[str, Derived], name: str, table: Path) -> Derived:
    """The one method of a result table, on the inputs of a ledger's methods in their order; refuses other inputs."""
    if name in found:
        raise BadSetting(f"two methods are called {name}; give the table another name, as NAME={table}")
    imported = read_table(table)
    notes = [*imported.notes]
    reported = File(table, {name: as_reported(name, imported.results)}, True)
    _, aligned = align([File(ledger, dict(found), False), reported], notes)
    return replace(aligned.methods[name], title=f"{name}, as reported", note="; ".join(notes))


def of_ledger(ledger: str, names: Sequence[str], ledgers: Sequence[str]) -> list[str]:
    """Which of some names of methods are meant of one of several ledgers: those that name it, or none of them."""
    others = tuple(f"{other}/" for other in ledgers if other != ledger)
    return [name.removeprefix(f"{ledger}/") for name in names if not name.startswith(others)]
