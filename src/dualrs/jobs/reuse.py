"""Votes of an earlier run that this one would draw again: copied instead."""

from collections.abc import Collection, Sequence
from pathlib import Path

from dualrs.data.dataset import Dataset
from dualrs.errors import BadSetting, ForeignLedger
from dualrs.jobs.model import Model
from dualrs.jobs.recount import demand_same, model_name
from dualrs.storage.header import Header
from dualrs.storage.ledger import Ledger
from dualrs.votes import Stream

# What decides no vote of a network that both runs have. Pixels and ids are in the fingerprint of the dataset, so its
# name may differ; an earlier run with more votes begins with those of this one.
_FREE_TO_DIFFER = (
    "scheme", "rule", "alpha", "n", "sigmas", "sigma_e", "confidences", "models", "identity", "dataset", "votes",
)  # fmt: skip


def reusable(
    model: Model, dataset: Dataset, path: Path, header: Header, indices: Sequence[int], reuse: Path
) -> list[Stream]:
    """The streams of an earlier ledger that hold the votes this run would draw; refuses one without any.

    Nothing is written yet: a refusal leaves no ledger behind.
    """
    if reuse.resolve() == path.resolve():
        raise BadSetting(f"{reuse} cannot be reused for itself; the same command goes on with it anyway")
    if header.looks:
        raise BadSetting("an adaptive run decides from vote to vote what it needs, and cannot take votes over")
    with Ledger.open(reuse) as old:
        old.trust_header()
        if old.header.scheme.purpose is not header.scheme.purpose:
            raise ForeignLedger(f"{reuse} holds {old.header.contents}, which {header.contents} cannot be made from")
        if differences := old.header.differences(header, apart_from=_FREE_TO_DIFFER):
            raise ForeignLedger(
                f"no votes of {reuse} can be reused: {'; '.join(differences)}. Take the same settings, or start afresh"
            )
        if old.header.n < header.n:
            raise ForeignLedger(
                f"no votes of {reuse} can be reused: it has {old.header.n:,} a stream, and this run wants {header.n:,}"
            )
        asked = {dataset.ids[i] for i in indices}
        streams, reasons = [], {}
        for stream in header.scheme.streams:
            if not header.plan.votes(stream.part):
                continue
            name, kind = model_name(stream.stage, stream.sigma), f"the {stream.stage} at sigma {stream.sigma:g}"
            if stream not in old.header.scheme.streams:
                reasons[name] = f"it has no votes of {kind}"
            elif old.header.models[name] != header.models[name]:
                reasons[name] = f"another network was {kind}"
            elif old.header.identity[name] != header.identity[name]:
                raise ForeignLedger(
                    f"{reuse} was not written by this model: {kind} answers otherwise than it did, with the same "
                    "weights; its code, a constant in it, a library or the hardware has changed. Start afresh"
                )
            elif not asked & old.sampled(stream):
                reasons[name] = f"it has no votes of {kind} on the inputs asked for"
            else:
                streams.append(stream)
        if not streams:
            raise ForeignLedger(f"no votes of {reuse} can be reused: {'; '.join(reasons.values())}. Start afresh")
        demand_same(model, dataset, old, streams)
        return streams


def take_over(ledger: Ledger, reuse: Path, streams: Collection[Stream]) -> int:
    """Copy the votes of some streams; the number of votes that are new."""
    with Ledger.open(reuse) as old:
        return ledger.take_over(old, streams)
