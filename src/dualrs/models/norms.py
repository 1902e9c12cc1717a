"""Bounds on the norms of convolutions that hold in floating point: what a stated radius divides by.

Enters: the kernel of a convolution with zero padding and stride 1, a matrix being one of 1 x 1. Leaves: a number that
its operator norm does not exceed, whatever the size of the image.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

ROUNDING = 2.0**-53  # of one operation in float64
_STEPS = 300  # towards the best weights of the Schur test; any positive weights are sound


def rounding(terms: int) -> float:
    """What a sum of so many products in float64 may be off by, relative to the sum of their sizes (Higham, gamma_n).

    Whatever the order of the summands; with room for a few operations more.
    """
    return 2 * (terms + 8) * ROUNDING


def norm_bound(kernel: Tensor) -> float:
    """An upper bound on the L2 norm of a convolution with zero padding; kernel (out, in, side, side).

    Guarantee: no image x of any size has |A x| > bound |x|. With padding A is a part of the convolution on the infinite
    plane, whose Gram operator M = A A' is a convolution too. Schur's test: where the sums over j of |M_ij| p_j are at
    most c p_i for some p > 0, |A|^2 <= c. Here p is constant over the plane, and M is taken together with all that
    rounding may have hidden.
    Assumes: sums of products in float64 on the CPU, in any order, as matrix products make them.
    """
    kernel = kernel.detach().cpu().double()
    share = _gram(kernel) + 2 * rounding(kernel[0].numel()) * _gram(kernel.abs())
    weights = torch.ones(len(share), dtype=torch.float64)
    bound = torch.inf
    for _ in range(_STEPS):
        sums = share @ weights
        bound = min(bound, float((sums / weights).max()))
        weights = sums / sums.max() + 1e-9  # towards the largest eigenvector
    slack = 1 + rounding(2 * len(share) + 4 * kernel[0].numel())
    return float((bound * slack) ** 0.5 * slack)


def _gram(kernel: Tensor) -> Tensor:
    """The sums over all displacements of the sizes of the Gram kernel, shape (out, out)."""
    out, _, side, _ = kernel.shape
    padded = F.pad(kernel, [side - 1] * 4)
    windows = padded.unfold(2, side, 1).unfold(3, side, 1)  # (out, in, shifts, shifts, side, side)
    moved = windows.permute(0, 2, 3, 1, 4, 5).reshape(out, (2 * side - 1) ** 2, -1)
    return (moved @ kernel.reshape(out, -1).T).abs().sum(dim=1)
