"""EntropyBins: a network that answers how uncertain another one is; the selector of rule `aces`.

Enters: noisy images and, if the network wants it, their sigma. Leaves: logits, whose arg max is the number of
thresholds that the entropy of the network's answer exceeds.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dualrs.errors import BadSetting
from dualrs.models.denoise import OnLogits, Sigma
from dualrs.models.randomness import Randomness


class EntropyBins(OnLogits):
    """Bin the entropy, in nats, of a network's softmax; one answer more than there are thresholds.

    The logits are continuous in the entropy, so that rounding can change an answer only where the entropy is at a
    threshold.
    """

    thresholds: Tensor

    def __init__(self, network: nn.Module, thresholds: Sequence[float]) -> None:
        super().__init__(network, "selector")
        if not thresholds or any(b <= a for a, b in zip((0.0, *thresholds), thresholds, strict=False)):
            raise BadSetting(f"thresholds of an entropy must be positive and rising, got {list(thresholds)}")
        self.register_buffer("thresholds", torch.tensor(thresholds))

    def answer(self, begun: Tensor, sigma: Sigma, randomness: Randomness | None = None) -> Tensor:
        """Logits, shape (batch, thresholds + 1): sums of what the entropy exceeds each threshold by."""
        log_p = begun.float().log_softmax(dim=1)
        entropy = -(log_p.exp() * log_p).sum(dim=1, keepdim=True)
        # The sums grow as long as a threshold is exceeded, and fall from there on.
        exceeded = (entropy - self.thresholds.float()).cumsum(dim=1)
        return torch.cat([torch.zeros_like(entropy), exceeded], dim=1)
