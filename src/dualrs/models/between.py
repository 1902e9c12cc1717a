"""What may stand between a denoiser and a network in a reference: methods with randomness of their own, by name.

    diffsmooth(m=5,sigma=0.25)      the mean softmax of the network under m local noises (Zhang et al. 2023)
    densepure(K=10,b=2)             the plurality of K random walks of b reverse steps (Xiao et al. 2023)

Enters: text. Leaves: its settings as a value, and from them the text again; given networks, the module that they make.
To look at names does not import torch.
"""

import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class DiffSmooth:
    """Local smoothing of the network."""

    m: int = 5
    sigma: float = 0.25

    def front(self, denoiser: "nn.Module") -> "nn.Module":
        """What networks behind one denoiser share: the denoiser itself."""
        return denoiser

    def join(self, front: "nn.Module", network: "nn.Module") -> "nn.Module":
        """The network behind it."""
        from dualrs.models.denoise import Denoised
        from dualrs.models.local import LocallySmoothed

        return Denoised(front, LocallySmoothed(network, self.m, self.sigma))


@dataclass(frozen=True)
class DensePure:
    """Random walks back through a diffusion model."""

    K: int = 10
    b: int = 2

    def front(self, denoiser: "nn.Module") -> "nn.Module":
        """What networks behind one denoiser share: the walks."""
        from dualrs.models.densepure import ReverseRuns

        return ReverseRuns(denoiser, self.K, self.b)

    def join(self, front: "nn.Module", network: "nn.Module") -> "nn.Module":
        """The network behind them."""
        from dualrs.models.densepure import Plurality

        return Plurality(front, network)


Between = DiffSmooth | DensePure
_METHODS: dict[str, type[Between]] = {"diffsmooth": DiffSmooth, "densepure": DensePure}
FORMS = "diffsmooth(m=5,sigma=0.25) or densepure(K=10,b=2)"


def parse_between(text: str) -> Between | None:
    """The method that a text writes down, if it is one; settings that are left out have their defaults."""
    found = re.fullmatch(r"(\w+)\s*(?:\(([^()]*)\))?", text)
    if found is None or found[1] not in _METHODS:
        return None
    method = _METHODS[found[1]]
    kinds: dict[str, type] = {field.name: type(field.default) for field in fields(method)}
    pairs = [pair.partition("=") for pair in (found[2] or "").split(",") if pair.strip()]
    try:
        settings = {name.strip(): kinds[name.strip()](value) for name, _, value in pairs}
    except (ValueError, KeyError):
        return None
    return method(**settings) if len(settings) == len(pairs) else None


def spell_between(method: Between) -> str:
    """The text of a method, with every setting."""
    name = next(name for name, kind in _METHODS.items() if isinstance(method, kind))
    return f"{name}({','.join(f'{field.name}={getattr(method, field.name)!r}' for field in fields(method))})"
