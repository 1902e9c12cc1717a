"""A campaign: every certificate of a ledger is attacked, into a file that can be resumed."""

from collections.abc import Callable, Collection
from dataclasses import asdict
from pathlib import Path

from dualrs.attacks.attacker import Attacker
from dualrs.attacks.search import Effort
from dualrs.certificates import Outcome
from dualrs.data.dataset import Dataset
from dualrs.errors import ForeignLedger
from dualrs.jobs.redraw import demand_data, other_networks
from dualrs.sample import Sample
from dualrs.smoothed import SmoothedModel, answering
from dualrs.storage.attacks import AttackFile, Attacks
from dualrs.storage.lease import Lease
from dualrs.storage.ledger import Ledger


def attack_ledger(
    model: SmoothedModel,
    dataset: Dataset,
    ledger: Path,
    out: Path,
    *,
    method: str | None = None,
    indices: Collection[int] | None = None,
    effort: Effort | None = None,
    bracket: bool = True,
    straight: bool = False,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> Attacks:
    """Attack the certificates of a ledger, by its own rule or by another ``method`` that its votes allow.

    Those at the positions ``indices`` of the dataset are attacked, or all. The model and the data must be those of the
    run. What ``out`` has already is kept; ``report`` is told how many are done, of how many.
    """
    effort = effort or Effort()
    with Ledger.open(ledger) as opened:
        demand_data(dataset, opened)
        header = opened.header
        model.engine.prepare(dataset.image(0))
        if problems := other_networks(model, header):
            raise ForeignLedger(f"{ledger}: {problems[0]}; an attack needs the networks of the run")
        position = {row.id: row.position for row in opened.inputs()}
    sample = Sample.open(ledger)
    name = sample.rule.name if method is None else method
    attacked, rule = answering(model, name)
    certificates = sample.certify(name)
    wanted = [
        (input_id, certificate)
        for input_id, certificate in zip(sample.ids, certificates, strict=True)
        if certificate.outcome is Outcome.CERTIFIED and (indices is None or position[input_id] in indices)
    ]
    settings = {
        "run": header.fingerprint,
        "method": name,
        "alpha": sample.alpha,
        "bracket": bracket,
        "straight": straight,
        "effort": asdict(effort),
    }
    attacker = Attacker(attacked, rule, sample.alpha, len(wanted), effort, straight=straight)
    with Lease(out), AttackFile(out, settings) as file:
        for done, (input_id, certificate) in enumerate(wanted):
            report(done, len(wanted))
            if input_id not in file.done:
                image = dataset.image(position[input_id])
                file.add(attacker.attack(input_id, image, certificate, bracket=bracket))
        report(len(wanted), len(wanted))
        return Attacks(tuple(file.done[input_id] for input_id, _ in wanted), sample.alpha, settings)
