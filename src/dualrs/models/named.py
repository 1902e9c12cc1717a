"""By which reference a network was opened, so that a model of such networks can be packed again.

Enters: a network and its reference, paths absolute. Leaves: the reference, as long as the network lives.
"""

from weakref import WeakKeyDictionary

from torch import nn

_NAMES: "WeakKeyDictionary[nn.Module, str]" = WeakKeyDictionary()


def remember(network: nn.Module, reference: str) -> None:
    """Note what a network was opened by."""
    _NAMES[network] = reference


def name_of(network: nn.Module) -> str | None:
    """What a network was opened by; None if it was made in Python."""
    return _NAMES.get(network)
