"""Ace: a router that sees no noise and states how far its choice stands, with smoothed experts and perhaps a core.

Mueller et al. 2021 certify the router so. As that spends nothing, the class has all of alpha.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, final

from dualrs.certificates import Rule
from dualrs.certificates.rule import concluded
from dualrs.certificates.two_stage import nosplit
from dualrs.errors import BadSetting
from dualrs.schemes.dual import two_stage_rule
from dualrs.schemes.mixed import MixedVotes, Routed, drawn_by_two, mixed
from dualrs.theory.budget import ErrorBudget
from dualrs.votes import BINS, Stage, Stream, plain

ACE = "ace"


@final
@dataclass(frozen=True)
class AceVotes(MixedVotes):
    """What a router states that sees no noise, and votes of each candidate's expert."""

    whose: ClassVar[str] = "a router without noise and experts"
    how: ClassVar[str] = "run `dualrs certify --sigma-e 0` with a router and --sigmas into another ledger"


ACE_RULE: Rule[MixedVotes] = Rule(
    ACE,
    "ACE, router without noise (Mueller et al.)",
    AceVotes,
    concluded(nosplit),
    lambda alpha: ErrorBudget(alpha).nosplit().classifier,
    drawn_by_two,
)


@final
@dataclass(frozen=True)
class Ace(Routed):
    """A router without noise; candidates are ``sigmas``, and before them as many ``cores`` without noise, 0 or 1."""

    cores: float = 0.0

    name: ClassVar[str] = "ace"
    reads: ClassVar[type[MixedVotes]] = AceVotes
    compared: ClassVar[tuple[str, ...]] = (ACE, "fusion")

    @property
    def candidates(self) -> tuple[float, ...]:
        """The core, if there is one, and the sigmas."""
        return (0.0, *self.sigmas) if self.cores else self.sigmas

    @property
    def _router(self) -> tuple[list[Stream], int]:
        """One answer, with its radius."""
        return [plain(Stage.ROUTER)], BINS

    def _own_rule(self, name: str | None) -> Rule[MixedVotes]:
        """Rule `ace`, or `fusion`, which reads the other experts too."""
        if name in (None, ACE):
            return ACE_RULE
        found = two_stage_rule(name or "")
        if found is None or found.helpful is None:
            raise BadSetting(
                f"rule {name} does not fit a router without noise, which spends no alpha; use ace or fusion"
            )
        made = mixed(found, self.reads)
        # The router needs no votes, and a pair of bounds, at alpha/2 each, what two candidates do.
        return replace(made, strictest_level=ACE_RULE.strictest_level) if found.name == "fusion" else made
