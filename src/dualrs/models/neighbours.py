"""Neighbours: how far an image is from the images nearest to it in a given set, as a level from 0 on.

Enters: 8-bit images as floats in [0, 1], without noise. Leaves: logits, 1 for the level and 0 for all others.

Squared distances of 8-bit images are whole numbers, and doubles hold them exactly: levels are the same on every
machine, in every batch and in whatever order the sums are taken.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dualrs.errors import BadModel, BadSetting

_LEVELS = 255  # grey levels per unit of pixel value
_AT_ONCE = 2_000  # images that distances are taken to


class Neighbours(nn.Module):
    """The mean Euclidean distance to the ``k`` nearest of ``images``, in equal steps: as many as there are ``levels``.

    They end at half of the largest distance there can be; what is farther counts as just that far.

    Guarantee: the mean distance moves by no more than the image does. A distance to one point does not, so neither does
    a mean of k of them, nor the least of such means over all k of the images.
    """

    images: Tensor

    def __init__(self, images: NDArray[np.uint8], k: int = 20, levels: int = 512) -> None:
        super().__init__()
        if not 1 <= k <= len(images):
            raise BadSetting(f"the number of neighbours must be between 1 and the {len(images)} images, got {k}")
        self.shape, self.k, self.levels = tuple(images.shape[1:]), k, levels
        self.dimensions = int(images[0].size)
        self.step = self.dimensions**0.5 / (2 * levels)
        self.register_buffer("images", torch.tensor(images).flatten(start_dim=1))
        self.eval()

    def extra_repr(self) -> str:
        """What the buffer does not tell, for fingerprints."""
        return f"k={self.k}, levels={self.levels}, shape={self.shape}"

    def forward(self, x: Tensor) -> Tensor:
        """Logits, shape (batch, levels)."""
        level = (self.distance(x) / self.step).floor().long().clamp_(max=self.levels - 1)
        return nn.functional.one_hot(level, self.levels).float()

    def distance(self, x: Tensor) -> Tensor:
        """The mean distance of each image to its nearest ones, in units of pixel values in [0, 1]; shape (batch,)."""
        if tuple(x.shape[1:]) != self.shape:
            raise BadModel(
                f"images of shape {tuple(x.shape[1:])}, and their neighbours have {self.shape}; give both alike"
            )
        pixels = (x.flatten(start_dim=1).double() * _LEVELS).round()
        asked, place = torch.unique(pixels, dim=0, return_inverse=True)  # a batch may hold copies
        nearest = asked.new_full((len(asked), self.k), torch.inf)
        for part in torch.split(self.images, _AT_ONCE):
            known = part.double()
            squares = asked.square().sum(dim=1, keepdim=True) + known.square().sum(dim=1) - 2 * asked @ known.T
            nearest = torch.cat([nearest, squares], dim=1).topk(self.k, dim=1, largest=False, sorted=True).values
        total = nearest.sqrt().cumsum(dim=1)[:, -1]  # one after the other, the least first
        mean: Tensor = (total / (self.k * _LEVELS))[place]
        return mean
