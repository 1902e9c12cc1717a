"""The zoo: networks by name, each with a card. Bundled weights lie beside this file; others come with packages.

Enters: a name. Leaves: its card, or the network itself in evaluation mode.
"""

from collections.abc import Callable
from importlib.resources import as_file, files

from torch import nn

from dualrs.errors import BadSetting
from dualrs.models.card import Card

_BUNDLED = files("dualrs.models") / "bundled"


def _ffdnet() -> nn.Module:
    from dualrs.models.ffdnet import load_ffdnet

    return load_ffdnet()


def _efficientnet() -> nn.Module:
    from dualrs.models.efficientnet import load_efficientnet_lite0

    return load_efficientnet_lite0()


_FROM_PACKAGES: dict[str, Callable[[], nn.Module]] = {"efficientnet-lite0": _efficientnet, "ffdnet": _ffdnet}


def names() -> list[str]:
    """Every name in the zoo."""
    return sorted(f.name.removesuffix(".json") for f in _BUNDLED.iterdir() if f.name.endswith(".json"))


def card(name: str) -> Card:
    """What is known of a network."""
    _demand(name)
    with as_file(_BUNDLED / f"{name}.json") as path:
        return Card.read(path)


def load(name: str) -> nn.Module:
    """The network, in evaluation mode."""
    _demand(name)
    if name in _FROM_PACKAGES:
        return _FROM_PACKAGES[name]()
    from dualrs.models.weights import load_weights

    with as_file(_BUNDLED) as folder:
        return load_weights(folder / f"{name}.safetensors")


def _demand(name: str) -> None:
    if name not in names():
        raise BadSetting(f"the zoo has no network {name!r}; it has {', '.join(names())}")
