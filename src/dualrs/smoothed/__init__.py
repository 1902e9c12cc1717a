"""What a user wraps around torch modules: sampling plus a rule. Section 5.1 of the paper.

Enters: modules, images. Leaves: votes, certificates and predictions.
"""

from dualrs.smoothed.kinds import Aces, Cascade, DualSmoothed, Pool, RouterAlone, Smoothed, answering
from dualrs.smoothed.model import SmoothedModel, certify_dataset
from dualrs.smoothed.stated import Ace, Backed, Mixed

__all__ = [
    "Ace",
    "Aces",
    "Backed",
    "Cascade",
    "DualSmoothed",
    "Mixed",
    "Pool",
    "RouterAlone",
    "Smoothed",
    "SmoothedModel",
    "answering",
    "certify_dataset",
]
