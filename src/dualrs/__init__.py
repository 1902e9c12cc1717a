"""dualrs: certified L2 robustness with dual randomized smoothing.

The front door. Names are loaded when first used, so that ``import dualrs`` is quick and does not import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from dualrs.version import __version__

if TYPE_CHECKING:
    from os import PathLike

    from dualrs.certificates import ABSTAIN, Certificate, Certificates, Outcome, Prediction, Predictions
    from dualrs.errors import DualrsError, DualrsWarning
    from dualrs.pipeline.build import load_data
    from dualrs.pipeline.bundle import load_bundle
    from dualrs.pipeline.networks import load
    from dualrs.policy import Grid, Tolerance
    from dualrs.sample import Sample
    from dualrs.smoothed import Aces, Cascade, DualSmoothed, Smoothed, certify_dataset

_HOMES = {
    "ABSTAIN": "certificates",
    "Aces": "smoothed",
    "Cascade": "smoothed",
    "Certificate": "certificates",
    "Certificates": "certificates",
    "DualSmoothed": "smoothed",
    "DualrsError": "errors",
    "DualrsWarning": "errors",
    "Grid": "policy",
    "Outcome": "certificates",
    "Prediction": "certificates",
    "Predictions": "certificates",
    "Sample": "sample",
    "Smoothed": "smoothed",
    "Tolerance": "policy",
    "certify_dataset": "smoothed",
    "load": "pipeline.networks",
    "load_bundle": "pipeline.bundle",
    "load_data": "pipeline.build",
}

__all__ = [
    "ABSTAIN",
    "Aces",
    "Cascade",
    "Certificate",
    "Certificates",
    "DualSmoothed",
    "DualrsError",
    "DualrsWarning",
    "Grid",
    "Outcome",
    "Prediction",
    "Predictions",
    "Sample",
    "Smoothed",
    "Tolerance",
    "__version__",
    "certify_dataset",
    "load",
    "load_bundle",
    "load_data",
    "open",
]


def open(ledger: "str | PathLike[str]") -> "Sample":
    """The votes of a ledger, to certify by any rule that they allow; needs no network, and does not import torch."""
    from dualrs.sample import Sample

    return Sample.open(ledger)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'dualrs' has no attribute {name!r}")
    return getattr(import_module(f"dualrs.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
