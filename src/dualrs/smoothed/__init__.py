"""What a user wraps around torch modules: sampling plus a rule. Section 5.1 of the paper.

Enters: modules, images. Leaves: votes, certificates and predictions.
"""

from dualrs.smoothed.kinds import (
    Aces,
    Ascending,
    Cascade,
    DualSmoothed,
    InputDependent,
    Pool,
    RouterAlone,
    Smoothed,
    answering,
)
from dualrs.smoothed.model import SmoothedModel, certify_dataset
from dualrs.smoothed.stated import Ace, Backed, Mixed

__all__ = [
    "Ace",
    "Aces",
    "Ascending",
    "Backed",
    "Cascade",
    "DualSmoothed",
    "InputDependent",
    "Mixed",
    "Pool",
    "RouterAlone",
    "Smoothed",
    "SmoothedModel",
    "answering",
    "certify_dataset",
]
