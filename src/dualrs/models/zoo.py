"""The zoo: networks by name, each with a card. Bundled weights lie beside this file; others come with packages.

Enters: a name. Leaves: its card, or the network itself in evaluation mode.
"""

from collections.abc import Callable
from importlib.resources import as_file, files

from torch import nn

from dualrs.errors import BadSetting, did_you_mean
from dualrs.models.card import Card

FOLDER = files("dualrs.models") / "bundled"  # weights and cards


def _ffdnet() -> nn.Module:
    from dualrs.models.ffdnet import load_ffdnet

    return load_ffdnet()


def _efficientnet() -> nn.Module:
    from dualrs.models.efficientnet import load_efficientnet_lite0

    return load_efficientnet_lite0()


_FROM_PACKAGES: dict[str, Callable[[], nn.Module]] = {"efficientnet-lite0": _efficientnet, "ffdnet": _ffdnet}


def names() -> list[str]:
    """Every name in the zoo."""
    return sorted(f.name.removesuffix(".json") for f in FOLDER.iterdir() if f.name.endswith(".json"))


def bundled(name: str) -> bool:
    """Whether the weights lie in `FOLDER`."""
    _demand(name)
    return name not in _FROM_PACKAGES


def card(name: str) -> Card:
    """What is known of a network."""
    _demand(name)
    with as_file(FOLDER / f"{name}.json") as path:
        return Card.read(path)


def load(name: str) -> nn.Module:
    """The network, in evaluation mode."""
    if not bundled(name):
        return _FROM_PACKAGES[name]()
    from dualrs.models.weights import load_weights

    with as_file(FOLDER) as folder:
        return load_weights(folder / f"{name}.safetensors")


def _demand(name: str) -> None:
    if name not in names():
        near = did_you_mean(name, names())
        raise BadSetting(f"the zoo has no network {name!r}; it has {', '.join(names())}{near}")
