"""A campaign: every certificate of a ledger is attacked, into a file that can be resumed."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from dualrs.attacks.attacker import VERSION, Attacker, Terms
from dualrs.attacks.search import Effort
from dualrs.attacks.workers import Job, on_workers
from dualrs.certificates import Outcome
from dualrs.data.dataset import Dataset
from dualrs.errors import ForeignLedger
from dualrs.jobs.redraw import demand_data, other_networks
from dualrs.sample import Sample
from dualrs.smoothed import SmoothedModel, answering
from dualrs.storage.attacks import Attack, AttackFile, Attacks
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
    workers: int | None = None,
    address: str | None = None,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> Attacks:
    """Attack the certificates of a ledger, by its own rule or by another ``method`` that its votes allow.

    Those at the positions ``indices`` of the dataset are attacked, or all. The level of a verdict is alpha over the
    number of all certificates either way, so that a campaign may be run in parts. The model and the data must be those
    of the run. What ``out`` has already is kept; where a ``bracket`` is asked for and a certificate there was only
    tried, the search beyond its radius is added. With ``workers``, so many processes take inputs, here or on the Ray
    cluster at ``address``. ``report`` is told how many are done, of how many.
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
    certified = {
        input_id: certificate
        for input_id, certificate in zip(sample.ids, sample.certify(name), strict=True)
        if certificate.outcome is Outcome.CERTIFIED
    }
    wanted = [i for i in certified if indices is None or position[i] in indices]
    terms = Terms(rule, sample.alpha, len(certified), effort, bracket=bracket, straight=straight)
    settings = {"run": header.fingerprint, "method": name, "version": VERSION, **asdict(terms)}
    del settings["rule"], settings["bracket"]  # the one is told by the method, the other by each row
    with Lease(out), AttackFile(out, settings) as file:
        done = {i for i, row in file.done.items() if row.searched or not bracket}
        jobs = [Job(i, dataset.image(position[i]), certified[i], file.done.get(i)) for i in wanted if i not in done]
        report(len(wanted) - len(jobs), len(wanted))
        for left, row in enumerate(_rows(attacked, terms, jobs, workers, address), 1 - len(jobs)):
            file.add(row)
            report(len(wanted) + left, len(wanted))
        return Attacks(tuple(file.done[i] for i in wanted), sample.alpha, settings)


def _rows(
    model: SmoothedModel, terms: Terms, jobs: Sequence[Job], workers: int | None, address: str | None
) -> Iterator[Attack]:
    """Attack inputs, here or on workers; rows come as they are done."""
    if workers is not None or address is not None:
        yield from on_workers(model, terms, jobs, workers, address)
        return
    attacker = Attacker(model, terms)
    for job in jobs:
        yield attacker.attack(*job)
