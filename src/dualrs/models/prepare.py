"""Preparation: what happens to an image before a network sees it, as a part of the network.

Enters: noisy images in [0, 1] units, of any size. Leaves: images of the size and scale that the network was trained on.
Noise is added before this, so a radius is in pixels of the image as it was given. Everything is differentiable, and
nothing is clipped.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from dualrs.errors import BadImage


class Preparation(nn.Module):
    """What happens to an image before a network sees it: resize, centre crop, normalise. Nothing is clipped.

    ``size`` is (height, width), or one number for the shorter edge with the longer one in proportion, or None to
    leave the size alone; ``crop`` is (height, width), filled up with black where the image is smaller, or None.
    Mean and standard deviation have one number per channel, in [0, 1] units. They are in the printed form and so in
    the fingerprint of a model, but not in its state dict, which keeps the names of published weights.
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        mean: Sequence[float],
        std: Sequence[float],
        *,
        size: int | tuple[int, int] | None = None,
        crop: tuple[int, int] | None = None,
        resampling: str = "bilinear",
    ) -> None:
        super().__init__()
        self.size, self.crop, self.resampling = size, crop, resampling
        self._numbers = f"mean={tuple(mean)}, std={tuple(std)}"
        self.register_buffer("mean", torch.tensor(mean).view(-1, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(std).view(-1, 1, 1), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """Prepare a batch, shape (batch, channels, height, width)."""
        if images.ndim != 4 or images.shape[1] != len(self.mean):
            raise BadImage(
                f"this network takes images with {len(self.mean)} channels in batches (batch, channels, height, "
                f"width), got shape {tuple(images.shape)}"
            )
        return (self._cropped(self._resized(images)) - self.mean) / self.std

    def _resized(self, images: Tensor) -> Tensor:
        if self.size is None:
            return images
        height, width = images.shape[2:]
        if isinstance(self.size, tuple):
            size = self.size
        else:
            short = min(height, width)
            size = (int(self.size * height / short), int(self.size * width / short))
        if size == (height, width):
            return images
        # With antialias torch computes what Pillow does, for enlarging too: the same cubic and the same borders.
        return functional.interpolate(images, size=size, mode=self.resampling, antialias=True)

    def _cropped(self, images: Tensor) -> Tensor:
        if self.crop is None:
            return images
        height, width = images.shape[2:]
        top, left = -((height - self.crop[0]) // 2), -((width - self.crop[1]) // 2)  # negative where it cuts
        bottom, right = self.crop[0] - height - top, self.crop[1] - width - left
        return functional.pad(images, (left, right, top, bottom))

    def extra_repr(self) -> str:
        """Every setting, because a fingerprint hashes the printed form."""
        return f"size={self.size}, resampling={self.resampling}, crop={self.crop}, {self._numbers}"
