"""What stands before the network that is trained: a denoiser, kept as it is, or nothing."""

import torch
from torch import Tensor, nn

from dualrs.models.denoise import Sigma
from dualrs.models.noisy import fingerprint


class Front:
    """A frozen denoiser, or none. Clean images (sigma 0) pass as they are."""

    def __init__(self, denoiser: nn.Module | None, device: torch.device) -> None:
        self._denoiser = denoiser
        self.name = "bare" if denoiser is None else f"behind {fingerprint(denoiser)}"
        if denoiser is not None:
            denoiser.to(device).eval().requires_grad_(False)

    @torch.no_grad()
    def __call__(self, noisy: Tensor, sigma: Sigma) -> Tensor:
        """What the network sees of noisy images."""
        if self._denoiser is None:
            return noisy
        if not isinstance(sigma, Tensor):
            return noisy if sigma == 0 else self._denoiser(noisy, sigma)
        unclean = sigma > 0
        if unclean.any():
            noisy[unclean] = self._denoiser(noisy[unclean], sigma[unclean])
        return noisy
