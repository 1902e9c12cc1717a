"""Run: what the page says about a ledger.

Enters: a ledger. Leaves: its votes, its methods, why each input has its radius, and what its votes do not allow.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dualrs.errors import BadTable
from dualrs.report.attacked import Campaigns, left_standing
from dualrs.report.compare import beside
from dualrs.report.gallery import Copies, Image, Why, explain_votes
from dualrs.report.methods import Derived, methods
from dualrs.report.nearest import Nearest
from dualrs.report.page.packing import Json, pack, pack_gathered
from dualrs.storage.header import Header
from dualrs.storage.ledger import Ledger
from dualrs.storage.results import read_sampled
from dualrs.storage.verify import Report, silent

# The kinds of run whose rules the script of the page works out; of others it shows what was derived.
LIVE = ("single", "dual", "cascade", "aces", "ace", "mixed", "backed")
MOST_COPIED = 100  # inputs with copies at every sigma: each weighs as much as ten images
MOST_INPUTS = 1000  # of a gallery; more make a page that no browser likes


@dataclass(frozen=True, eq=False)
class Run:
    """A ledger as the page shows it; ``notes`` says what its votes do not allow.

    ``votes`` are packed for the script, and ``attacks`` those on an input, by its id.
    """

    name: str
    header: Header
    methods: Mapping[str, Derived]
    whys: Sequence[Why]
    notes: tuple[str, ...]
    votes: Json
    attacks: Mapping[str, Sequence[Nearest]] = field(default_factory=dict)

    @property
    def settled(self) -> str:
        """Why the page cannot certify these votes at other settings; empty if it can."""
        if self.header.scheme.name in LIVE:
            return ""
        return (
            f"The formula of rule {self.header.rule} is not among those that this page works out, so that nothing can "
            "be moved: its certificates are shown as dualrs derived them, at the settings of the run"
        )

    @property
    def inputs(self) -> tuple[str, ...]:
        """Of which dataset, and which of its inputs, the run is about."""
        return self.header.dataset_fingerprint, *(why.id for why in self.whys)

    @property
    def step(self) -> int:
        """How many inputs there are for each one in the gallery."""
        return math.ceil(len(self.whys) / MOST_INPUTS)

    @property
    def copied(self) -> Sequence[Why]:
        """The inputs of the gallery of which copies are shown, where there are any."""
        return self.shown[:: math.ceil(len(self.shown) / MOST_COPIED)]

    @property
    def shown(self) -> Sequence[Why]:
        """The inputs of the gallery."""
        return self.whys[:: self.step]


@dataclass(frozen=True)
class Pictures:
    """The images of a run's inputs by id, and the names of their classes; a note where there are none.

    ``copies`` are those that the networks of the run saw, of some inputs.
    """

    images: Mapping[str, Image]
    names: Sequence[str] | None = None
    note: str = ""
    copies: Mapping[str, Copies] = field(default_factory=dict)


def read_run(
    ledger: Ledger,
    name: str,
    report: Report = silent,
    tables: Mapping[str, Path] | None = None,
    campaigns: Campaigns | None = None,
) -> Run:
    """Everything that the page says about a ledger, from its votes.

    ``tables`` are results of others on its inputs, and ``campaigns`` attacks, of which those on this run are taken.
    """
    header = ledger.header
    sampled = read_sampled(ledger)
    if not len(sampled.ids):
        raise BadTable(f"no input of {ledger.path} has a certificate yet; the command that began it goes on")
    notes = []
    if header.looks:
        notes.append(
            "The best sigma, the regret and the slack of the routing need votes up to a fixed n; this run is adaptive: "
            "it stopped where its certificates needed no more."
        )
    elif header.scheme.routes and not sampled.complete.all():
        notes.append(
            "The best sigma and the regret of the routing need the votes of every sigma: `dualrs certify --all-votes`."
        )
    found = methods(ledger, report=report)
    for called, table in (tables or {}).items():
        found[called] = beside(ledger.path, found, called, table)
    attacks: dict[str, list[Nearest]] = {}
    for path, attack in ({} if campaigns is None else campaigns.against(ledger)).items():
        for row in attack:
            attacks.setdefault(row.id, []).append(Nearest(attack.settings["method"], row))
        try:
            standing = left_standing(ledger, path, attack)
            found[standing.name] = standing
        except BadTable as lacking:
            notes.append(f"No curve of what attacks left standing: {lacking}.")
    return Run(
        name=name,
        header=header,
        methods=found,
        whys=explain_votes(sampled, header.own_rule, header.alpha),
        notes=tuple(notes),
        votes=pack(ledger, sampled.ids.tolist()) if header.scheme.name in LIVE else pack_gathered(sampled),
        attacks=attacks,
    )
