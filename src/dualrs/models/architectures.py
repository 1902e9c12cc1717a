"""Architectures by name: every network that dualrs can build, train and save."""

import inspect
from collections.abc import Callable
from functools import partial

from torch import nn

from dualrs.errors import BadSetting
from dualrs.models.card import Architecture
from dualrs.models.denoise import Preconditioned
from dualrs.models.lean import LeanResNet, LeanUNet
from dualrs.models.resnet import cifar_resnet, resnet50


def _lean_unet(width: int = 24, middle: int = 2) -> nn.Module:
    return Preconditioned(LeanUNet(width, middle))


def _folded_unet(width: int = 32, layers: int = 1) -> nn.Module:
    from dualrs.models.folded import FoldedUNet

    return Preconditioned(FoldedUNet(width, layers))


DENOISERS: dict[str, Callable[..., nn.Module]] = {"lean-unet": _lean_unet, "unet2d": _folded_unet}
CLASSIFIERS: dict[str, Callable[..., nn.Module]] = {
    "lean-resnet": LeanResNet,
    "resnet20": partial(cifar_resnet, 20),
    "resnet56": partial(cifar_resnet, 56),
    "resnet110": partial(cifar_resnet, 110),
    "resnet50": resnet50,
}


def known(architecture: Architecture) -> bool:
    """Whether `build` can make it; a network of a hub or a user's own is made elsewhere."""
    return architecture.network in DENOISERS | CLASSIFIERS


def complete(architecture: Architecture) -> Architecture:
    """The same network with every argument spelled out, so that it stays the same when a default changes."""
    builder = _builder(architecture)
    try:
        bound = inspect.signature(builder).bind(**architecture.arguments)
    except TypeError as error:
        raise BadSetting(f"{architecture} cannot be built: {error}") from error
    bound.apply_defaults()
    return Architecture(network=architecture.network, arguments=bound.arguments)


def build(architecture: Architecture) -> nn.Module:
    """The network, with fresh random weights, in evaluation mode."""
    try:
        return _builder(architecture)(**architecture.arguments).eval()
    except (TypeError, ValueError) as error:
        raise BadSetting(f"{architecture} cannot be built: {error}") from error


def _builder(architecture: Architecture) -> Callable[..., nn.Module]:
    builders = DENOISERS | CLASSIFIERS
    if architecture.network not in builders:
        raise BadSetting(f"there is no network {architecture.network!r}; choose one of {', '.join(builders)}")
    return builders[architecture.network]
