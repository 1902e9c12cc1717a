"""Certificates of a dataset under one model, or under several that vote side by side, into a ledger each."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from dualrs.certificates import Rule
from dualrs.data.dataset import Dataset
from dualrs.errors import BadSetting
from dualrs.jobs.model import Model
from dualrs.jobs.opening import Asked, earlier_header, header_of, open_ledger, settled_seed, wanted_inputs
from dualrs.jobs.recount import noise_of
from dualrs.jobs.reuse import reusable, take_over
from dualrs.policy import Target
from dualrs.sampling.collect import Member, Report, collect_together
from dualrs.schemes import ALL, NEEDED
from dualrs.storage.lease import Lease
from dualrs.storage.ledger import Ledger
from dualrs.votes import SamplingPlan, Tally


@dataclass(frozen=True)
class Certification:
    """A model, the rule it is certified under, and the ledger for it.

    ``reuse`` is an earlier ledger: the votes of every network that it holds at the same sigma are copied and not drawn
    again. ``tuned`` is for the header: on which inputs a rule was chosen, if that is known.
    """

    model: Model
    rule: Rule[Any]
    path: Path
    reuse: Path | None = None
    tuned: Mapping[str, str] = field(default_factory=dict)


def certify_dataset(
    model: Model,
    dataset: Dataset,
    path: Path,
    *,
    plan: SamplingPlan,
    alpha: float,
    rule: Rule[Any],
    seed: int | None = None,
    indices: Sequence[int],
    all_votes: bool = False,
    target: Target | None = None,
    reuse: Path | None = None,
    tuned: Mapping[str, str] | None = None,
    command: str = "",
    report: Report | None = None,
) -> None:
    """Certify the inputs at ``indices`` into the ledger at ``path``: `certify_together` with one model."""
    certify_together(
        [Certification(model, rule, path, reuse, tuned or {})], dataset, plan=plan, alpha=alpha, seed=seed,
        indices=indices, all_votes=all_votes, target=target, command=command, report=report,
    )  # fmt: skip


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
) -> None:
    """Certify the inputs at ``indices`` into a ledger for each model; what is there already is kept and not redone.

    Models vote on the same noisy copies of an input, which are drawn, and denoised, once for all that want them at the
    same time. Their votes are those that each would have had by itself.

    ``all_votes`` asks every candidate at its sigma, not only those that the rule can use, so that every other way to
    certify can be derived from the ledger. With one sigma there is nothing more to ask. Under a plan with looks,
    ``target`` says when sampling may stop.

    Without a ``seed`` the run has that of the ledger that it goes on with or, if it is new, a secret one. Votes are
    committed batch by batch. The votes of a run that was killed at any moment, and resumed, are those of an unbroken
    one.
    """
    if plan.adaptive and target is None:
        raise BadSetting("a plan with looks needs a target, which says when sampling may stop")
    if len({one.path.resolve() for one in certifications}) < len(certifications):
        raise BadSetting("two models would write to one ledger; give each a file of its own")
    with ExitStack() as stack:
        leases = [stack.enter_context(Lease(one.path)) for one in certifications]
        earlier = [earlier_header(one.path, one.reuse) for one in certifications]
        seed = settled_seed(seed, earlier)
        headers, streams = [], []
        for one, before in zip(certifications, earlier, strict=True):
            one.rule.check(plan, alpha)
            votes = ALL if all_votes and len(one.model.models) > 1 else NEEDED
            asked = Asked(one.rule.name, alpha, plan, seed, indices, command, votes, target, one.tuned)
            header = header_of(one.model, dataset, asked, before)
            headers.append(header)
            streams.append(
                [] if one.reuse is None else reusable(one.model, dataset, one.path, header, indices, one.reuse)
            )
        members = []
        for one, lease, header, found in zip(certifications, leases, headers, streams, strict=True):
            ledger = stack.enter_context(
                open_ledger(one.model, dataset, lease, header, indices, reuse=one.reuse, report=report)
            )
            if one.reuse is not None:
                take_over(ledger, one.reuse, found)
            finish = partial(_conclude, ledger, one.rule)
            members.append(Member(one.model.engine, header.wants, plan, finish, ledger, ledger.concluded()))
        inputs, done = wanted_inputs(dataset, indices, *(member.done for member in members))
        collect_together(members, inputs, noise_of(headers[0]), report=report, done=done)


def _conclude(ledger: Ledger, rule: Rule[Any], input_id: str, tally: Tally, seconds: float) -> None:
    header = ledger.header
    ledger.conclude(input_id, rule.certify(header.scheme.gather([tally], header.plan), header.alpha)[0], seconds)
