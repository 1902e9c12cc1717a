"""verify: whether a ledger still says what its run recorded, and every certificate follows from its votes.

Enters: an open ledger. Leaves: a list of problems, each naming the input and what differs; empty if all is well.
Everything is read raw, row by row, so that one damaged row does not hide the others.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dualrs.certificates import Certificate
from dualrs.errors import DualrsError, LedgerError
from dualrs.storage.database import Row
from dualrs.storage.header import Header
from dualrs.storage.ledger import Ledger
from dualrs.storage.rows import CERTIFICATE_FIELDS, fills_blocks, named
from dualrs.votes import Policy, Stream, Tally

TOLERANCE = 1e-9  # relative, on radii: another release of scipy may round the last bits differently
RADII = ("radius", "r_sigma", "r_c")

_AT_ONCE = 1_000  # rows, or certificates, between two reports

Recorded = Mapping[str, object]  # a row of table certificates by column, whatever damage has put there
Report = Callable[[str, int, int], None]  # what is done just now, how much of it is through, of how much


def silent(what: str, done: int, total: int) -> None:
    """Report to no one."""


def verify(ledger: Ledger, report: Report = silent) -> list[str]:
    """Check header, inputs, votes and certificates, and derive every certificate again from its votes."""
    examination = _Examination(ledger, report)
    try:
        with ledger.snapshot():
            examination.run()
    except LedgerError as unreadable:
        examination.problems.append(str(unreadable))
    return examination.problems


@dataclass
class _Examination:
    """One pass over a ledger and what it has found so far."""

    ledger: Ledger
    report: Report
    problems: list[str] = field(default_factory=list)
    suspects: set[str] = field(default_factory=set)  # something is wrong with their votes: nothing is derived
    units: Counter[str] = field(default_factory=Counter)  # rows of votes per input
    tallies: dict[str, Tally] = field(default_factory=dict)  # one entry per stream and look: the sum over its units
    reached: dict[tuple[str, Stream], int] = field(default_factory=dict)  # where the last unit of a stream stopped

    def run(self) -> None:
        """Check table after table; certificates are derived last, from what proved sound."""
        if self.ledger.header_damage is not None:
            self.problems.append(self.ledger.header_damage)
        damage = [row[0] for row in self._rows("PRAGMA quick_check(5)") if row[0] != "ok"]
        self.problems += [f"the file is damaged: {what}" for what in damage]

        known = set()
        for row in self._rows("SELECT * FROM inputs ORDER BY position, id"):
            known.add(row[0])
            self._sound(self.ledger.rows.input, row)
        listed = {row.id for row in self.ledger.listed}
        self.problems += [
            f"input {row.id}: the header lists it, and it is not among the inputs"
            for row in self.ledger.listed
            if row.id not in known
        ]
        if self.ledger.header.format > 1 and self.ledger.header_damage is None:
            self.problems += [f"input {name}: the header does not list it" for name in sorted(known - listed, key=str)]
        total = sum(row[0] for row in self._rows("SELECT count(*) FROM votes"))
        for number, row in enumerate(self._rows("SELECT * FROM votes")):
            if number % _AT_ONCE == 0:
                self.report("reading votes", number, total)
            self.units[row[0]] += 1
            if not self._sound(self._take, row):
                self.suspects.add(row[0])
        recorded: dict[str, Recorded] = {}
        for row in self._rows("SELECT * FROM certificates"):
            self._sound(self.ledger.rows.certificate, row)
            recorded[row[0]] = dict(zip((*CERTIFICATE_FIELDS, "seconds", "units"), row[1:-1], strict=True))

        for input_id in {**self.units, **recorded}:
            if input_id not in known:
                self.problems.append(f"input {input_id}: it has votes or a certificate but is not among the inputs")
        for input_id, certificate in recorded.items():
            self._check_complete(input_id, certificate)
        if self.ledger.done and self.ledger.header_damage is None:
            certifies = self.ledger.header.certifies
            gone = "has no certificate" if certifies else "lacks votes"
            self.problems += [
                f"input {row.id}: the run was complete, and now it {gone}"
                for row in self.ledger.listed
                if row.id in known and not (row.id in recorded if certifies else self._has_all_votes(row.id))
            ]
        if self.ledger.header_damage is None:
            self._derive_again({i: c for i, c in recorded.items() if i not in self.suspects})
        elif recorded:
            self.problems.append("certificates were not derived again: the header no longer says by which rule")

    def _rows(self, query: str) -> Iterator[Row]:
        try:
            yield from self.ledger.database.rows(query)
        except LedgerError as unreadable:
            self.problems.append(str(unreadable))

    def _sound(self, look: Callable[[Row], object], row: Row) -> bool:
        try:
            look(row)
        except LedgerError as damage:
            self.problems.append(str(damage))
            return False
        return True

    def _take(self, row: Row) -> None:
        unit, counts = self.ledger.rows.unit(row)
        if not fills_blocks(unit, counts):
            raise LedgerError(f"{named(unit)}: the counts of a block do not sum to its votes")
        place = (unit.input_id, unit.stream)
        if unit.start < self.reached.get(place, 0):
            raise LedgerError(f"{named(unit)}: some of these votes are recorded twice")
        self.reached[place] = unit.stop
        step = self.ledger.header.plan.step_before(unit)
        self.tallies.setdefault(unit.input_id, Tally()).put(unit.stream, step, counts.sum(axis=0, dtype=np.int64))

    def _has_all_votes(self, input_id: str) -> bool:
        tally, plan = self.tallies.get(input_id, Tally()), self.ledger.header.plan
        planned = ((s, answers, plan.votes(s.part)) for s, answers in self.ledger.rows.answers.items())
        return all(tally.total(stream, answers).sum() == votes for stream, answers, votes in planned)

    def _check_complete(self, input_id: str, certificate: Recorded) -> None:
        held, plan = self.units[input_id], self.ledger.header.plan
        wrong = []
        if held != certificate["units"]:
            wrong.append(f"its certificate rests on {certificate['units']} units of votes, but {held} are here")
        elif not held:
            wrong.append("it has a certificate but no votes")
        elif input_id not in self.suspects:
            for stream, answers in self.ledger.rows.answers.items():
                votes = self.tallies[input_id].total(stream, answers).sum()
                if votes not in (0, *plan.steps_of(stream)):
                    kind = f"{stream.part} votes of {stream.stage} at sigma {stream.sigma}"
                    wrong.append(f"it has {votes} of {plan.steps_of(stream)[-1]} {kind}")
        if wrong:
            self.suspects.add(input_id)
            self.problems += [f"input {input_id}: {what}" for what in wrong]

    def _derive_again(self, recorded: Mapping[str, Recorded]) -> None:
        header, everything = self.ledger.header, list(recorded.items())
        for start in range(0, len(everything), _AT_ONCE):
            self.report("deriving certificates", start, len(everything))
            self._compare(everything[start : start + _AT_ONCE])
        if header.looks:
            self._decide_again(recorded)

    def _compare(self, recorded: Sequence[tuple[str, Recorded]]) -> None:
        """Derive some certificates again, and note what is recorded otherwise."""
        header = self.ledger.header
        tallies = [self.tallies[input_id] for input_id, _ in recorded]
        try:
            derived: list[Certificate | str] = list(_certify(header, tallies))
        except DualrsError:  # one input spoils the call for all: find out which
            derived = [_certify_alone(header, tally) for tally in tallies]
        for (input_id, kept), certificate in zip(recorded, derived, strict=True):
            if isinstance(certificate, str):
                self.problems.append(f"input {input_id}: nothing follows from its votes: {certificate}")
                continue
            for name in CERTIFICATE_FIELDS:
                value = getattr(certificate, name)
                if not _same(name, kept[name], value):
                    self.problems.append(f"input {input_id}: {name} is recorded as {kept[name]}, but is {value}")

    def _decide_again(self, recorded: Collection[str]) -> None:
        """Whether an adaptive run took the votes that its policy asks for, from the same votes, and no others."""
        policy = self.ledger.header.wants
        for number, input_id in enumerate(recorded):
            self.report("replaying decisions", number, len(recorded))
            if not _taken_by(policy, self.tallies[input_id], self.ledger.rows.answers):
                self.problems.append(f"input {input_id}: from these votes, the run would have asked for others")


def _taken_by(policy: Policy, held: Tally, answers: Mapping[Stream, int]) -> bool:
    """Whether a policy that sees these votes asks for all of them, and for no others."""
    again = Tally()
    for wanted in policy(again):
        for stream, upto in wanted.items():
            parts = held.counts.get(stream, {})
            again.counts[stream] = {start: counts for start, counts in parts.items() if start < upto}
            if again.total(stream, answers[stream]).sum() != upto:
                return False
    return {s: set(c) for s, c in again.counts.items()} == {s: set(c) for s, c in held.counts.items()}


def _certify(header: Header, tallies: list[Tally]) -> Iterator[Certificate]:
    return iter(header.own_rule.certify(header.scheme.gather(tallies, header.plan), header.alpha))


def _certify_alone(header: Header, tally: Tally) -> Certificate | str:
    try:
        return next(_certify(header, [tally]))
    except DualrsError as bad:
        return str(bad).removeprefix("input 0 ")  # its number within this call means nothing to a reader


def _same(name: str, recorded: object, derived: object) -> bool:
    if name in RADII and isinstance(recorded, float) and isinstance(derived, float):
        return math.isclose(recorded, derived, rel_tol=TOLERANCE, abs_tol=0.0)
    return bool(recorded == derived)
