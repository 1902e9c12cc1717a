"""dualrs: certified L2 robustness with dual randomized smoothing.

The front door. Names are loaded when first used, so that ``import dualrs`` is quick and does not import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from dualrs.version import __version__

if TYPE_CHECKING:
    from dualrs.aces import Aces
    from dualrs.bundle import load_bundle
    from dualrs.certificates import ABSTAIN, Certificate, Certificates, Outcome, Prediction, Predictions
    from dualrs.errors import DualrsError, DualrsWarning
    from dualrs.policy import Grid, Tolerance
    from dualrs.smoothed import DualSmoothed, Smoothed

_HOMES = {
    "ABSTAIN": "certificates",
    "Aces": "aces",
    "Certificate": "certificates",
    "Certificates": "certificates",
    "DualSmoothed": "smoothed",
    "DualrsError": "errors",
    "DualrsWarning": "errors",
    "Grid": "policy",
    "Outcome": "certificates",
    "Prediction": "certificates",
    "Predictions": "certificates",
    "Smoothed": "smoothed",
    "Tolerance": "policy",
    "load_bundle": "bundle",
}

__all__ = [
    "ABSTAIN",
    "Aces",
    "Certificate",
    "Certificates",
    "DualSmoothed",
    "DualrsError",
    "DualrsWarning",
    "Grid",
    "Outcome",
    "Prediction",
    "Predictions",
    "Smoothed",
    "Tolerance",
    "__version__",
    "load_bundle",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'dualrs' has no attribute {name!r}")
    return getattr(import_module(f"dualrs.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
