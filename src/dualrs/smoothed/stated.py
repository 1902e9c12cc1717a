"""The kinds of models in which a network that sees no noise, and states a radius, stands beside smoothed ones."""

from collections.abc import Sequence
from typing import Unpack, final

from torch import nn

from dualrs import schemes
from dualrs.errors import BadSetting
from dualrs.models.noisy import NoisyModel
from dualrs.models.stated import StatedBins, stating
from dualrs.sampling.machine import EngineSettings
from dualrs.smoothed.kinds import check_sigma_e, class_slots, experts_at, router_for
from dualrs.smoothed.model import SmoothedModel
from dualrs.smoothed.shared import Experts
from dualrs.votes import BINS, PLAIN, STEP, Stage, check_confidences, plain

_CORE = "core network"


def _asked(network: nn.Module, role: str, expected: int | None = None) -> NoisyModel:
    """A network that states its radius, as one that votes."""
    return NoisyModel(role, StatedBins(stating(network), BINS, STEP, role, expected))


@final
class Mixed(SmoothedModel):
    """A router smoothed at ``sigma_e`` picks for each input the ``core`` network, which sees no noise, or a sigma.

    The core states a radius of its own (see `dualrs.models.stated`). The router's first logit is for the core, the
    others are in the order of ``sigmas``. ``confidences`` as for `DualSmoothed`.
    """

    def __init__(
        self,
        router: nn.Module,
        classifier: Experts,
        core: nn.Module,
        sigmas: Sequence[float],
        sigma_e: float,
        *,
        confidences: Sequence[float] | None = None,
        share: bool = True,
        **engine: Unpack[EngineSettings],
    ) -> None:
        told = check_confidences(confidences or ())
        smoothed, self.experts = experts_at(classifier, sigmas, told)
        candidates = (0.0, *smoothed)
        self.sigma_e = check_sigma_e(sigma_e, candidates)
        self.router = router_for(router, candidates, self.sigma_e)
        self.core = _asked(core, _CORE)
        models = {(Stage.ROUTER, self.sigma_e): self.router} | class_slots(self.experts)
        models[PLAIN.stage, PLAIN.sigma] = self.core
        kind = schemes.Mixed(smoothed, sigma_e=self.sigma_e, confidences=told)
        super().__init__(kind, models, share=share, **engine)


@final
class Ace(SmoothedModel):
    """A router that sees no noise, and states how far its choice stands, picks one of ``sigmas`` for each input.

    Mueller et al. 2021. The class has all of alpha. With a ``core`` network, which sees no noise either, the router's
    first logit is for the core, and the others are in the order of ``sigmas``. ``confidences`` as for `DualSmoothed`.
    """

    def __init__(
        self,
        router: nn.Module,
        classifier: Experts,
        sigmas: Sequence[float],
        *,
        core: nn.Module | None = None,
        confidences: Sequence[float] | None = None,
        **engine: Unpack[EngineSettings],
    ) -> None:
        told = check_confidences(confidences or ())
        smoothed, self.experts = experts_at(classifier, sigmas, told)
        kind = schemes.Ace(smoothed, cores=float(core is not None), confidences=told)
        if len(kind.candidates) < 2:
            raise BadSetting("a router needs at least two candidates: sigmas, or a sigma and a core network")
        self.router = _asked(router, "router", len(kind.candidates))
        at_router = plain(Stage.ROUTER)
        models = {(at_router.stage, at_router.sigma): self.router} | class_slots(self.experts)
        if core is not None:
            models[PLAIN.stage, PLAIN.sigma] = _asked(core, _CORE)
        super().__init__(kind, models, share=False, **engine)


@final
class Backed(SmoothedModel):
    """A cascade over ``sigmas``; where no stage is sure, the ``core`` network answers, which sees no noise.

    The core states a radius of its own (see `dualrs.models.stated`). ``confidences`` as for `Cascade`.
    """

    def __init__(
        self,
        classifier: Experts,
        core: nn.Module,
        sigmas: Sequence[float],
        *,
        confidences: Sequence[float] | None = None,
        **engine: Unpack[EngineSettings],
    ) -> None:
        told = check_confidences(schemes.CONFIDENCES if confidences is None else confidences)
        smoothed, self.experts = experts_at(classifier, sigmas, told)
        self.core = _asked(core, _CORE)
        models = class_slots(self.experts) | {(PLAIN.stage, PLAIN.sigma): self.core}
        super().__init__(schemes.Backed(smoothed, confidences=told), models, **engine)
