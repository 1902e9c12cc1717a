"""The kinds of smoothed models, and the networks that each is made of."""

from collections.abc import Mapping, Sequence
from math import exp
from typing import Unpack, final

import numpy as np
from torch import nn

from dualrs import schemes
from dualrs.data.dataset import as_dataset
from dualrs.data.images import Pixels
from dualrs.errors import BadModel, BadSetting
from dualrs.models.ascent import Ascent
from dualrs.models.confidence import ConfidenceBins
from dualrs.models.entropy import EntropyBins
from dualrs.models.neighbours import Neighbours
from dualrs.models.noisy import NoisyModel
from dualrs.sampling.machine import EngineSettings
from dualrs.sampling.noise import check_sigma
from dualrs.sampling.work import Slot
from dualrs.schemes.input_dependent import LEVEL
from dualrs.schemes.scheme import sigma_method
from dualrs.smoothed.model import Images, SmoothedModel
from dualrs.smoothed.shared import Experts, Shared
from dualrs.theory.moving import SMALLEST_STEP
from dualrs.votes import PLAIN, Stage, check_confidences


@final
class Smoothed(SmoothedModel):
    """A classifier smoothed at one sigma (Cohen et al. 2019)."""

    def __init__(self, classifier: nn.Module, sigma: float, **engine: Unpack[EngineSettings]) -> None:
        kind = schemes.Single((check_sigma(sigma),))
        self.classifier = NoisyModel("classifier", classifier)
        super().__init__(kind, {(Stage.CLASS, kind.sigma): self.classifier}, **engine)


@final
class DualSmoothed(Shared):
    """A router smoothed at ``sigma_e`` picks one of ``sigmas`` for each input; the classifier answers under it.

    ``classifier`` is one module, or a mapping {sigma: module} with an expert for every candidate. The router's
    logits are in the order of ``sigmas``. With ``confidences``, votes also tell how sure the classifier was, so that a
    cascade whose votes may pass can be derived from them.
    """

    def __init__(
        self,
        router: nn.Module,
        classifier: Experts,
        sigmas: Sequence[float],
        sigma_e: float,
        *,
        confidences: Sequence[float] | None = None,
        share: bool = True,
        **engine: Unpack[EngineSettings],
    ) -> None:
        told = check_confidences(confidences or ())
        candidates, self.experts = experts_at(classifier, sigmas, told)
        self.sigma_e = check_sigma_e(sigma_e, candidates)
        self.router = router_for(router, candidates, self.sigma_e)
        self.parts = {"router": router, "classifier": classifier}
        models = {(Stage.ROUTER, self.sigma_e): self.router} | class_slots(self.experts)
        kind = schemes.Dual(candidates, sigma_e=self.sigma_e, confidences=told)
        super().__init__(kind, models, share=share, **engine)


@final
class Cascade(Shared):
    """A classifier at several sigmas, or an expert for each, without a router: the noisiest sure stage answers.

    ``confidences`` are those at which its votes may pass, 0.3, 0.4, 0.5 and 0.6 by default; a rule such as
    ``cascade-0.4`` names one of them.
    """

    def __init__(
        self,
        classifier: Experts,
        sigmas: Sequence[float] | None = None,
        *,
        confidences: Sequence[float] | None = None,
        **engine: Unpack[EngineSettings],
    ) -> None:
        if sigmas is None:
            if not isinstance(classifier, Mapping):
                raise BadSetting("say at which sigmas the classifier is smoothed, as sigmas=(0.25, 0.5, 1.0)")
            sigmas = list(classifier)
        told = check_confidences(schemes.CONFIDENCES if confidences is None else confidences)
        candidates, self.experts = experts_at(classifier, sigmas, told)
        self.parts = {"classifier": classifier}
        if len(candidates) < 2:
            raise BadSetting("a cascade needs at least two sigmas; for one, use Smoothed")
        super().__init__(schemes.Cascade(candidates, confidences=told), class_slots(self.experts), **engine)


@final
class Aces(SmoothedModel):
    """A classifier smoothed at ``sigma`` where a selector is sure, and elsewhere the ``core`` network, without noise.

    Horvath et al. 2022. The selector, smoothed at sigma too, compares the entropy of a network's answer (in nats) with
    ``thresholds``: low, and the classifier answers. That network is the classifier itself unless ``selector`` is given.
    Votes serve every threshold; a certificate is about one of them. Where the core answers, the outcome is "predicted":
    a class without a radius.
    """

    def __init__(
        self,
        classifier: nn.Module,
        core: nn.Module,
        sigma: float,
        thresholds: Sequence[float],
        *,
        selector: nn.Module | None = None,
        share: bool = True,
        **engine: Unpack[EngineSettings],
    ) -> None:
        limits = tuple(map(float, thresholds))
        asked = EntropyBins(classifier if selector is None else selector, limits)
        kind = schemes.Aces((check_sigma(sigma),), thresholds=limits)
        self.classifier = NoisyModel("classifier", classifier)
        self.core = NoisyModel("core network", core)
        if self.core.takes_randomness:
            raise BadModel(
                "the core network answers an input once and without noise, so it may not draw numbers of its own; take "
                "one without randomness"
            )
        self.selector = NoisyModel("selector", asked)
        models = {
            (Stage.ROUTER, kind.sigma): self.selector,
            (Stage.CLASS, kind.sigma): self.classifier,
            (PLAIN.stage, PLAIN.sigma): self.core,
        }
        super().__init__(kind, models, share=share, **engine)


@final
class InputDependent(SmoothedModel):
    """A classifier under a sigma for each input: larger, the farther the nearest images of a set are.

    Sukenik et al. 2022: ``sigma * exp(rate * (distance - centre))``, where distance is the mean to the ``k`` nearest of
    ``neighbours``, the training images, in units of pixel values in [0, 1]. It is taken in so many ``levels``, and
    sigma is that of the middle of one; certificates are about this sigma.
    """

    def __init__(
        self,
        classifier: nn.Module,
        sigma: float,
        neighbours: Images,
        *,
        k: int = 20,
        rate: float = 0.01,
        centre: float = 5.0,
        levels: int = 512,
        **engine: Unpack[EngineSettings],
    ) -> None:
        asked = Neighbours(_pixels(neighbours), k, levels)
        if not rate * asked.step >= SMALLEST_STEP:
            raise BadSetting(
                f"the rate must be at least {SMALLEST_STEP / asked.step:.2g} for such images, got {rate:g}"
            )
        middle = check_sigma(sigma)
        lowest, highest = (middle * exp(rate * (asked.step * (bin_ + 0.5) - centre)) for bin_ in (0, levels - 1))
        kind = schemes.InputDependent(
            (middle,), lowest=lowest, highest=highest, levels=levels, step=asked.step, dimensions=asked.dimensions
        )
        self.classifier = NoisyModel("classifier", classifier)
        self.level = NoisyModel("set of neighbours", asked)
        super().__init__(
            kind, {(LEVEL.stage, LEVEL.sigma): self.level, (Stage.CLASS, kind.sigma): self.classifier}, **engine
        )


@final
class Ascending(SmoothedModel):
    """A classifier under the sigma that promises each input the largest radius (Alfarra et al. 2022).

    Found by ``steps`` of ``rate`` up the gradient of that radius, from ``sigma`` on, over ``draws`` noises each. Radii
    have no guarantee, as images nearby have other sigmas; `dualrs memory` makes certificates of them.
    """

    def __init__(
        self,
        classifier: nn.Module,
        sigma: float,
        *,
        rate: float = 0.04,
        steps: int = 900,
        draws: int = 100,
        **engine: Unpack[EngineSettings],
    ) -> None:
        self.classifier = NoisyModel("classifier", classifier)
        asked = Ascent(classifier, check_sigma(sigma), rate=rate, steps=steps, draws=draws)
        kind = schemes.InputDependent((asked.start,), lowest=asked.lowest, highest=asked.highest, levels=asked.levels)
        self.level = NoisyModel("ascent", asked)
        super().__init__(
            kind, {(LEVEL.stage, LEVEL.sigma): self.level, (Stage.CLASS, kind.sigma): self.classifier}, **engine
        )


@final
class Pool(SmoothedModel):
    """A classifier at several sigmas, or an expert for each, before there is a router: what labels are made from."""

    def __init__(self, classifier: Experts, sigmas: Sequence[float], **engine: Unpack[EngineSettings]) -> None:
        candidates, self.experts = experts_at(classifier, sigmas)
        if not candidates:
            raise BadSetting("a pool needs at least one sigma")
        super().__init__(schemes.Labels(candidates), class_slots(self.experts), **engine)


@final
class RouterAlone(SmoothedModel):
    """A router without its experts: what the sigma of each training input is assigned by."""

    def __init__(
        self, router: nn.Module, sigmas: Sequence[float], sigma_e: float, **engine: Unpack[EngineSettings]
    ) -> None:
        candidates = _candidates(sigmas)
        self.sigma_e = check_sigma_e(sigma_e, candidates)
        self.router = router_for(router, candidates, self.sigma_e)
        kind = schemes.Assigned(candidates, sigma_e=self.sigma_e)
        super().__init__(kind, {(Stage.ROUTER, self.sigma_e): self.router}, **engine)


def answering(model: SmoothedModel, method: str) -> tuple[SmoothedModel, str | None]:
    """The model whose answers a method of a run is about, and its rule there.

    That is one expert alone, the cascade of a dual model's experts, or the model itself; it runs as the model does, so
    that its networks answer as they did.
    """
    rule = model.kind.rule(method)
    experts = {sigma: _bare(m) for (stage, sigma), m in model.models.items() if stage is Stage.CLASS and sigma > 0}
    run = model.engine
    machine: EngineSettings = {"batch_size": run.batch_size, "device": run.device, "dtype": run.dtype}
    if rule.parameter is not None and method == sigma_method(rule.parameter):
        return Smoothed(experts[rule.parameter], rule.parameter, **machine), None
    if rule.form is not None and isinstance(model.kind, schemes.Dual):
        return Cascade(experts, confidences=model.kind.confidences, **machine), rule.name
    return model, model.rule(method).name


def _bare(model: NoisyModel) -> nn.Module:
    """A network without its bins of confidence."""
    return model.module.network if isinstance(model.module, ConfidenceBins) else model.module


def _pixels(images: Images) -> Pixels:
    """All images of a dataset, in memory."""
    data = as_dataset(images, "the set of neighbours")
    return np.stack([data.image(place) for place in range(len(data.ids))])


def class_slots(experts: Mapping[float, NoisyModel]) -> dict[Slot, NoisyModel]:
    """Where the experts vote."""
    return {(Stage.CLASS, sigma): model for sigma, model in experts.items()}


def router_for(router: nn.Module, candidates: tuple[float, ...], sigma_e: float) -> NoisyModel:
    """The router, if it was trained for these sigmas, as far as its card tells."""
    told: tuple[tuple[float, ...], float] | None = getattr(router, "routes", None)
    if told is not None and told != (candidates, sigma_e):
        raise BadSetting(
            f"the router was trained to choose from sigmas {_list(told[0])} at sigma_e {told[1]:g}, and the run has "
            f"sigmas {_list(candidates)} and sigma_e {sigma_e:g}; give those of the router, or another router"
        )
    return NoisyModel("router", router)


def _list(sigmas: Sequence[float]) -> str:
    return ", ".join(f"{sigma:g}" for sigma in sigmas)


def _candidates(sigmas: Sequence[float]) -> tuple[float, ...]:
    """The candidate sigmas, checked."""
    candidates = tuple(check_sigma(s, "each candidate sigma") for s in sigmas)
    if len(set(candidates)) != len(candidates):
        raise BadSetting(f"the candidate sigmas must be different, got {candidates}")
    return candidates


def check_sigma_e(sigma_e: float, candidates: tuple[float, ...]) -> float:
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


def experts_at(
    classifier: Experts, sigmas: Sequence[float], confidences: tuple[float, ...] = ()
) -> tuple[tuple[float, ...], dict[float, NoisyModel]]:
    """The candidate sigmas, checked, and the network that votes at each, with its confidence if that is asked for."""
    candidates = _candidates(sigmas)

    def voter(name: str, network: nn.Module) -> NoisyModel:
        asked = NoisyModel(name, network)  # which refuses what cannot vote
        return NoisyModel(name, ConfidenceBins(network, confidences)) if confidences else asked

    if not isinstance(classifier, Mapping):
        return candidates, dict.fromkeys(candidates, voter("classifier", classifier))
    if set(classifier) != set(candidates):
        raise BadSetting(f"experts for sigmas {list(classifier)}, but the candidates are {candidates}")
    return candidates, {s: voter(f"expert for sigma {s:g}", classifier[s]) for s in candidates}
