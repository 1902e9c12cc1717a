"""dualrs: certified L2 robustness with dual randomized smoothing.

The front door. Names are loaded when first used, so that ``import dualrs`` is quick and does not import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from dualrs.version import __version__

if TYPE_CHECKING:
    from os import PathLike

    from dualrs.attacks import Attack, Attacks, Effort, attack, attack_ledger
    from dualrs.certificates import ABSTAIN, Certificate, Certificates, Outcome, Prediction, Predictions
    from dualrs.errors import DualrsError, DualrsWarning
    from dualrs.hub import from_pretrained, push_to_hub, save_pretrained
    from dualrs.pipeline.build import load_data
    from dualrs.pipeline.bundle import load_bundle
    from dualrs.pipeline.networks import load
    from dualrs.policy import Grid, Tolerance
    from dualrs.sample import Sample
    from dualrs.smoothed import (
        Ace,
        Aces,
        Ascending,
        Backed,
        Cascade,
        DualSmoothed,
        InputDependent,
        Mixed,
        Smoothed,
        certify_dataset,
    )

# Where each name comes from.
_HOMES = {
    "attacks": ("Attack", "Attacks", "Effort", "attack", "attack_ledger"),
    "certificates": ("ABSTAIN", "Certificate", "Certificates", "Outcome", "Prediction", "Predictions"),
    "errors": ("DualrsError", "DualrsWarning"),
    "hub": ("from_pretrained", "push_to_hub", "save_pretrained"),
    "pipeline.build": ("load_data",),
    "pipeline.bundle": ("load_bundle",),
    "pipeline.networks": ("load",),
    "policy": ("Grid", "Tolerance"),
    "sample": ("Sample",),
    "smoothed": (
        *("Ace", "Aces", "Ascending", "Backed", "Cascade", "DualSmoothed", "InputDependent", "Mixed", "Smoothed"),
        "certify_dataset",
    ),
}

__all__ = [
    "ABSTAIN",
    "Ace",
    "Aces",
    "Ascending",
    "Attack",
    "Attacks",
    "Backed",
    "Cascade",
    "Certificate",
    "Certificates",
    "DualSmoothed",
    "DualrsError",
    "DualrsWarning",
    "Effort",
    "Grid",
    "InputDependent",
    "Mixed",
    "Outcome",
    "Prediction",
    "Predictions",
    "Sample",
    "Smoothed",
    "Tolerance",
    "__version__",
    "attack",
    "attack_ledger",
    "certify_dataset",
    "from_pretrained",
    "load",
    "load_bundle",
    "load_data",
    "open",
    "push_to_hub",
    "save_pretrained",
]


def open(ledger: "str | PathLike[str]") -> "Sample":
    """The votes of a ledger, to certify by any rule that they allow; needs no network, and does not import torch."""
    from dualrs.sample import Sample

    return Sample.open(ledger)


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"dualrs.{home}"), name)
    raise AttributeError(f"module 'dualrs' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
