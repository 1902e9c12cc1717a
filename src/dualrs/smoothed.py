"""Smoothed and DualSmoothed: what a user wraps around torch modules. Sampling plus a rule.

Enters: modules, images. Leaves: certificates and predictions. Section 5.1 of the paper. Pool and RouterAlone are
halves of the latter, for training (Section 5.2): they have votes, and no rule.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dualrs.certificates import (
    Certificate,
    Certificates,
    Prediction,
    Predictions,
    Rule,
    check_predict,
    predict,
    predict_dual,
    rule,
)
from dualrs.collect import Input, Report, collect
from dualrs.data.images import as_pixels, content_id
from dualrs.errors import BadModel, BadSetting
from dualrs.models.noisy import NoisyModel
from dualrs.policy import Grid, Policy, Target, adaptive_policy, certify_policy, predict_policy
from dualrs.sampling.counting import Counting
from dualrs.sampling.engine import BATCH_SIZE, Engine, Slot
from dualrs.sampling.noise import NoiseSource, check_sigma, fresh_seed
from dualrs.theory.looks import planned_looks
from dualrs.votes import AcesVotes, DualVotes, Purpose, SamplingPlan, Stage, Streams, Tally

Images = Tensor | NDArray[np.generic]
Ids = Sequence[str | int]
Budget = Literal["fixed", "adaptive"]


class SmoothedModel(ABC):
    """Common ground of one and two stages: networks at their sigmas, an engine, certify and predict.

    ``batch_size`` is the fixed shape of every batch (smaller if memory asks for it), ``device`` where the networks
    run (by default where they are), ``dtype`` the precision: "float32", "bfloat16" or "float16". ``compile`` has torch
    compile the networks, in place; where it cannot, they run as they are.
    """

    sigmas: tuple[float, ...]
    sigma_e: float | None
    thresholds: tuple[float, ...] = ()  # of an entropy: of ACES alone
    engine: Counting  # this process's own, unless workers take its place

    def __init__(
        self, *, batch_size: int, device: str | torch.device | None, dtype: str, compile: bool, share: bool = True
    ) -> None:
        self.engine = Engine(
            self.models, batch_size=batch_size, device=device, dtype=dtype, compile=compile, share=share
        )

    @property
    @abstractmethod
    def models(self) -> dict[Slot, NoisyModel]:
        """The network that votes at each stage and sigma."""

    @abstractmethod
    def rule(self, name: str | None = None) -> Rule:
        """The rule of that name, if it fits this model; without a name, the default."""

    @property
    def streams(self) -> Streams:
        """The streams of votes that this model has; known once the engine has seen an image."""
        answers = self.engine.answers
        if self.sigma_e is not None and answers[(Stage.ROUTER, self.sigma_e)] != len(self.sigmas):
            raise BadModel(
                f"the router has {answers[(Stage.ROUTER, self.sigma_e)]} answers, but there are {len(self.sigmas)} "
                "candidate sigmas; it must have one for each"
            )
        first = (Stage.CLASS, self.sigmas[0])
        return Streams(self.sigmas, answers[first] if first in self.engine.models else 0, self.sigma_e)

    def _certify(
        self,
        x: Images,
        plan: SamplingPlan,
        rule: Rule,
        alpha: float,
        seed: int | None,
        ids: Ids | None,
        progress: Report | None,
        target: Target | None,
    ) -> Certificates:
        rule.check(plan, alpha)
        source = NoiseSource(Purpose.CERTIFY, fresh_seed() if seed is None else seed)
        inputs = self._inputs(x, ids)
        if target is None:
            policy = certify_policy(self.streams, plan, rule, alpha)
        else:
            policy = adaptive_policy(self.streams, plan, rule, alpha, target)
        tallies = self._tallies(inputs, policy, plan, source, progress)
        return replace(rule.certify(self.streams.gather(tallies, plan), alpha), seed=int(source.seed))

    def predict(
        self,
        x: Images,
        *,
        n: int = 1_000,
        alpha: float = 0.001,
        seed: int | None = None,
        ids: Ids | None = None,
        progress: Report | None = None,
    ) -> Prediction | Predictions:
        """Classify one image or a batch, without a radius; wrong with probability at most alpha per image.

        Without a ``seed``, a secret one is drawn; it stands in the prediction.
        """
        self.rule()  # a model that no rule fits names no class either, and says so
        if self.thresholds:
            raise BadSetting("a model with a core network is certified, and not asked for predictions: use certify")
        plan = SamplingPlan(0, n)
        check_predict(plan, alpha, stages=1 if self.sigma_e is None else 2)
        source = NoiseSource(Purpose.PREDICT, fresh_seed() if seed is None else seed)
        inputs = self._inputs(x, ids)
        votes = self.streams.gather(
            self._tallies(inputs, predict_policy(self.streams, plan), plan, source, progress), plan
        )
        assert not isinstance(votes, AcesVotes), "refused above"
        found = predict_dual(votes, alpha) if isinstance(votes, DualVotes) else predict(votes, alpha)
        result = replace(found, seed=int(source.seed))
        return result[0] if x.ndim == 3 else result

    def _inputs(self, x: Images, ids: Ids | None) -> list[Input]:
        pixels = as_pixels(x)
        names = [content_id(p) for p in pixels] if ids is None else [str(i) for i in ids]
        if len(names) != len(pixels):
            raise BadSetting(f"{len(names)} ids for {len(pixels)} images")
        if ids is not None and len(set(names)) != len(names):
            raise BadSetting("ids must be different: two images under one id would share their noise")
        self.engine.prepare(pixels[0])
        return [Input(name, p) for name, p in zip(names, pixels, strict=True)]

    def _tallies(
        self, inputs: list[Input], policy: Policy, plan: SamplingPlan, source: NoiseSource, progress: Report | None
    ) -> list[Tally]:
        done: dict[str, Tally] = {}
        once = {i.id: i for i in inputs}.values()  # equal images have equal votes

        def finish(input_id: str, tally: Tally, seconds: float) -> None:
            done[input_id] = tally

        collect(self.engine, once, policy, plan, source, finish=finish, report=progress)
        return [done[i.id] for i in inputs]


@final
class Smoothed(SmoothedModel):
    """A classifier smoothed at one sigma (Cohen et al. 2019)."""

    def __init__(
        self,
        classifier: nn.Module,
        sigma: float,
        *,
        batch_size: int = BATCH_SIZE,
        device: str | torch.device | None = None,
        dtype: str = "float32",
        compile: bool = False,
    ) -> None:
        self.sigmas = (check_sigma(sigma),)
        self.sigma_e = None
        self.classifier = NoisyModel("classifier", classifier)
        super().__init__(batch_size=batch_size, device=device, dtype=dtype, compile=compile)

    @property
    def models(self) -> dict[Slot, NoisyModel]:
        """The classifier at its sigma."""
        return {(Stage.CLASS, self.sigmas[0]): self.classifier}

    def rule(self, name: str | None = None) -> Rule:
        """Rule `cohen`, the only one for a single sigma."""
        if name not in (None, "cohen"):
            raise BadSetting(f"rule {name!r} needs a router; a model with one sigma is certified by rule cohen")
        return rule("cohen")

    def certify(
        self,
        x: Images,
        *,
        n: int = 10_000,
        n0: int = 100,
        alpha: float = 0.001,
        budget: Budget = "fixed",
        target: Target | None = None,
        seed: int | None = None,
        ids: Ids | None = None,
        progress: Report | None = None,
    ) -> Certificate | Certificates:
        """Certify one image (channels, height, width) or a batch; uint8, or float in [0, 1].

        ``budget`` "adaptive" takes n votes at most, and stops where more would not help the ``target``: a `Grid` of
        radii, by default those of the tables, or a `Tolerance` on the radius. The guarantee is the same. Without a
        ``seed``, a secret one is drawn; it stands in the certificate.
        """
        plan, target = sampling_plan(n0, n, budget, target)
        result = self._certify(x, plan, self.rule(), alpha, seed, ids, progress, target)
        return result[0] if x.ndim == 3 else result


@final
class DualSmoothed(SmoothedModel):
    """A router smoothed at ``sigma_e`` picks one of ``sigmas`` for each input; the classifier answers under it.

    ``classifier`` is one module, or a mapping {sigma: module} with an expert for every candidate. The router's
    logits are in the order of ``sigmas``. With ``share``, the expert at ``sigma_e`` votes on the router's noisy copies,
    which are then drawn and denoised once for both; either way the guarantee is the same.
    """

    def __init__(
        self,
        router: nn.Module,
        classifier: nn.Module | Mapping[float, nn.Module],
        sigmas: Sequence[float],
        sigma_e: float,
        *,
        batch_size: int = BATCH_SIZE,
        device: str | torch.device | None = None,
        dtype: str = "float32",
        compile: bool = False,
        share: bool = True,
    ) -> None:
        self.sigmas, self.experts = _experts(classifier, sigmas)
        self._sigma_e = self.sigma_e = _check_sigma_e(sigma_e, self.sigmas)
        self.router = NoisyModel("router", router)
        super().__init__(batch_size=batch_size, device=device, dtype=dtype, compile=compile, share=share)

    @property
    def models(self) -> dict[Slot, NoisyModel]:
        """The router at sigma_e and the expert of each candidate."""
        return {(Stage.ROUTER, self._sigma_e): self.router} | {(Stage.CLASS, s): m for s, m in self.experts.items()}

    def rule(self, name: str | None = None) -> Rule:
        """A rule for two stages, `fusion` by default."""
        if name == "cohen":
            raise BadSetting("rule cohen is for one sigma; this model has a router: use paper, nosplit or fusion")
        found = rule(name or "fusion")
        if found.reads is not DualVotes:
            raise BadSetting(f"rule {found.name} is for a model with a core network; use paper, nosplit or fusion")
        return found

    def certify(
        self,
        x: Images,
        *,
        n: int = 10_000,
        n0: int = 100,
        alpha: float = 0.001,
        rule: str = "fusion",
        budget: Budget = "fixed",
        target: Target | None = None,
        seed: int | None = None,
        ids: Ids | None = None,
        progress: Report | None = None,
    ) -> Certificate | Certificates:
        """Certify one image (channels, height, width) or a batch; uint8, or float in [0, 1].

        ``budget`` "adaptive" takes n votes per stage at most, and stops where more would not help the ``target``: a
        `Grid` of radii, by default those of the tables, or a `Tolerance` on the radius. The guarantee is the same.
        Without a ``seed``, a secret one is drawn; it stands in the certificate.
        """
        plan, target = sampling_plan(n0, n, budget, target)
        result = self._certify(x, plan, self.rule(rule), alpha, seed, ids, progress, target)
        return result[0] if x.ndim == 3 else result


@final
class Pool(SmoothedModel):
    """A classifier at several sigmas, or an expert for each, before there is a router: what labels are made from."""

    def __init__(
        self,
        classifier: nn.Module | Mapping[float, nn.Module],
        sigmas: Sequence[float],
        *,
        batch_size: int = BATCH_SIZE,
        device: str | torch.device | None = None,
        dtype: str = "float32",
        compile: bool = False,
    ) -> None:
        self.sigmas, self.experts = _experts(classifier, sigmas)
        self.sigma_e = None
        if not self.sigmas:
            raise BadSetting("a pool needs at least one sigma")
        super().__init__(batch_size=batch_size, device=device, dtype=dtype, compile=compile)

    @property
    def models(self) -> dict[Slot, NoisyModel]:
        """The expert of each sigma."""
        return {(Stage.CLASS, s): m for s, m in self.experts.items()}

    def rule(self, name: str | None = None) -> Rule:
        """Refuse: without a router, nothing says which expert answers."""
        raise BadSetting("a pool of experts has no rule: certify one of them at its sigma, or add a router")


@final
class RouterAlone(SmoothedModel):
    """A router without its experts: what the sigma of each training input is assigned by."""

    def __init__(
        self,
        router: nn.Module,
        sigmas: Sequence[float],
        sigma_e: float,
        *,
        batch_size: int = BATCH_SIZE,
        device: str | torch.device | None = None,
        dtype: str = "float32",
        compile: bool = False,
    ) -> None:
        self.sigmas = _candidates(sigmas)
        self._sigma_e = self.sigma_e = _check_sigma_e(sigma_e, self.sigmas)
        self.router = NoisyModel("router", router)
        super().__init__(batch_size=batch_size, device=device, dtype=dtype, compile=compile)

    @property
    def models(self) -> dict[Slot, NoisyModel]:
        """The router at sigma_e."""
        return {(Stage.ROUTER, self._sigma_e): self.router}

    def rule(self, name: str | None = None) -> Rule:
        """Refuse: without a classifier there is no class to certify."""
        raise BadSetting("a router alone has no rule, as it names no class; use DualSmoothed with a classifier")


def sampling_plan(n0: int, n: int, budget: Budget, target: Target | None) -> tuple[SamplingPlan, Target | None]:
    """The plan of a certification and, if it is adaptive, its target."""
    if budget == "adaptive":
        return SamplingPlan(n0, n, planned_looks(n)), target or Grid()
    if budget != "fixed":
        raise BadSetting(f"the budget is 'fixed' or 'adaptive', got {budget!r}")
    if target is not None:
        raise BadSetting("a target is for budget='adaptive'; a fixed budget goes to n")
    return SamplingPlan(n0, n), None


def _candidates(sigmas: Sequence[float]) -> tuple[float, ...]:
    """The candidate sigmas, checked."""
    candidates = tuple(check_sigma(s, "each candidate sigma") for s in sigmas)
    if len(set(candidates)) != len(candidates):
        raise BadSetting(f"the candidate sigmas must be different, got {candidates}")
    return candidates


def _check_sigma_e(sigma_e: float, candidates: tuple[float, ...]) -> float:
    """The router's sigma, checked against the candidates that it chooses from."""
    if len(candidates) < 2:
        raise BadSetting("a router needs at least two candidate sigmas; for one, use Smoothed")
    check_sigma(sigma_e, "sigma_e")
    if sigma_e < max(candidates):
        raise BadSetting(
            f"sigma_e = {sigma_e:g} lies below the largest candidate sigma {max(candidates):g}; the "
            "router's radius would limit every certificate there"
        )
    return float(sigma_e)


def _experts(
    classifier: nn.Module | Mapping[float, nn.Module], sigmas: Sequence[float]
) -> tuple[tuple[float, ...], dict[float, NoisyModel]]:
    """The candidate sigmas, checked, and the network that votes at each."""
    candidates = _candidates(sigmas)
    if not isinstance(classifier, Mapping):
        return candidates, dict.fromkeys(candidates, NoisyModel("classifier", classifier))
    if set(classifier) != set(candidates):
        raise BadSetting(f"experts for sigmas {list(classifier)}, but the candidates are {candidates}")
    return candidates, {s: NoisyModel(f"expert for sigma {s:g}", classifier[s]) for s in candidates}
