"""SmoothedModel: what all kinds of smoothed models have in common. Sample, certify, predict."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dualrs.certificates import Certificate, Certificates, Prediction, Predictions, Rule
from dualrs.data.dataset import ArrayDataset, Dataset
from dualrs.data.images import Pixels, as_pixels, content_id
from dualrs.errors import BadModel, BadSetting
from dualrs.jobs import certify_dataset as certify_into
from dualrs.jobs.opening import Asked, header_of
from dualrs.models.noisy import NoisyModel
from dualrs.policy import Grid, Target
from dualrs.progress import Bar
from dualrs.sample import Keeping, Sample
from dualrs.sampling.collect import Input, Report, collect
from dualrs.sampling.engine import Engine
from dualrs.sampling.noise import NoiseSource, fresh_seed
from dualrs.sampling.work import Counting, Slot
from dualrs.schemes import ALL, NEEDED, Scheme
from dualrs.storage.ledger import Ledger
from dualrs.storage.rows import InputRow
from dualrs.theory.looks import planned_looks
from dualrs.votes import Policy, Purpose, SamplingPlan, Stage, Tally

Images = Tensor | NDArray[np.generic]
Ids = Sequence[str | int]
Budget = Literal["fixed", "adaptive"]
OneImage = np.ndarray[tuple[int, int, int], Any]
Batch = np.ndarray[tuple[int, int, int, int], Any]


class EngineSettings(TypedDict, total=False):
    """How the networks are run: see `SmoothedModel`."""

    batch_size: int
    device: str | torch.device | None
    dtype: str
    compile: bool


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
    progress: bool | Report


class SmoothedModel(ABC):
    """Networks at their sigmas, an engine that counts their votes, and the kind of run that they make.

    ``batch_size`` is the fixed shape of every batch (smaller if memory asks for it), ``device`` where the networks
    run (by default where they are), ``dtype`` the precision: "float32", "bfloat16" or "float16". ``compile`` has torch
    compile the networks, in place; where it cannot, they run as they are. With ``share``, an expert at the router's
    sigma votes on the router's noisy copies, which are then drawn and denoised once for both; either way the guarantee
    is the same.
    """

    kind: Scheme[Any]  # before the networks were tried: without the number of classes
    engine: Counting  # this process's own, unless workers take its place

    def __init__(self, *, share: bool = True, **engine: Unpack[EngineSettings]) -> None:
        self.engine = Engine(self.models, share=share, **engine)

    @property
    @abstractmethod
    def models(self) -> dict[Slot, NoisyModel]:
        """The network that votes at each stage and sigma."""

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
        progress: bool | Report = False,
    ) -> Sample:
        """Draw every vote on one image or a batch, to certify by any rule afterwards, and to keep: ``save``.

        The rule of a certificate has to be chosen before its votes are seen; comparing several side by side is fine.
        Without a ``seed``, a secret one is drawn.
        """
        return self._sample(x, SamplingPlan(n0, n), self.rule(rule), alpha, ALL, None, seed, ids, progress)

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
        progress: bool | Report = False,
    ) -> Certificate | Certificates:
        """Certify one image (channels, height, width) or a batch; uint8, or float in [0, 1].

        ``rule`` is the default of the model unless named. ``budget`` "adaptive" takes at most n votes per stage, and
        stops where more would not help the ``target``: a `Grid` of radii, by default those of the tables, or a
        `Tolerance` on the radius. The guarantee is the same. Without a ``seed``, a secret one is drawn; the certificate
        records it. With a ``ledger``, votes are kept in that file: run the same call again to resume.
        ``progress`` shows a bar, or is called as votes come in.
        """
        chosen = self.rule(rule)
        plan, target = sampling_plan(n0, n, budget, target)
        chosen.check(plan, alpha)
        if ledger is None:
            sample = self._sample(x, plan, chosen, alpha, NEEDED, target, seed, ids, progress)
            found = sample.certify(chosen.name, alpha)
        else:
            found = self._certify_into(x, Path(ledger), plan, chosen, alpha, target, seed, ids, progress)
        return found[0] if x.ndim == 3 else found

    def _certify_into(
        self,
        x: Images,
        path: Path,
        plan: SamplingPlan,
        rule: Rule[Any],
        alpha: float,
        target: Target | None,
        seed: int | None,
        ids: Ids | None,
        progress: bool | Report,
    ) -> Certificates:
        names, pixels = _named(x, ids)
        once = dict(zip(names, pixels, strict=True))
        data = ArrayDataset(np.stack(list(once.values())), ids=list(once))
        with _reporting(progress, "certifying", len(once)) as report:
            certify_into(
                self, data, path, plan=plan, alpha=alpha, rule=rule, seed=seed, indices=range(len(once)),
                target=target, report=report,
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
        progress: bool | Report = False,
    ) -> Prediction | Predictions:
        """Classify one image or a batch, without a radius; wrong with probability at most alpha per image.

        ``rule`` matters for a cascade, where its name says which votes pass. Without a ``seed``, a secret one is drawn;
        it stands in the prediction.
        """
        chosen = self.rule(rule)
        plan = self.kind.predict_plan(n, chosen, alpha)
        source = NoiseSource(Purpose.PREDICT, fresh_seed() if seed is None else seed)
        inputs = self._inputs(x, ids)
        policy = self.scheme.predict_policy(plan, chosen, alpha)
        tallies = self._tallies(inputs, policy, plan, source, progress, "predicting", Keeping())
        found = self.scheme.predict(self.scheme.gather(tallies, plan), chosen, alpha)
        result = replace(found, seed=int(source.seed))
        return result[0] if x.ndim == 3 else result

    def _sample(
        self,
        x: Images,
        plan: SamplingPlan,
        rule: Rule[Any],
        alpha: float,
        votes: str,
        target: Target | None,
        seed: int | None,
        ids: Ids | None,
        progress: bool | Report,
    ) -> Sample:
        source = NoiseSource(self.kind.purpose, fresh_seed() if seed is None else seed)
        inputs, keeping = self._inputs(x, ids), Keeping()
        policy = self.scheme.policy(plan, rule, alpha, votes=votes, target=target)
        tallies = self._tallies(inputs, policy, plan, source, progress, "sampling", keeping)
        asked = Asked(rule.name, alpha, plan, int(source.seed), range(len(inputs)), votes=votes, target=target)

        def header() -> Any:
            pixels = {i.id: i.pixels for i in inputs}
            data = ArrayDataset(np.stack(list(pixels.values())), ids=list(pixels))
            return header_of(self, data, replace(asked, indices=range(len(pixels))), None)

        rows = [InputRow(name, place, None) for place, name in enumerate(dict.fromkeys(i.id for i in inputs))]
        names = tuple(i.id for i in inputs)
        held = self.scheme.gather(tallies, plan)
        return Sample(self.scheme, plan, names, held, rule, alpha, int(source.seed), header, rows, keeping.units)

    def _inputs(self, x: Images, ids: Ids | None) -> list[Input]:
        names, pixels = _named(x, ids)
        self.engine.prepare(pixels[0])
        return [Input(name, p) for name, p in zip(names, pixels, strict=True)]

    def _tallies(
        self,
        inputs: list[Input],
        policy: Policy,
        plan: SamplingPlan,
        source: NoiseSource,
        progress: bool | Report,
        title: str,
        store: Keeping,
    ) -> list[Tally]:
        done: dict[str, Tally] = {}
        once = {i.id: i for i in inputs}.values()  # equal images have equal votes

        def finish(input_id: str, tally: Tally, seconds: float) -> None:
            done[input_id] = tally

        with _reporting(progress, title, len(once)) as report:
            collect(self.engine, once, policy, plan, source, finish=finish, store=store, report=report)
        return [done[i.id] for i in inputs]


def certify_dataset(
    model: SmoothedModel,
    dataset: Dataset,
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
    progress: bool | Report = False,
) -> Sample:
    """Certify a dataset, or the inputs at ``indices``, into a ledger, as `dualrs certify` does; return the votes.

    Run it again to resume, or to add inputs. ``all_votes`` asks every candidate at its sigma, so that every method can
    be derived; ``reuse`` is an earlier ledger, whose votes of the same networks are copied. Settings are those of
    `SmoothedModel.certify`.
    """
    plan, target = sampling_plan(n0, n, budget, target)
    places = range(len(dataset.ids)) if indices is None else indices
    with _reporting(progress, "certifying", len(places)) as report:
        certify_into(
            model, dataset, Path(ledger), plan=plan, alpha=alpha, rule=model.rule(rule), seed=seed, indices=places,
            all_votes=all_votes, target=target, reuse=None if reuse is None else Path(reuse), report=report,
        )  # fmt: skip
    return Sample.open(ledger)


def sampling_plan(n0: int, n: int, budget: Budget, target: Target | None) -> tuple[SamplingPlan, Target | None]:
    """The plan of a certification and, if it is adaptive, its target."""
    if budget == "adaptive":
        return SamplingPlan(n0, n, planned_looks(n)), target or Grid()
    if budget != "fixed":
        raise BadSetting(f"the budget is 'fixed' or 'adaptive', got {budget!r}")
    if target is not None:
        raise BadSetting("a target is for budget='adaptive'; a fixed budget goes to n")
    return SamplingPlan(n0, n), None


def _named(x: Images, ids: Ids | None) -> tuple[list[str], Pixels]:
    """Images under their names: by default, their content."""
    pixels = as_pixels(x)
    names = [content_id(p) for p in pixels] if ids is None else [str(i) for i in ids]
    if len(names) != len(pixels):
        raise BadSetting(f"{len(names)} ids for {len(pixels)} images")
    if ids is not None and len(set(names)) != len(names):
        raise BadSetting("ids must be different: two images under one id would share their noise")
    return names, pixels


def _reporting(progress: bool | Report, title: str, inputs: int) -> AbstractContextManager[Report | None]:
    """What is called as votes come in: nothing, a bar, or what the user gave."""
    if callable(progress):
        return nullcontext(progress)
    return Bar(title, inputs).reporting() if progress else nullcontext(None)
