"""The kinds of models in which a network that sees no noise, and states a radius, stands beside smoothed ones."""

from collections.abc import Sequence
from typing import Unpack, final

from torch import nn

from dualrs import schemes
from dualrs.models.noisy import NoisyModel
from dualrs.models.stated import StatedBins, stating
from dualrs.sampling.machine import EngineSettings
from dualrs.sampling.work import Slot
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
    """A router picks for each input one of ``sigmas``, or the ``core`` network, which sees no noise.

    The core states a radius of its own (see `dualrs.models.stated`). With one, the router's first logit is for the
    core, and the others are in the order of ``sigmas``. At ``sigma_e`` 0 the router sees no noise either, and states
    how far its choice stands: ACE (Mueller et al. 2021), where the class has all of alpha.
    """

    def __init__(
        self,
        router: nn.Module,
        classifier: Experts,
        sigmas: Sequence[float],
        sigma_e: float = 0.0,
        *,
        core: nn.Module | None = None,
        share: bool = True,
        **engine: Unpack[EngineSettings],
    ) -> None:
        smoothed, self.experts = experts_at(classifier, sigmas)
        candidates = smoothed if core is None else (0.0, *smoothed)
        models: dict[Slot, NoisyModel] = {}
        if sigma_e:
            check_sigma_e(sigma_e, candidates)
            self.router = router_for(router, candidates, sigma_e)
            models[Stage.ROUTER, sigma_e] = self.router
        else:
            self.router = _asked(router, "router", len(candidates))
            models[Stage.ROUTER, plain(Stage.ROUTER).sigma] = self.router
        models |= class_slots(self.experts)
        if core is not None:
            self.core = _asked(core, _CORE)
            models[PLAIN.stage, PLAIN.sigma] = self.core
        kind = schemes.Mixed(smoothed, candidates=candidates, sigma_e=sigma_e)
        super().__init__(kind, models, share=share and sigma_e > 0, **engine)


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
