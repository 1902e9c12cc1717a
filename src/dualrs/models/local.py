"""Local smoothing: the mean answer of a network to a few noisy copies of an image, as DiffSmooth has it.

Enters: denoised images, and randomness. Leaves: the log of the mean softmax. Zhang et al. 2023 put it behind a denoiser
that leaves artefacts, with a network trained on the noise that is added here. Their code may share that noise between
the images of a batch; then votes are not independent, and no certificate follows. Here every vote draws its own.
"""

import math

import torch
from torch import Tensor, nn

from dualrs.errors import BadSetting
from dualrs.models.noisy import NoisyModel, class_names
from dualrs.models.randomness import Randomness


class LocallySmoothed(nn.Module):
    """A network under ``m`` noises of standard deviation ``sigma``, which it is told if it wants to know."""

    def __init__(self, network: nn.Module, m: int = 5, sigma: float = 0.25) -> None:
        super().__init__()
        if m < 1 or not 0 < sigma < math.inf:
            raise BadSetting(f"local smoothing needs at least one noise, of positive sigma; got m = {m}, sigma {sigma}")
        self.network, self.m, self.sigma = network, m, sigma
        self._voter = NoisyModel("network under local smoothing", network)
        self.classes, self.routes = class_names(network), getattr(network, "routes", None)
        self.training = network.training

    def extra_repr(self) -> str:
        """The settings, because a fingerprint hashes the printed form."""
        return f"m={self.m}, sigma={self.sigma!r}"

    def forward(self, images: Tensor, randomness: Randomness) -> Tensor:
        """The log of the mean softmax, shape (batch, classes)."""
        answers = [
            self._voter(images + self.sigma * randomness.randn(*images.shape), self.sigma, randomness)
            for _ in range(self.m)
        ]
        log_p = torch.stack([logits.float().log_softmax(dim=1) for logits in answers])
        return log_p.logsumexp(dim=0) - math.log(self.m)
