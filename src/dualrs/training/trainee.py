"""The network that is trained: what it is, what it goes on from, and the frozen denoiser before it, if any.

Enters: an architecture, and perhaps networks. Leaves: the network as training begins.
"""

from collections.abc import Collection
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import nn

from dualrs.errors import BadModel, BadSetting, did_you_mean
from dualrs.models.architectures import CLASSIFIERS, build, complete
from dualrs.models.card import Architecture
from dualrs.models.denoise import Denoised
from dualrs.models.noisy import class_names


@dataclass(frozen=True)
class Trainee:
    """A classifier or a router before its training.

    It goes on from a copy of ``start``, which ``architecture`` describes, or begins with random weights.
    """

    architecture: Architecture
    start: nn.Module | None = None
    denoiser: nn.Module | None = None

    def begin(self, classes: int, seed: int) -> tuple[Architecture, nn.Module]:
        """The architecture with all its arguments, and a network of it; dualrs need not be able to build ``start``."""
        if self.start is not None and self.architecture.network not in CLASSIFIERS:
            return self.architecture, deepcopy(self.start)
        arguments = {"classes": classes} | self.architecture.arguments
        architecture, network = fresh(self.architecture.model_copy(update={"arguments": arguments}), CLASSIFIERS, seed)
        if self.start is not None:
            try:
                network.load_state_dict(self.start.state_dict())
            except RuntimeError as error:
                reason = " ".join(str(error).split())
                raise BadModel(f"the network to go on from is not a {architecture}: {reason[:300]}") from error
        return architecture, network

    def whole(self, network: nn.Module) -> nn.Module:
        """The network behind the denoiser, if there is one."""
        return network if self.denoiser is None else Denoised(self.denoiser, network)

    @property
    def classes(self) -> tuple[str, ...]:
        """What the network that it goes on from calls its classes."""
        return () if self.start is None else class_names(self.start)

    @property
    def place(self) -> str:
        """Where it stands, for its card."""
        return "" if self.denoiser is None else " behind a denoiser"


def fresh(architecture: Architecture, kinds: Collection[str], seed: int) -> tuple[Architecture, nn.Module]:
    """One of some kinds of networks, with all its arguments, and its random weights."""
    if architecture.network not in kinds:
        near = did_you_mean(architecture.network, kinds)
        raise BadSetting(
            f"there is no network {architecture.network!r} for this; choose one of {', '.join(kinds)}{near}"
        )
    architecture = complete(architecture)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return architecture, build(architecture)
