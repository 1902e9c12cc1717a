"""Votes, and certificates, of one model on a dataset, or of several that vote side by side, into a ledger each."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Required, TypedDict, Unpack

from dualrs.certificates import Rule
from dualrs.data.dataset import Dataset
from dualrs.errors import BadSetting
from dualrs.jobs.model import Model
from dualrs.jobs.opening import (
    Asked,
    earlier_header,
    header_of,
    level_batches,
    name_inputs,
    numbered_for,
    settled_seed,
    wanted_inputs,
)
from dualrs.jobs.recount import demand_same, noise_of
from dualrs.jobs.reuse import earlier_looks, reusable, taken_over
from dualrs.policy import Target
from dualrs.sampling.collect import Member, Report, collect_together
from dualrs.schemes import ALL, NEEDED
from dualrs.storage.lease import Lease
from dualrs.storage.ledger import Ledger
from dualrs.votes import SamplingPlan, Tally


@dataclass(frozen=True)
class Certification:
    """A model, the rule it is certified under, None where its votes are to train with, and the ledger for it.

    ``reuse`` is an earlier ledger: the votes of every network that it holds at the same sigma are copied and not drawn
    again, and gone on from if it has fewer. ``tuned`` is for the header: on which inputs a rule was chosen, if that is
    known.
    """

    model: Model
    rule: Rule[Any] | None
    path: Path
    reuse: Path | None = None
    tuned: Mapping[str, str] = field(default_factory=dict)


class Run(TypedDict, total=False):
    """What every job is told: see `certify_together`."""

    seed: int | None
    indices: Required[Sequence[int]]
    command: str
    report: Report | None


class CertifyingRun(Run, total=False):
    """And a job that certifies."""

    plan: Required[SamplingPlan]
    alpha: Required[float]
    all_votes: bool
    target: Target | None


def certify_dataset(
    model: Model,
    dataset: Dataset,
    path: Path,
    *,
    rule: Rule[Any],
    reuse: Path | None = None,
    tuned: Mapping[str, str] | None = None,
    **run: Unpack[CertifyingRun],
) -> None:
    """Certify the inputs at ``indices`` into the ledger at ``path``: `certify_together` with one model."""
    certify_together([Certification(model, rule, path, reuse, tuned or {})], dataset, **run)


def certify_together(
    certifications: Sequence[Certification],
    dataset: Dataset,
    *,
    plan: SamplingPlan,
    alpha: float,
    seed: int | None = None,
    indices: Sequence[int],
    all_votes: bool = False,
    target: Target | None = None,
    command: str = "",
    report: Report | None = None,
) -> int:
    """Certify the inputs at ``indices`` into a ledger for each model; what is there already is kept and not redone.

    Models vote on the same noisy copies of an input, which are drawn, and denoised, once for all that want them at the
    same time. Their votes are those that each would have had by itself.

    ``all_votes`` asks every candidate at its sigma, not only those that the rule can use, so that every other way to
    certify can be derived from the ledger. With one sigma there is nothing more to ask. Under a plan with looks,
    ``target`` says when sampling may stop.

    Without a ``seed`` the run has that of the ledger that it goes on with or, if it is new, a secret one. Votes are
    committed batch by batch. The votes of a run that was killed at any moment, and resumed, are those of an unbroken
    one. Returns how many votes were copied from earlier ledgers.
    """
    if plan.adaptive and target is None:
        raise BadSetting("a plan with looks needs a target, which says when sampling may stop")
    for one in certifications:
        if one.rule is not None:
            one.rule.check(plan, alpha)
    if len({one.path.resolve() for one in certifications}) < len(certifications):
        raise BadSetting("two models would write to one ledger; give each a file of its own")
    with ExitStack() as stack:
        leases = [stack.enter_context(Lease(one.path)) for one in certifications]
        earlier = [earlier_header(one.path, one.reuse) for one in certifications]
        seed = settled_seed(seed, earlier)
        headers, streams = [], []
        numbered = [numbered_for(one.model, dataset) for one in certifications]
        level_batches([one.model for one in certifications], earlier, dataset, indices)
        for one, before, data in zip(certifications, earlier, numbered, strict=True):
            votes = ALL if all_votes and len(one.model.models) > 1 else NEEDED
            name = "" if one.rule is None else one.rule.name
            asked = Asked(name, alpha, plan, seed, indices, command, votes, target, one.tuned)
            header, found = header_of(one.model, data, asked, before), []
            if one.reuse is not None:
                header = replace(header, earlier=earlier_looks(header, one.reuse))
                found = reusable(one.model, data, one.path, header, indices, one.reuse, report)
            headers.append(header)
            streams.append(found)
        members, taken = [], []
        for one, data, lease, header, found in zip(certifications, numbered, leases, headers, streams, strict=True):
            ledger = stack.enter_context(Ledger.create_or_resume(one.path, header, lease))
            every = header.scheme.streams
            demand_same(one.model, data, ledger, every, unfinished=True, reuse=one.reuse, report=report)
            name_inputs(ledger, data, indices)
            taken.append(stack.enter_context(taken_over(ledger, one.reuse, found)))
            finish = partial(_conclude, ledger)
            members.append(Member(one.model.engine, header.wants, plan, finish, ledger, ledger.finished(), taken[-1]))
        inputs, done = wanted_inputs(dataset, indices, *(member.done for member in members))
        collect_together(members, inputs, noise_of(headers[0]), report=report, done=done)
        return sum(earlier.votes for earlier in taken)


def _conclude(ledger: Ledger, input_id: str, tally: Tally, seconds: float) -> None:
    header = ledger.header
    if header.certifies:
        votes = header.scheme.gather([tally], header.plan)
        ledger.conclude(input_id, header.own_rule.certify(votes, header.alpha)[0], seconds)
