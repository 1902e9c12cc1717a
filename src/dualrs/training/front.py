"""What stands before the network that is trained: a denoiser, kept as it is, or nothing.

Enters: noisy images. Leaves: what the network sees of them, on the device where it is trained.
"""

import torch
from torch import Tensor, nn

from dualrs.models.compiled import compile_parts
from dualrs.models.denoise import Sigma
from dualrs.models.noisy import answering, fingerprint
from dualrs.training.processes import join


class Front:
    """A frozen denoiser, or none. Clean images (sigma 0) pass as they are."""

    def __init__(
        self, denoiser: nn.Module | None = None, device: str | torch.device = "cpu", *, compile: bool = False
    ) -> None:
        self._denoiser = denoiser
        self.device = join(device).device
        self.name = "bare" if denoiser is None else f"behind {fingerprint(denoiser)}"
        if denoiser is not None:
            denoiser.to(self.device).eval().requires_grad_(False)
            if compile:
                compile_parts(denoiser)

    def __call__(self, noisy: Tensor, sigma: Sigma) -> Tensor:
        """What the network sees of noisy images. A gradient is passed on to images that ask for one."""
        if self._denoiser is None:
            return noisy
        with torch.set_grad_enabled(noisy.requires_grad), answering("denoiser", self._denoiser, noisy):
            if not isinstance(sigma, Tensor):
                return noisy if sigma == 0 else self._denoiser(noisy, sigma)
            unclean = sigma > 0
            if not unclean.any():
                return noisy
            denoised: Tensor = self._denoiser(noisy[unclean], sigma[unclean]).to(noisy.dtype)
            return denoised if unclean.all() else noisy.index_put((unclean,), denoised)
