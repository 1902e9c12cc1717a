"""Votes of a finished run, drawn again at random: whether they are votes of these networks on these images at all."""

from dataclasses import dataclass

from dualrs.data.classes import numbered_as
from dualrs.data.dataset import Dataset
from dualrs.errors import BadSetting, ForeignLedger
from dualrs.jobs.model import Model
from dualrs.jobs.opening import answers_of, fingerprints
from dualrs.jobs.recount import recount
from dualrs.sampling.auxiliary import RANDOMNESS
from dualrs.sampling.collect import Report
from dualrs.sampling.noise import FIRST_NOISE, NOISE, SHARED
from dualrs.storage.header import Header
from dualrs.storage.ledger import Ledger
from dualrs.storage.rows import named


@dataclass(frozen=True)
class Redrawn:
    """How many units a ledger holds, how many of them were drawn again, and a sentence for each that differs."""

    units: int
    drawn: int
    problems: list[str]

    def chance(self, share: float) -> float:
        """How likely at least one unit would have differed if this share of all units were invented."""
        return 1 - (1 - share) ** self.drawn


def redraw(model: Model, dataset: Dataset, ledger: Ledger, count: int, *, report: Report | None = None) -> Redrawn:
    """Draw ``count`` random units of a ledger again, with networks and data that must be those of its run.

    Guarantee: if a share f of the units was invented, the chance that none of them is found is at most (1 - f)^count,
    over the choice of units, which nobody can foresee.
    Assumes: a machine whose networks answer as those of the run did; another one may differ in single votes.
    """
    if count < 1:
        raise BadSetting(f"the number of units to draw again must be at least 1, got {count}")
    ledger.trust_header()
    header, engine = ledger.header, model.engine
    if header.noise.removesuffix(SHARED) not in (NOISE, FIRST_NOISE):
        raise ForeignLedger(f"the noise of {ledger.path} is {header.noise}, which this dualrs does not draw")
    if header.randomness not in ("", RANDOMNESS):
        raise ForeignLedger(f"networks of {ledger.path} drew from {header.randomness}, which this dualrs does not draw")
    demand_data(dataset, ledger)
    if engine.dtype != header.dtype:
        raise ForeignLedger(f"{ledger.path} was voted in {header.dtype}, and the networks run in {engine.dtype}")
    engine.keep_shape(header.batch_size)
    engine.keep_noise(header.noise)
    if engine.noise.endswith(SHARED) != header.noise.endswith(SHARED):
        raise ForeignLedger(
            f"the stages of {ledger.path} share noisy copies at sigma_e, and those of this model do not"
        )
    units = dict(ledger.random_units(count))
    problems: list[str] = []
    if units:
        tried = dataset.image(0)
        engine.prepare(tried)
        given = fingerprints(model)
        problems = other_networks(model, header)
        if not problems and header.identity and answers_of(model, dataset, tried) != header.identity:
            problems = ["the networks answer otherwise than those that voted: their code, a library or the hardware"]
        if given.keys() == header.models.keys():
            different = recount(model, dataset, ledger, units, report)
            problems += [f"{named(unit)}: drawn again, they come out differently" for unit in different]
    return Redrawn(ledger.unit_count(), len(units), problems)


def demand_data(dataset: Dataset, ledger: Ledger) -> None:
    """Refuse data that are not those of a run."""
    if numbered_as(dataset, ledger.header.class_names).fingerprint != ledger.header.dataset_fingerprint:
        about = ledger.header.dataset
        raise ForeignLedger(f"{ledger.path} is about {about}, and {dataset.name} is other data; give the same")


def other_networks(model: Model, header: Header) -> list[str]:
    """A sentence for each network of a model that is not that of a run."""
    given = fingerprints(model)
    return [
        f"the network {name!r} is not the one that voted: it has other weights or another shape"
        for name in sorted({*given, *header.models})
        if given.get(name) != header.models.get(name)
    ]
