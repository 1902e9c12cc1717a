"""What stands before the network that is trained: a denoiser, kept as it is, or nothing.

Enters: noisy images. Leaves: what the network sees of them, on the device where it is trained.
"""

import torch
from torch import Tensor, nn

from dualrs.models.denoise import Sigma
from dualrs.models.noisy import answering, fingerprint
from dualrs.training.processes import join


class Front:
    """A frozen denoiser, or none. Clean images (sigma 0) pass as they are."""

    def __init__(self, denoiser: nn.Module | None = None, device: str | torch.device = "cpu") -> None:
        self._denoiser = denoiser
        self.device = join(device).device
        self.name = "bare" if denoiser is None else f"behind {fingerprint(denoiser)}"
        if denoiser is not None:
            denoiser.to(self.device).eval().requires_grad_(False)

    @torch.no_grad()
    def __call__(self, noisy: Tensor, sigma: Sigma) -> Tensor:
        """What the network sees of noisy images."""
        if self._denoiser is None:
            return noisy
        with answering("denoiser", self._denoiser, noisy):
            if not isinstance(sigma, Tensor):
                return noisy if sigma == 0 else self._denoiser(noisy, sigma)
            unclean = sigma > 0
            if unclean.any():
                noisy[unclean] = self._denoiser(noisy[unclean], sigma[unclean])
            return noisy
