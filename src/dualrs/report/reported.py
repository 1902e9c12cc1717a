"""Reported: methods from tables of other projects. They have no votes, so their radii are as their authors say.

Enters: what was given on the command line. Leaves: one method for each table, or for the logs of one composed model;
tables with a sigma are sets, and a set of several has an oracle.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dualrs.errors import BadSetting
from dualrs.report.composed import GUARANTEE, TITLE, read_composed
from dualrs.report.given import Given
from dualrs.report.methods import Derived
from dualrs.report.whatif import FixedSigmas
from dualrs.schemes.scheme import sigma_method
from dualrs.storage.peers import read_table
from dualrs.storage.results import Results

UNNAMED = "tables"  # a set without a name, beside a ledger, whose own sigmas have none


@dataclass(frozen=True)
class Reported:
    """A method as its authors report it, and notes about its table. ``set`` begins the names of its set, if any."""

    given: Given
    method: Derived
    notes: tuple[str, ...]
    set: str | None = None


def as_reported(name: str, results: Results, sigma: float | None = None) -> Derived:
    """Results of a table as a method."""
    guarantee = "as its authors say: a table has no votes to derive it from"
    return Derived(name, "as reported", guarantee, False, results, None, np.zeros(0, dtype=np.int64), sigma)


def read_reported(given: Given, name: str, beside_ledger: bool) -> Reported:
    """The method of a table, or of the logs of a selector, a certifier and a core network.

    A sigma stands before the file or in its column sigma. Such a table is called NAME/sigma-0.5, without a name
    sigma-0.5.
    """
    if len(given.paths) > 1:
        if given.sigma is not None:
            raise BadSetting(
                f"{given.path} and what follows it are the logs of one method, and no fixed sigma; leave out "
                f"@{given.sigma:g}"
            )
        table = read_composed(given.paths)
        method = replace(as_reported(name, table.results), title=TITLE, guarantee=GUARANTEE)
        return Reported(given, method, table.notes)
    table = read_table(given.path)
    if None not in (given.sigma, table.sigma) and given.sigma != table.sigma:
        raise BadSetting(f"{given.path} has sigma {table.sigma:g} in its column, and not {given.sigma:g}")
    sigma = table.sigma if given.sigma is None else given.sigma
    if sigma is None:
        return Reported(given, as_reported(name, table.results), table.notes)
    own = given.name or UNNAMED * beside_ledger
    prefix = own + "/" * bool(own)
    return Reported(given, as_reported(prefix + sigma_method(sigma), table.results, sigma), table.notes, prefix)


def demand_sets(tables: Sequence[Reported]) -> None:
    """Refuse a set in which a sigma is missing or stands twice."""
    first: dict[tuple[str, float | None], Reported] = {}
    for table in (t for t in tables if t.set is not None):
        known = first.setdefault((str(table.set), table.method.sigma), table)
        if known is not table:
            raise BadSetting(
                f"sigma {table.method.sigma:g} stands twice: {known.given.path} and {table.given.path}; leave one out, "
                "or give sets names, as NAME@SIGMA=FILE"
            )
    named = {table.given.name for table in tables if table.set is not None} - {""}
    for table in tables:
        if table.set is None and table.given.name in named:
            raise BadSetting(
                f"{table.given.path} has no sigma, and other tables of {table.given.name} have one; write "
                f"{table.given.name}@SIGMA=FILE"
            )


def oracles_of_sets(found: Sequence[Derived], sets: Iterable[str | None]) -> Iterator[Derived]:
    """The oracle of each set of tables with several sigmas, from methods on the same inputs in the same order."""
    for prefix in (prefix for prefix in dict.fromkeys(sets) if prefix is not None):
        fixed = FixedSigmas.among(m for m in found if m.sigma is not None and m.name == prefix + sigma_method(m.sigma))
        if fixed is not None:
            yield replace(fixed.oracle, name=prefix + fixed.oracle.name)
