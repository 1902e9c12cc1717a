"""LipschitzNet: a classifier whose logits cannot change faster than the image, and that can be trained on a CPU.

Enters: images in [0, 1] units, with sides that 8 divides. Leaves: logits, or a class and a radius. Every layer but the
head is an isometry (a shift, pixels folded into channels, channels of zeros) or a block x - 2 A' relu(A x + b) with the
norm of A at most 1, which is 1-Lipschitz. `LipschitzNet.state` verifies that of the weights it finds, whatever training
intended.

Training keeps the norms there by the rescaling of Prach and Lampert 2022 (AOL); with it the block is that of Araujo et
al. 2023 (SLL), where a positive scale of the inner units was moved through the ReLU.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dualrs.errors import BadImage, BadSetting
from dualrs.models.noisy import fingerprint
from dualrs.models.norms import norm_bound, rounding
from dualrs.models.stated import LEVELS, Statement

MID = 0.5  # of the pixels
FOLDS = 3  # times that 2 x 2 pixels become channels


class GradientBlock(nn.Module):
    """x - 2 A' relu(A x + b), with A a convolution of ``side`` x ``side`` whose rows are rescaled so that |A| <= 1.

    Why it is 1-Lipschitz: with d = A (x - y) and e the change of the relu, e_i^2 <= e_i d_i. So |x - y - 2 A'e|^2 =
    |x - y|^2 - 4 e.d + 4 |A'e|^2 is at most |x - y|^2 - 4 e.d + 4 |e|^2 <= |x - y|^2.
    """

    def __init__(self, channels: int, inner: int, side: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inner, channels, side, side))
        self.bias = nn.Parameter(torch.zeros(inner))
        nn.init.orthogonal_(self.weight.data.view(inner, -1))

    def kernel(self, dtype: torch.dtype) -> Tensor:
        """The convolution A: rows are divided by the root of the row sums of |W W'|."""
        weight = self.weight.to(dtype)
        with torch.autocast(weight.device.type, enabled=False):
            gram = F.conv2d(weight, weight, padding=weight.shape[-1] - 1)
            return weight * gram.abs().sum(dim=(1, 2, 3)).clamp_min(1e-12).rsqrt()[:, None, None, None]


class Weights(NamedTuple):
    """What the layers compute with: kernel and bias of each block of each resolution, rows and bias of the head."""

    stages: list[list[tuple[Tensor, Tensor]]]
    head: Tensor
    bias: Tensor


class LipschitzNet(nn.Module):
    """Blocks at a half, a quarter and an eighth of the sides, and a head with rows of norm 1.

    ``width`` channels at a half, four times as many after each fold; ``inner`` units in the blocks of each resolution,
    ``blocks`` of them. Nothing is averaged or thrown away on the way: what is not used stays in its place.
    """

    def __init__(
        self,
        classes: int,
        width: int = 24,
        inner: tuple[int, ...] = (32, 64, 128),
        blocks: tuple[int, ...] = (1, 2, 2),
        side: int = 32,
    ) -> None:
        super().__init__()
        if width < 12 or side % 2**FOLDS or not len(inner) == len(blocks) == FOLDS:
            raise ValueError("width is at least 12, the side a multiple of 8, inner and blocks have three numbers")
        self.width, self.side = width, side
        sides = [3] * (FOLDS - 1) + [1]
        self.stages = nn.ModuleList(
            nn.ModuleList(GradientBlock(width * 4**fold, inner[fold], sides[fold]) for _ in range(count))
            for fold, count in enumerate(blocks)
        )
        self.head = nn.Parameter(torch.empty(classes, width * 4 ** (FOLDS - 1) * (side // 2**FOLDS) ** 2))
        self.bias = nn.Parameter(torch.zeros(classes))
        nn.init.normal_(self.head)
        self._verified: Verified | None = None

    def weights(self, dtype: torch.dtype) -> Weights:
        """Kernels rescaled, rows of the head normalised."""
        stages = [[(b.kernel(dtype), b.bias.to(dtype)) for b in stage] for stage in self.stages]  # type: ignore
        return Weights(stages, F.normalize(self.head.to(dtype), dim=1), self.bias.to(dtype))

    def forward(self, images: Tensor) -> Tensor:
        """Logits, shape (batch, classes)."""
        return self._logits(images, self.weights(self.head.dtype))

    def _logits(self, images: Tensor, weights: Weights) -> Tensor:
        if images.shape[1:] != (3, self.side, self.side):
            raise BadImage(f"this network takes colour images of side {self.side}, got {tuple(images.shape[1:])}")
        x = F.pixel_unshuffle(images - MID, 2)
        x = F.pad(x, (0, 0, 0, 0, 0, self.width - x.shape[1]))
        for fold, stage in enumerate(weights.stages):
            x = F.pixel_unshuffle(x, 2) if fold else x
            for kernel, bias in stage:
                padding = kernel.shape[-1] // 2
                inner = F.relu(F.conv2d(x, kernel, bias, padding=padding))
                x = x - 2 * F.conv_transpose2d(inner, kernel, padding=padding)
        return F.linear(x.flatten(1), weights.head, weights.bias)

    @torch.no_grad()
    def state(self, pixels: Tensor) -> Statement:
        """The class of each 8-bit image, and a radius from the margins of its logits over the others.

        Guarantee: as `States.state`. f_y - f_j changes by at most L |w_y - w_j| per unit of distance, L being the
        product of the verified constants of the blocks; what rounding may hide, here and at the other image, is taken
        off the margin first.
        Assumes: sums of products in float64 on the CPU, in any order.
        """
        found = self.verified()
        with torch.autocast("cpu", enabled=False):
            images = pixels.cpu().double() / LEVELS
            logits = torch.cat([self._logits(image[None], found.weights) for image in images])
        answer, rows = logits.argmax(dim=1), torch.arange(len(logits))
        margins = logits[rows, answer][:, None] - logits - 4 * found.error
        margins[rows, answer] = torch.inf
        radius = (margins / found.steepness[answer]).amin(dim=1) * (1 - rounding(2))
        return Statement(answer, radius.clamp_min(0), logits.shape[1])

    def verified(self) -> "Verified":
        """What holds of the weights as they are now."""
        if self._verified is None or self._verified.of != fingerprint(self):
            self._verified = verify(self)
        return self._verified


@dataclass(frozen=True)
class Verified:
    """The weights of a network in float64, and what is known of the function that they make.

    ``of`` is the fingerprint of the network, ``lipschitz`` bounds all blocks together, ``steepness`` how fast f_i - f_j
    may change, (classes, classes), and ``error`` what rounding may add to a logit on any 8-bit image.
    """

    of: str
    weights: Weights
    lipschitz: float
    steepness: Tensor
    error: float


def verify(network: LipschitzNet) -> Verified:
    """Bounds on every layer, multiplied; and the errors of rounding, summed up.

    Guarantee: a block with |A| <= a is Lipschitz with max(1, 2 a^2 - 1). Let c = a^2. With B = A / a the block is
    (1 - c) x + c (x - 2 B' relu(B x + b / a)), and the bracket is 1-Lipschitz: |1 - c| + c is 1 where c <= 1, else
    2 c - 1. In float64 a block adds at most ``off`` times the sizes of what it sums up to the error that comes in,
    which it stretches by its constant; what passes through is bounded by that constant and by what it makes of 0.
    Assumes: as `norm_bound`.
    """
    with torch.no_grad():
        raw = network.weights(torch.float64)
    stages = [[(kernel.cpu(), bias.cpu()) for kernel, bias in stage] for stage in raw.stages]
    head, bias = raw.head.cpu(), raw.bias.cpu()
    pixels = 3 * network.side**2
    lipschitz, size = 1.0, math.sqrt(pixels) * MID  # of an image less its middle
    error = 4 * rounding(1) * math.sqrt(pixels)  # of the division by 255, and the shift
    for fold, stage in enumerate(stages):
        for kernel, shift in stage:
            norm, sizes = norm_bound(kernel), norm_bound(kernel.abs())
            constant = max(1.0, 2 * norm**2 - 1)
            at_zero = float(shift.norm()) * network.side / 2 ** (fold + 1)  # the same at every place
            inner = sizes * (size + error) + at_zero
            off = rounding(max(kernel.shape[:2]) * kernel[0, 0].numel())
            error = constant * error + off * (size + error + 8 * (1 + sizes) * inner)
            size = constant * size + 2 * norm * at_zero
            lipschitz *= constant
    terms = head.shape[1]
    longest = float(head.norm(dim=1).max()) * (1 + rounding(terms))
    error = longest * error + 2 * rounding(terms) * (longest * (size + error) + float(bias.abs().max()))
    slack = 1 + 1e-9  # for the few operations on positive numbers above
    gaps = (head[:, None] - head).norm(dim=2) * (1 + rounding(terms))
    least = torch.finfo(torch.float64).tiny  # of two equal rows
    steepness = lipschitz * slack * gaps + least
    return Verified(fingerprint(network), Weights(stages, head, bias), lipschitz * slack, steepness, error * slack)


class MarginBins(nn.Module):
    """A router over sigmas that needs no training: it answers how many of some thresholds a stated radius exceeds.

    Where a 1-Lipschitz network has a large margin, a large radius is to be had, and noise for it is worth while.
    """

    def __init__(self, network: LipschitzNet, thresholds: Sequence[float]) -> None:
        super().__init__()
        if not thresholds or any(b <= a for a, b in pairwise((0.0, *thresholds))):
            raise BadSetting(f"thresholds of a radius must be positive and rising, got {list(thresholds)}")
        self.network = network
        self.register_buffer("thresholds", torch.tensor(thresholds, dtype=torch.float64))
        self.training = network.training

    def forward(self, images: Tensor) -> Tensor:
        """Logits, shape (batch, thresholds + 1), continuous in the margin: sums of what it exceeds thresholds by."""
        top = self.network(images).topk(2, dim=1).values
        margin = (top[:, :1] - top[:, 1:]) / math.sqrt(2)
        exceeded = (margin - self.thresholds.to(margin)).cumsum(dim=1)
        return torch.cat([torch.zeros_like(margin), exceeded], dim=1)

    @torch.no_grad()
    def state(self, pixels: Tensor) -> Statement:
        """The number of thresholds exceeded, and how far the stated radius is from the nearest of them.

        Guarantee: as `States.state`. In real numbers the radius of the network is a maximum over y of minima over j of
        1-Lipschitz functions, so it changes by at most the distance; what is computed is off by ``off`` at most, here
        and at the other image.
        """
        radius, found = self.network.state(pixels).radius, self.network.verified()
        steep = found.steepness[~torch.eye(len(found.steepness), dtype=torch.bool)]
        off = 8 * found.error / steep.min() + rounding(8) * radius
        away = radius[:, None] - self.thresholds.cpu()  # type: ignore[operator]
        stands = (away.abs().amin(dim=1) - 2 * off - rounding(8)).clamp_min(0)
        return Statement((away > 0).sum(dim=1), stands, len(self.thresholds) + 1)  # type: ignore[arg-type]
