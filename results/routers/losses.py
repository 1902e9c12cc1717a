"""Losses for routers, other than the paper's: what README.md tries in order to make a router worth its votes.

Each takes the router's logits on noisy copies, (copies, images, sigmas), and the radius that the true class has under
each sigma, (images, sigmas), and returns one loss per image; `dualrs train router --loss losses.py:NAME` takes it.
"""

from torch import Tensor

from dualrs.training.losses import consistency, soft_cross_entropy

SHARPNESS = 8.0  # radii of these networks differ by tenths: a softmax of them as they are is nearly uniform
WEIGHT, ENTROPY = 10.0, 0.5  # of consistency, as Jeong and Shin have it at sigma 1


def sharp(logits: Tensor, radii: Tensor) -> Tensor:
    """The paper's soft labels of radii times 8, and consistency everywhere alike."""
    labels = (SHARPNESS * radii).softmax(dim=-1)
    return soft_cross_entropy(logits, labels) + consistency(logits, consistency_weight=WEIGHT, entropy_weight=ENTROPY)


def regret(logits: Tensor, radii: Tensor) -> Tensor:
    """The radius that is lost in the mean, over the largest; nothing asks for consistency, which fusion can spare."""
    kept = (logits.softmax(dim=-1) * radii).sum(dim=-1).mean(dim=0)
    return 1.0 - kept / radii.amax(dim=-1)


def disagreement(logits: Tensor, radii: Tensor) -> Tensor:
    """Sharp labels, and consistency where some expert would not answer rightly: elsewhere any sigma may be named."""
    labels = (SHARPNESS * radii).softmax(dim=-1)
    regular = consistency(logits, consistency_weight=4 * WEIGHT, entropy_weight=ENTROPY)
    return soft_cross_entropy(logits, labels) + regular * (radii == 0).any(dim=-1)
