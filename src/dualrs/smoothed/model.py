"""SmoothedModel: what all kinds of smoothed models have in common. Sample, certify, predict."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from dualrs.certificates import Certificate, Certificates, Prediction, Predictions, Rule
from dualrs.data.dataset import ArrayDataset, Dataset, as_dataset
from dualrs.data.images import content_id, is_picture
from dualrs.errors import BadModel, BadSetting
from dualrs.jobs import certify_dataset as certify_into
from dualrs.jobs.opening import Asked, header_of
from dualrs.models.noisy import NoisyModel
from dualrs.policy import Grid, Target, Tolerance
from dualrs.progress import Bar, has_screen
from dualrs.sample import Sample
from dualrs.sampling.collect import Input, Memory, Report, collect
from dualrs.sampling.engine import Engine
from dualrs.sampling.machine import EngineSettings
from dualrs.sampling.noise import NoiseSource, fresh_seed
from dualrs.sampling.work import Counting, Slot, slot_of
from dualrs.schemes import ALL, NEEDED, Scheme
from dualrs.storage.header import Header
from dualrs.storage.ledger import Ledger
from dualrs.storage.rows import InputRow
from dualrs.theory.looks import planned_looks
from dualrs.votes import Policy, Purpose, SamplingPlan, Stage, Tally

Images = Tensor | NDArray[np.generic] | Any  # or an image of Pillow, a list, a dataset or DataLoader of torch
Ids = Sequence[str | int]
Budget = Literal["fixed", "adaptive"]
OneImage = np.ndarray[tuple[int, int, int], Any]
Batch = np.ndarray[tuple[int, int, int, int], Any]


class Settings(TypedDict, total=False):
    """The settings of `SmoothedModel.certify`."""

    n: int
    n0: int
    alpha: float
    rule: str | None
    budget: Budget
    target: Target | None
    seed: int | None
    ids: Ids | None
    ledger: str | PathLike[str] | None
    progress: bool | Report | None


@dataclass(frozen=True)
class _Question:
    """What is asked about images: how many votes, for what, on which noise, and how that is shown."""

    plan: SamplingPlan
    rule: Rule[Any]
    alpha: float
    seed: int | None
    ids: Ids | None
    progress: bool | Report | None
    votes: str = NEEDED
    target: Target | None = None


class SmoothedModel:
    """Networks at their sigmas, an engine that counts their votes, and the kind of run that they make.

    ``batch_size`` is the fixed shape of every batch (by default what suits the networks; smaller if memory asks for
    it), ``device`` where the networks run (by default where they are), ``dtype`` the precision: "float32", "bfloat16"
    or "float16". ``compile`` has torch compile the networks, in place; where it cannot, they run as they are. With
    ``share``, an expert at the router's sigma votes on the router's noisy copies, which are then drawn and denoised
    once for both; either way the guarantee is the same.
    """

    def __init__(
        self,
        kind: Scheme[Any],
        models: Mapping[Slot, NoisyModel],
        *,
        share: bool = True,
        **engine: Unpack[EngineSettings],
    ) -> None:
        self.kind = kind  # before the networks were tried: without the number of classes
        self.models = models  # the network that votes at each stage and sigma
        # This process's own, unless workers take its place.
        self.engine: Counting = Engine(models, share=share, **engine)

    @property
    def scheme(self) -> Scheme[Any]:
        """The kind of run; the number of classes is known once the engine has seen an image."""
        answers = self.engine.answers
        planned = {(s.stage, s.sigma): count for s, count in self.kind.streams.items() if s.stage is Stage.ROUTER}
        for slot, count in planned.items():
            if answers[slot] != count:
                raise BadModel(
                    f"the {self.kind.router_name} has {answers[slot]} answers, but there are {count} candidate sigmas; "
                    "it must have one for each"
                )
        classified = next((count for (stage, _), count in answers.items() if stage is Stage.CLASS), 0)
        return self.kind.with_answers(classified)

    @property
    def sigmas(self) -> tuple[float, ...]:
        """The sigmas of its classifier."""
        return self.kind.sigmas

    def network(self, stage: Stage, sigma: float) -> nn.Module:
        """What votes at a stage and a sigma."""
        return self.models[slot_of(stage, sigma, self.models)].module

    def rule(self, name: str | None = None) -> Rule[Any]:
        """The rule of that name, if it fits this model; without a name, the default."""
        return self.kind.own_rule(name)

    def sample(
        self,
        x: Images,
        *,
        n: int = 10_000,
        n0: int = 100,
        alpha: float = 0.001,
        rule: str | None = None,
        seed: int | None = None,
        ids: Ids | None = None,
        progress: bool | Report | None = None,
    ) -> Sample:
        """Draw every vote on one image or a batch, to certify by any rule afterwards, and to keep: ``save``.

        The rule of a certificate has to be chosen before its votes are seen; comparing several side by side is fine.
        Without a ``seed``, a secret one is drawn.
        """
        plan = SamplingPlan(n0, n)
        return self._sample(x, _Question(plan, self.rule(rule), alpha, seed, ids, progress, votes=ALL))

    @overload
    def certify(self, x: OneImage, **settings: Unpack[Settings]) -> Certificate: ...

    @overload
    def certify(self, x: Batch, **settings: Unpack[Settings]) -> Certificates: ...

    @overload
    def certify(self, x: Images, **settings: Unpack[Settings]) -> Certificate | Certificates: ...

    def certify(
        self,
        x: Images,
        *,
        n: int = 10_000,
        n0: int = 100,
        alpha: float = 0.001,
        rule: str | None = None,
        budget: Budget = "fixed",
        target: Target | None = None,
        seed: int | None = None,
        ids: Ids | None = None,
        ledger: str | PathLike[str] | None = None,
        progress: bool | Report | None = None,
    ) -> Certificate | Certificates:
        """Certify one image (channels, height, width) or a batch; uint8, or float in [0, 1]. Also images of Pillow.

        ``rule`` is the default of the model unless named. ``budget`` "adaptive" takes at most n votes per stage, and
        stops where more would not help the ``target``: a `Grid` of radii, by default those of the tables, or a
        `Tolerance` on the radius. The guarantee is the same. Without a ``seed``, a secret one is drawn; the certificate
        records it. With a ``ledger``, votes are kept in that file: run the same call again to resume.
        ``progress`` shows a bar, by default where there is a terminal or a notebook, or is called as votes come in.
        """
        chosen = self.rule(rule)
        plan, target = sampling_plan(n0, n, budget, target)
        chosen.check(plan, alpha)
        asked = _Question(plan, chosen, alpha, seed, ids, progress, target=target)
        found = self._sample(x, asked).certify() if ledger is None else self._certify_into(x, Path(ledger), asked)
        return found[0] if _is_one(x) else found

    def _certify_into(self, x: Images, path: Path, asked: _Question) -> Certificates:
        names, inputs = _named(x, asked.ids)
        data = _dataset(inputs)
        with _reporting(asked.progress, "certifying", len(data)) as report:
            certify_into(
                self, data, path, plan=asked.plan, alpha=asked.alpha, rule=asked.rule, seed=asked.seed,
                indices=range(len(data)), target=asked.target, report=report,
            )  # fmt: skip
        with Ledger.open(path) as kept:
            certificates = kept.certificates()
            return replace(Certificates.stack([certificates[n].certificate for n in names]), seed=kept.header.seed)

    def predict(
        self,
        x: Images,
        *,
        n: int = 1_000,
        alpha: float = 0.001,
        rule: str | None = None,
        seed: int | None = None,
        ids: Ids | None = None,
        progress: bool | Report | None = None,
    ) -> Prediction | Predictions:
        """Classify one image or a batch, without a radius; wrong with probability at most alpha per image.

        ``rule`` matters for a cascade, where its name says which votes pass. Without a ``seed``, a secret one is drawn;
        it stands in the prediction.
        """
        chosen = self.rule(rule)
        plan = self.kind.predict_plan(n, chosen, alpha)
        source = NoiseSource(Purpose.PREDICT, fresh_seed() if seed is None else seed)
        names, inputs = self._tried(x, ids)
        policy = self.scheme.predict_policy(plan, chosen, alpha)
        with _reporting(progress, "predicting", len(inputs)) as report:
            votes = self._collect(names, inputs, policy, plan, source, Memory(), report)
        result = replace(self.scheme.predict(votes, chosen, alpha), seed=int(source.seed))
        return result[0] if _is_one(x) else result

    def _sample(self, x: Images, asked: _Question) -> Sample:
        plan, rule, alpha = asked.plan, asked.rule, asked.alpha
        source = NoiseSource(self.kind.purpose, fresh_seed() if asked.seed is None else asked.seed)
        (names, inputs), store = self._tried(x, asked.ids), Memory()
        policy = self.scheme.policy(plan, rule, alpha, votes=asked.votes, target=asked.target)
        with _reporting(asked.progress, "sampling", len(inputs)) as report:
            votes = self._collect(names, inputs, policy, plan, source, store, report)
        seed = int(source.seed)
        run = Asked(rule.name, alpha, plan, seed, range(len(inputs)), votes=asked.votes, target=asked.target)

        def header() -> Header:
            return header_of(self, _dataset(inputs), run, None)

        rows = [InputRow(i.id, place, None) for place, i in enumerate(inputs)]
        return Sample(self.scheme, plan, tuple(names), votes, rule, alpha, seed, header, rows, store.units.items)

    def _tried(self, x: Images, ids: Ids | None) -> tuple[list[str], list[Input]]:
        """As `_named`, once the engine has seen an image."""
        names, inputs = _named(x, ids)
        self.engine.prepare(inputs[0].pixels)
        return names, inputs

    def _collect(
        self,
        names: Sequence[str],
        inputs: Sequence[Input],
        policy: Policy,
        plan: SamplingPlan,
        source: NoiseSource,
        store: Memory,
        report: Report | None,
    ) -> Any:
        """The votes on inputs under these names, in the form that rules read."""
        done: dict[str, Tally] = {}

        def finish(input_id: str, tally: Tally, seconds: float) -> None:
            done[input_id] = tally

        collect(self.engine, inputs, policy, plan, source, finish=finish, store=store, report=report)
        return self.scheme.gather([done[name] for name in names], plan)


def certify_dataset(
    model: SmoothedModel,
    dataset: Dataset | Any,
    ledger: str | PathLike[str],
    *,
    n: int = 10_000,
    n0: int = 100,
    alpha: float = 0.001,
    rule: str | None = None,
    budget: Budget = "fixed",
    target: Target | None = None,
    seed: int | None = None,
    indices: Sequence[int] | None = None,
    all_votes: bool = False,
    reuse: str | PathLike[str] | None = None,
    progress: bool | Report | None = None,
) -> Sample:
    """Certify a dataset, or the inputs at ``indices``, into a ledger, as `dualrs certify` does; return the votes.

    A list, a dataset of torch or its DataLoader is one too, and is read into memory. Run it again to resume, or to add
    inputs. ``all_votes`` asks every candidate at its sigma, so that every method can
    be derived; ``reuse`` is an earlier ledger, whose votes of the same networks are copied. Settings are those of
    `SmoothedModel.certify`.
    """
    plan, target = sampling_plan(n0, n, budget, target)
    dataset = as_dataset(dataset, type(dataset).__name__)
    places = range(len(dataset.ids)) if indices is None else indices
    with _reporting(progress, "certifying", len(places)) as report:
        certify_into(
            model, dataset, Path(ledger), plan=plan, alpha=alpha, rule=model.rule(rule), seed=seed, indices=places,
            all_votes=all_votes, target=target, reuse=None if reuse is None else Path(reuse), report=report,
        )  # fmt: skip
    return Sample.open(ledger)


def target_of(radii: tuple[float, ...] | None, tolerance: float | None) -> Target | None:
    """What an adaptive budget is for: radii, or a tolerance on the radius; None if neither is given."""
    if tolerance is not None:
        return Tolerance(tolerance)
    return None if radii is None else Grid(radii)


def sampling_plan(n0: int, n: int, budget: Budget, target: Target | None) -> tuple[SamplingPlan, Target | None]:
    """The plan of a certification and, if it is adaptive, its target."""
    if budget == "adaptive":
        return SamplingPlan(n0, n, planned_looks(n)), target or Grid()
    if budget != "fixed":
        raise BadSetting(f"the budget is 'fixed' or 'adaptive', got {budget!r}")
    if target is not None:
        raise BadSetting("a target is for budget='adaptive'; a fixed budget goes to n")
    return SamplingPlan(n0, n), None


def _is_one(x: Images) -> bool:
    return is_picture(x) or getattr(x, "ndim", 4) == 3


def _named(x: Images, ids: Ids | None) -> tuple[list[str], list[Input]]:
    """The names of images, by default their content, and each image once: equal ones have equal votes."""
    data = as_dataset(x, "what was given")
    pixels = np.stack([data.image(i) for i in range(len(data.ids))])
    names = [content_id(p) for p in pixels] if ids is None else [str(i) for i in ids]
    if len(names) != len(pixels):
        raise BadSetting(f"{len(names)} ids for {len(pixels)} images")
    if ids is not None and len(set(names)) != len(names):
        raise BadSetting("ids must be different: two images under one id would share their noise")
    return names, [Input(*one) for one in dict(zip(names, pixels, strict=True)).items()]


def _dataset(inputs: Sequence[Input]) -> ArrayDataset:
    return ArrayDataset(np.stack([i.pixels for i in inputs]), ids=[i.id for i in inputs])


@contextmanager
def _reporting(progress: bool | Report | None, title: str, inputs: int) -> Iterator[Report | None]:
    """What is called as votes come in: nothing, a bar, or what the user gave. A bar that was not asked for passes."""
    if callable(progress):
        yield progress
    elif has_screen() if progress is None else progress:
        with Bar(title, inputs, passing=progress is None) as bar:
            yield bar.update
    else:
        yield None
