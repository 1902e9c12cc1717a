"""Sample: votes in hand. Certify them by any rule that they allow, keep them in a ledger, open a ledger again.

Enters: votes that were just drawn, or a ledger. Leaves: certificates, or a ledger. No network is needed.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from typing import Any

from dualrs.certificates import Certificates, Rule, spell_seed
from dualrs.schemes import Scheme
from dualrs.storage.header import Header
from dualrs.storage.ledger import Ledger
from dualrs.storage.results import demand_certificates, read_sampled
from dualrs.storage.rows import InputRow
from dualrs.votes import Counts, SamplingPlan, Unit


@dataclass(frozen=True, eq=False, repr=False)
class Sample:
    """The votes on a list of inputs, with the rule and alpha that were fixed before they were drawn.

    ``votes`` holds the counts in the form of the kind of run: a router's and its experts', or those of one sigma.
    ``labels`` are the true classes if a ledger has them, else None.
    """

    scheme: Scheme[Any]
    plan: SamplingPlan
    ids: tuple[str, ...]
    votes: Any
    rule: Rule[Any]
    alpha: float
    seed: int
    header: Callable[[], Header]
    inputs: Sequence[InputRow]
    units: Callable[[], Iterable[tuple[Unit, Counts]]]

    @classmethod
    def open(cls, path: str | PathLike[str]) -> "Sample":
        """The votes of a ledger that `certify`, `save` or the command line wrote, of all inputs that are done."""
        with Ledger.open(path) as ledger:
            demand_certificates(ledger)
            sampled, header = read_sampled(ledger), ledger.header
            done = set(sampled.ids.tolist())
            inputs = [row for row in ledger.inputs() if row.id in done]
        return cls(
            header.scheme, header.plan, tuple(sampled.ids.tolist()), sampled.votes, header.own_rule, header.alpha,
            header.seed, lambda: header, inputs, partial(_recorded, path),
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        inputs = f"{len(self)} input{'s' * (len(self) != 1)}"
        amount = f"{'at most ' if self.plan.adaptive else ''}n {self.plan.n:,}, n0 {self.plan.n0:,}"
        sigmas = ", ".join(f"{s:g}" for s in self.scheme.sigmas)
        return (
            f"<Sample: {inputs}, {self.scheme.name}, sigma {sigmas}, {amount}, rule {self.rule.name}, "
            f"alpha {self.alpha:g}, seed {spell_seed(self.seed)}>"
        )

    @property
    def labels(self) -> list[int | None]:
        """The true class of each input, where it is known."""
        known = {row.id: row.label for row in self.inputs}
        return [known[name] for name in self.ids]

    def certify(self, rule: str | None = None, alpha: float | None = None) -> Certificates:
        """Certificates under the rule and alpha of the sample. Name others to compare them side by side.

        The guarantee is that of the rule and alpha that were fixed before the votes were drawn.
        """
        chosen, level = self.rule if rule is None else self.scheme.rule(rule), self.alpha if alpha is None else alpha
        chosen.check(self.plan, level)
        return replace(chosen.certify(self.votes, level), seed=self.seed)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the votes and the certificates of the sample's own rule into a ledger, made new."""
        certificates = dict(zip(self.ids, self.certify(), strict=True))
        with Ledger.create_or_resume(path, self.header()) as ledger, ledger.all_or_none():
            ledger.add_inputs(self.inputs)
            for unit, counts in self.units():
                ledger.record(unit, counts)
            for name, certificate in certificates.items():
                ledger.conclude(name, certificate, 0.0)


def _recorded(path: str | PathLike[str]) -> list[tuple[Unit, Counts]]:
    with Ledger.open(path) as ledger:
        return list(ledger.units())
