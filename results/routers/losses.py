"""Losses for routers that serve a rule, in place of the paper's: `train router --loss results/routers/losses.py:NAME`.

Enters: logits on noisy copies, (copies, images, sigmas), and the radius of the true class at each sigma, (images,
sigmas). Leaves: a loss for each image.
"""

import torch
from torch import Tensor

from dualrs.training.losses import consistency, log_softmax

REACH, RIGHT = 1.0, 0.2  # radii count up to here; being right counts as much as this radius


def worth(radii: Tensor) -> Tensor:
    """What naming each sigma is worth: about the area under its certified accuracy up to `REACH`."""
    return torch.where(radii > 0, RIGHT + radii.clamp(max=REACH), 0.0)


def cautious(logits: Tensor, radii: Tensor) -> Tensor:
    """-log of the expected worth as a share of the best: a sigma at which nothing holds is avoided at any price."""
    share = worth(radii) / worth(radii).amax(dim=1, keepdim=True)
    lost = -torch.logsumexp(log_softmax(logits) + share.clamp(min=1e-4).log(), dim=-1).mean(dim=0)
    return lost + consistency(logits, consistency_weight=10.0, entropy_weight=0.1)


def regret(logits: Tensor, radii: Tensor) -> Tensor:
    """The worth that is lost in the mean; copies are asked to agree only where some expert is wrong.

    Under `fusion` the routing may change where the experts answer alike.
    """
    lost = worth(radii).amax(dim=1) - (logits.softmax(dim=-1) * worth(radii)).sum(dim=-1).mean(dim=0)
    disagree = (radii <= 0).any(dim=1)
    return lost + disagree * consistency(logits, consistency_weight=1.0, entropy_weight=0.0)
