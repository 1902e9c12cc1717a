"""Architectures by name: every network that dualrs can build, train and save."""

import inspect
from collections.abc import Callable, Sequence
from functools import partial

from torch import nn

from dualrs.errors import BadSetting, DualrsError, did_you_mean, first_line
from dualrs.models.card import Architecture
from dualrs.models.denoise import Preconditioned
from dualrs.models.eight_bits import EightBitResNet
from dualrs.models.lean import LeanResNet, LeanUNet
from dualrs.models.lipschitz import LipschitzNet
from dualrs.models.resnet import cifar_resnet, resnet50


def _lean_unet(width: int = 24, middle: int = 2) -> nn.Module:
    return Preconditioned(LeanUNet(width, middle))


def _folded_unet(width: int = 32, layers: int = 1) -> nn.Module:
    from dualrs.models.folded import FoldedUNet

    return Preconditioned(FoldedUNet(width, layers))


DENOISERS: dict[str, Callable[..., nn.Module]] = {"lean-unet": _lean_unet, "unet2d": _folded_unet}
CLASSIFIERS: dict[str, Callable[..., nn.Module]] = {
    "lean-resnet": LeanResNet,
    "lipschitz": LipschitzNet,
    "resnet20": partial(cifar_resnet, 20),
    "resnet56": partial(cifar_resnet, 56),
    "resnet110": partial(cifar_resnet, 110),
    "resnet50": resnet50,
}
DERIVED: dict[str, Callable[..., nn.Module]] = {"eight-bit-resnet": EightBitResNet}  # made from others, never trained
_ALL = DENOISERS | CLASSIFIERS | DERIVED


# The least and the most of each argument that is a size or a number of layers, together where there are several: a
# network beyond that is a mistake, or a card made to take all memory and time.
_LIMITS = {
    "classes": (1, 1 << 20),
    "channels": (1, 1 << 10),
    "width": (1, 1 << 13),
    "widths": (1, 1 << 13),
    "middle": (0, 1 << 8),
    "layers": (1, 1 << 8),
    "blocks": (0, 1 << 8),
    "inner": (1, 1 << 13),
    "side": (8, 1 << 12),
}


def known(architecture: Architecture) -> bool:
    """Whether `build` can make it; a network of a hub or a user's own is made elsewhere."""
    return architecture.network in _ALL


def complete(architecture: Architecture) -> Architecture:
    """The same network with every argument spelled out, so that it stays the same when a default changes."""
    builder = _builder(architecture)
    try:
        bound = inspect.signature(builder).bind(**architecture.arguments)
    except TypeError as error:
        raise _unbuildable(architecture, error) from error
    bound.apply_defaults()
    return Architecture(network=architecture.network, arguments=bound.arguments)


def build(architecture: Architecture) -> nn.Module:
    """The network, with fresh random weights, in evaluation mode."""
    builder = _builder(architecture)
    for name, value in architecture.arguments.items():
        _demand_sane(name, value, architecture.network)
    try:
        return builder(**architecture.arguments).eval()
    except DualrsError:
        raise
    except Exception as error:  # arguments of the wrong kinds fail in many ways
        raise _unbuildable(architecture, error) from error


def _unbuildable(architecture: Architecture, error: Exception) -> BadSetting:
    parameters = inspect.signature(_builder(architecture)).parameters.values()
    known = ", ".join(p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in parameters)
    return BadSetting(
        f"{architecture} cannot be built: {first_line(error)}; the arguments of {architecture.network} are {known}"
    )


def _demand_sane(name: str, value: object, network: str) -> None:
    """Refuse sizes out of all proportion before anything is made of them."""
    least, most = _LIMITS.get(name, (0, 0))
    numbers = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    whole = [number for number in numbers if isinstance(number, int)]
    if name in _LIMITS and whole and not (min(whole) >= least and sum(whole) <= most):
        raise BadSetting(f"{network} cannot be built: {name} must lie between {least} and {most:,}")


def _builder(architecture: Architecture) -> Callable[..., nn.Module]:
    if architecture.network not in _ALL:
        near = did_you_mean(architecture.network, _ALL)
        raise BadSetting(f"there is no network {architecture.network!r}; choose one of {', '.join(_ALL)}{near}")
    return _ALL[architecture.network]
