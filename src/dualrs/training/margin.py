"""A loss for networks that state a radius: it goes on until the margin of the true class is that of a wished radius.

Prach and Lampert 2022. Name it where a loss is asked for: ``--loss dualrs.training.margin:margin_loss``.
"""

import math

import torch.nn.functional as F
from torch import Tensor

RADIUS = 0.5  # up to which a larger one is worth much
TEMPERATURE = 0.25  # of the logits of a network that changes by at most 1 where the image does


def margin_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy at a temperature, of logits where the true class starts behind by the margin of the radius."""
    logits = logits.float()
    behind = math.sqrt(2) * RADIUS * F.one_hot(labels, logits.shape[1])
    return TEMPERATURE * F.cross_entropy((logits - behind) / TEMPERATURE, labels, reduction="none")
