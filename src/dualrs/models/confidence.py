"""ConfidenceBins: a classifier that also says how sure it is. Votes that may pass are derived from its answers.

Enters: noisy images and, if the network wants it, their sigma. Leaves: logits over pairs of a class and a bin of
confidence; the arg max is the network's class, and how many of the confidences its largest softmax probability reaches.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dualrs.models.denoise import OnLogits, Sigma
from dualrs.models.randomness import Randomness


class ConfidenceBins(OnLogits):
    """The answers of a network, each split by its softmax probability; answer = class * bins + bin.

    ``confidences`` rise; there is one bin more than there are of them. The logits are continuous in those of the
    network, so that rounding can change an answer only where two classes tie or the confidence is at the end of a bin.
    """

    confidences: Tensor

    def __init__(self, network: nn.Module, confidences: Sequence[float]) -> None:
        super().__init__(network, "classifier")
        self.answers_per_class = len(confidences) + 1
        self.register_buffer("confidences", torch.tensor(confidences))

    def answer(self, begun: Tensor, sigma: Sigma, randomness: Randomness | None = None) -> Tensor:
        """Logits, shape (batch, classes * bins): the log-probability of the class, and what each bin has for it."""
        log_p = begun.float().log_softmax(dim=1)
        sure = log_p.exp().amax(dim=1, keepdim=True)
        # The sums grow as long as a confidence is reached, and fall from there on.
        reached = (sure - self.confidences.float()).cumsum(dim=1)
        bins = torch.cat([torch.zeros_like(sure), reached], dim=1)
        return (log_p[:, :, None] + bins[:, None, :]).flatten(start_dim=1)
