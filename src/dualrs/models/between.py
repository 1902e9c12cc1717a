"""What may stand between a denoiser and a network in a reference: methods with randomness of their own, by name.

    diffsmooth(m=5,sigma=0.25)      the mean softmax of the network under m local noises (Zhang et al. 2023)
    densepure(K=10,b=2)             the plurality of K random walks of b reverse steps (Xiao et al. 2023)

Enters: text. Leaves: its settings as a value, and from them the text again; given networks, the module that they make.
To look at names does not import torch.
"""

import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from dualrs.errors import BadRecipe

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


def parse_between(text: str) -> Between:
    """The method that a text writes down; settings that are left out have their defaults."""
    found = re.fullmatch(r"(\w+)\s*(?:\(([^()]*)\))?", text)
    method = _METHODS.get(found[1]) if found else None
    try:
        if found is None or method is None:
            raise ValueError("another name")
        kinds: dict[str, type] = {field.name: type(field.default) for field in fields(method)}
        pairs = [pair.partition("=") for pair in (found[2] or "").split(",") if pair.strip()]
        settings = {name.strip(): kinds[name.strip()](value) for name, _, value in pairs}
        if len(settings) < len(pairs):
            raise ValueError("a setting twice")
        return method(**settings)
    except (ValueError, KeyError) as error:
        known = " or ".join(spell_between(method()) for method in _METHODS.values())
        raise BadRecipe(f"between a denoiser and a network stands {known}, and not {text!r}") from error


def spell_between(method: Between) -> str:
    """The text of a method, with every setting."""
    name = next(name for name, kind in _METHODS.items() if isinstance(method, kind))
    return f"{name}({','.join(f'{field.name}={getattr(method, field.name)!r}' for field in fields(method))})"
