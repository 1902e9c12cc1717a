"""Votes of an earlier run that this one would draw again: copied instead."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dualrs.data.dataset import Dataset
from dualrs.errors import BadSetting, ForeignLedger
from dualrs.jobs.model import Model
from dualrs.jobs.recount import demand_same, model_name
from dualrs.sampling.collect import Report
from dualrs.sampling.noise import SHARED, noise_stream
from dualrs.storage.header import Header
from dualrs.storage.ledger import Ledger
from dualrs.votes import UNIT, Counts, Stream, Unit

# What decides no vote of a network that both runs have, besides the kind of run and its settings. Pixels and ids are in
# the fingerprint of the dataset, so its name may differ; of two runs, the one with more votes begins with those of the
# other.
_FREE_TO_DIFFER = ("scheme", "rule", "alpha", "n", "models", "identity", "dataset", "votes")


def reusable(
    model: Model,
    dataset: Dataset,
    path: Path,
    header: Header,
    indices: Sequence[int],
    reuse: Path,
    report: Report | None = None,
) -> list[Stream]:
    """The streams of an earlier ledger that hold the votes this run would draw; refuses one without any.

    Nothing is written yet: a refusal leaves no ledger behind. To the streams of a ledger with fewer votes this run will
    add its own. A certificate is about one model, so a unit of each of them is drawn again first, on every input.
    """
    if reuse.resolve() == path.resolve():
        raise BadSetting(f"{reuse} cannot be reused for itself; the same command goes on with it anyway")
    if header.looks:
        raise BadSetting("an adaptive run decides from vote to vote what it needs, and cannot take votes over")
    with Ledger.open(reuse) as old:
        old.trust_header()
        if old.header.scheme.purpose is not header.scheme.purpose:
            raise ForeignLedger(f"{reuse} holds {old.header.contents}, which {header.contents} cannot be made from")
        free = {*_FREE_TO_DIFFER, *old.header.scheme.settings, *header.scheme.settings} - {"classes"}
        if "" in (old.header.randomness, header.randomness):  # no network that draws is in both
            free.add("randomness")
        if old.header.noise.removesuffix(SHARED) == header.noise.removesuffix(SHARED):  # streams are asked one by one
            free.add("noise")
        if differences := old.header.differences(header, apart_from=free):
            raise ForeignLedger(
                f"no votes of {reuse} can be reused: {'; '.join(differences)}. Take the same settings, or start afresh"
            )
        longer = header.n > old.header.n
        if longer and old.header.n < UNIT:
            raise ForeignLedger(
                f"no votes of {reuse} can be reused: it has {old.header.n:,} a stream, and a longer run takes over "
                f"units of {UNIT:,}. Start afresh"
            )
        asked = {dataset.ids[i] for i in indices}
        streams, reasons = [], {}
        for stream in header.scheme.streams:
            if not header.plan.votes(stream.part):
                continue
            name, theirs = (model_name(stream.stage, stream.sigma, known.models) for known in (header, old.header))
            kind = f"the {stream.stage} at sigma {stream.sigma:g}"
            if stream not in old.header.scheme.streams:
                reasons[name] = f"it has no votes of {kind}"
            elif old.header.models[theirs] != header.models[name]:
                reasons[name] = f"another network was {kind}"
            elif _copies(old.header, stream) != _copies(header, stream):
                reasons[name] = f"{kind} voted on other noisy copies, as a router at that sigma shares its own"
            elif theirs != name:
                reasons[name] = f"its network of {kind} votes at other sigmas too, so that answers cannot be compared"
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
        demand_same(model, dataset, old, streams, inputs=asked if longer else (), report=report)
        return streams


def _copies(header: Header, stream: Stream) -> Stream:
    """The stream whose noisy copies a stream of a run votes on."""
    return noise_stream(stream, header.noise, header.scheme.router_sigma)


def earlier_looks(header: Header, reuse: Path) -> dict[str, str]:
    """At which n, and at which alpha each, the first votes of this run were certified before, of the same model."""
    with Ledger.open(reuse) as ledger:
        old = ledger.header
    if old.n >= header.n or not old.certifies or (old.scheme, old.models) != (header.scheme, header.models):
        return {}
    return {**old.earlier, str(old.n): repr(old.alpha)}


class Earlier:
    """What was taken over: how many votes, and those that a longer run asks for as it comes to them.

    Of a stream, all that the earlier run planned has to be there: who drew the rest of it would be another.
    """

    def __init__(self, votes: int = 0, ledger: Ledger | None = None, streams: Collection[Stream] = ()) -> None:
        self.votes, self._ledger, self._streams = votes, ledger, streams

    def __call__(self, unit: Unit) -> Counts | None:
        """The counts of a unit, if the earlier run has it."""
        old = self._ledger
        if old is None or unit.stream not in self._streams or not old.has_stream(unit.input_id, unit.stream):
            return None
        counts = old.counts(unit)
        self.votes += 0 if counts is None else unit.votes
        return counts


@contextmanager
def taken_over(ledger: Ledger, reuse: Path | None, streams: Collection[Stream]) -> Iterator[Earlier]:
    """Copy the votes of some streams of an earlier ledger; of one with fewer votes, as they are asked for.

    A longer run may not want every stream of a shorter one, and a stream that is begun has to be finished.
    """
    if reuse is None:
        yield Earlier()
        return
    with Ledger.open(reuse) as old:
        longer = ledger.header.n > old.header.n
        yield Earlier(0, old, streams) if longer else Earlier(ledger.take_over(old, streams))
