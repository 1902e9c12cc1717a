"""Bounds on norms of convolutions, beside the norms themselves."""

import pytest
import torch
import torch.nn.functional as F

from dualrs.models.lipschitz import GradientBlock
from dualrs.models.norms import norm_bound


def true_norm(kernel, side=9):
    """The largest singular value on images of some side."""
    channels = kernel.shape[1]
    units = torch.eye(channels * side**2, dtype=torch.float64).view(-1, channels, side, side)
    return float(torch.linalg.matrix_norm(F.conv2d(units, kernel, padding=kernel.shape[-1] // 2).flatten(1), 2))


@pytest.mark.parametrize("shape", [(5, 3, 3, 3), (3, 5, 3, 3), (4, 4, 1, 1), (1, 6, 3, 3), (6, 1, 5, 5)])
@pytest.mark.parametrize("seed", range(3))
def test_bound_is_never_below_the_norm_and_not_far_above(shape, seed):
    kernel = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    norm, bound = true_norm(kernel), norm_bound(kernel)
    assert norm <= bound <= 3 * norm


def test_bound_of_a_known_operator_is_its_norm():
    assert norm_bound(torch.eye(4).view(4, 4, 1, 1)) == pytest.approx(1, rel=1e-9)
    assert norm_bound(torch.ones(1, 1, 3, 3)) == pytest.approx(9, rel=1e-9)  # attained only on ever larger images
    assert norm_bound(torch.zeros(2, 3, 3, 3)) == 0


@pytest.mark.parametrize("side", [1, 3])
def test_rescaled_block_has_norm_one_at_most(side):
    torch.manual_seed(0)
    block = GradientBlock(6, 5, side)
    with torch.no_grad():
        block.weight.copy_(torch.randn(block.weight.shape) * torch.tensor([9.0, 1.0, 0.1, 3.0, 0.0]).view(-1, 1, 1, 1))
        kernel = block.kernel(torch.float64)
    assert true_norm(kernel) <= norm_bound(kernel) <= 1 + 1e-4
