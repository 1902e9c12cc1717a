"""What is loaded is tried before it is believed: weights are numbers, and a denoiser restores images.

Enters: tensors, or a denoiser told the settings of its training, which its file cannot tell. Leaves: nothing, or the
reason why it is refused.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from dualrs.errors import BadCheckpoint
from dualrs.models.denoise import residual_spread

_SIGMAS = (0.25, 0.5)
_PIXELS = 8 * 32**2  # of all trial images, about
# What a good denoiser leaves of the error of the best pixel-by-pixel one. The bundled one, a small one, leaves 0.37 and
# 0.42 at these sigmas, and 0.57 and 0.65 if it is told 0.43 of the noise, as under the schedule of another training.
_LEFT = 0.5


def demand_finite(tensors: Mapping[str, Tensor], source: object) -> None:
    """Refuse weights that are not numbers: a file that was damaged, or a training that went astray."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not tensor.is_meta and not bool(tensor.isfinite().all()):
            raise BadCheckpoint(
                f"{source}: the tensor {name} holds NaN or infinity; fetch the file anew, or another one"
            )


def demand_restores(denoiser: nn.Module, size: int, source: object) -> None:
    """Refuse a denoiser that does not restore smooth colour images of ``size`` x ``size`` pixels."""
    generator = torch.Generator().manual_seed(0)
    count = max(_PIXELS // size**2, 1)
    colours = 0.5 * torch.rand(count, 3, 4, 4, generator=generator) - 0.2
    light = 0.9 * torch.rand(count, 1, 4, 4, generator=generator)
    clean = interpolate(colours + light, (size, size), mode="bicubic", align_corners=True).clamp(0, 1)
    for sigma in _SIGMAS:
        noisy = clean + sigma * torch.randn(clean.shape, generator=generator)
        with torch.inference_mode():
            error = float((denoiser(noisy, sigma) - clean).square().mean().sqrt())
        allowed = _LEFT * float(residual_spread(sigma, clean))
        if not error <= allowed:
            raise BadCheckpoint(
                f"{source} does not restore images: at sigma {sigma} it is off by {error:.3f}, where a denoiser is off "
                f"by {allowed:.3f} at most. Its settings are not those of its training: heads, order of attention, "
                "noise schedule, steps"
            )
