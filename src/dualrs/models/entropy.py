"""EntropyBins: a network that answers how uncertain another one is; the selector of rule `aces`.

Enters: noisy images and, if the network wants it, their sigma. Leaves: logits, whose arg max is the number of
thresholds that the entropy of the network's answer exceeds.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dualrs.errors import BadSetting
from dualrs.models.denoise import Behind, Sigma
from dualrs.models.noisy import NoisyModel


class EntropyBins(Behind):
    """Bin the entropy, in nats, of a network's softmax; one answer more than there are thresholds.

    The logits are continuous in the entropy, so that rounding can change an answer only where the entropy is at a
    threshold.
    """

    thresholds: Tensor

    def __init__(self, network: nn.Module, thresholds: Sequence[float]) -> None:
        super().__init__()
        if not thresholds or any(b <= a for a, b in zip((0.0, *thresholds), thresholds, strict=False)):
            raise BadSetting(f"thresholds of an entropy must be positive and rising, got {list(thresholds)}")
        self.network = network
        self.register_buffer("thresholds", torch.tensor(thresholds))
        self._looked_at = NoisyModel("selector", network)
        self.training = network.training

    @property
    def front(self) -> nn.Module:
        """The network whose entropy is looked at."""
        return self.network

    def begin(self, noisy: Tensor, sigma: Sigma) -> Tensor:
        """The logits of that network."""
        logits = self.network(noisy, sigma=sigma) if self._looked_at.takes_sigma else self.network(noisy)
        return self._looked_at.checked(logits, len(noisy))

    def answer(self, begun: Tensor, sigma: Sigma) -> Tensor:
        """Logits, shape (batch, thresholds + 1): sums of what the entropy exceeds each threshold by."""
        log_p = begun.float().log_softmax(dim=1)
        entropy = -(log_p.exp() * log_p).sum(dim=1, keepdim=True)
        # The sums grow as long as a threshold is exceeded, and fall from there on.
        exceeded = (entropy - self.thresholds.float()).cumsum(dim=1)
        return torch.cat([torch.zeros_like(entropy), exceeded], dim=1)
