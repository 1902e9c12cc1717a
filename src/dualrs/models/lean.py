"""Lean networks for small images: what the bundled models are made of, and what two CPU cores can train.

Enters: images in [0, 1] units, noisy or denoised, with even sides. Leaves: logits (`LeanResNet`) or what a denoiser
adds (`LeanUNet`). Both start by folding 2x2 pixels into channels, which quarters the cost of every layer at full
resolution. Sigma steers every layer by a gain and a shift per channel; at inference these and the batch
normalisation are folded into the convolution, so that a layer is one call.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dualrs.errors import BadImage
from dualrs.models.denoise import MID, SPREAD, Sigma, per_image

_CODE = 32  # length of the code in which layers are told the sigma
_FREQUENCIES = 8


class SigmaCode(nn.Module):
    """Sigma, as a vector that layers can use: sines and cosines of its logarithm, mixed."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(2 * _FREQUENCIES, _CODE)

    def forward(self, sigma: Tensor) -> Tensor:
        """Codes of shape (1 or batch, code)."""
        angles = sigma.view(-1, 1).log() * torch.arange(1, _FREQUENCIES + 1, device=sigma.device) * (math.pi / 8)
        return F.silu(self.mix(torch.cat([angles.sin(), angles.cos()], dim=1)))


class ConvNorm(nn.Module):
    """Convolution, batch normalisation, and a gain and shift that depend on sigma if there is a code of it."""

    def __init__(self, into: int, out: int, kernel: int = 3, stride: int = 1, *, conditional: bool = False) -> None:
        super().__init__()
        self.conv = nn.Conv2d(into, out, kernel, stride, kernel // 2, bias=False)
        self.norm = nn.BatchNorm2d(out)
        self.steer = nn.Linear(_CODE, 2 * out) if conditional else None
        if self.steer is not None:
            nn.init.zeros_(self.steer.weight)
            nn.init.zeros_(self.steer.bias)

    def forward(self, x: Tensor, code: Tensor | None) -> Tensor:
        """One convolution at inference if the batch has one sigma; layer by layer otherwise."""
        if self.training or (code is not None and len(code) > 1):
            y: Tensor = self.norm(self.conv(x))
            if self.steer is not None:
                gain, shift = self.steer(code)[:, :, None, None].chunk(2, dim=1)
                y = torch.addcmul(shift, y, 1 + gain)
            return y
        factor, offset = self.folded(code)
        weight = self.conv.weight * factor[:, None, None, None]
        return F.conv2d(x, weight, offset, self.conv.stride, self.conv.padding)

    def folded(self, code: Tensor | None) -> tuple[Tensor, Tensor]:
        """Normalisation and steering at one sigma, as a factor and an offset for each channel of the convolution."""
        mean, variance = self.norm.running_mean, self.norm.running_var
        assert mean is not None, "this layer keeps its statistics"
        assert variance is not None, "this layer keeps its statistics"
        factor = self.norm.weight * torch.rsqrt(variance + self.norm.eps)
        offset = self.norm.bias - mean * factor
        if self.steer is not None:
            gain, shift = self.steer(code)[0].float().chunk(2)
            factor, offset = factor * (1 + gain), offset * (1 + gain) + shift
        return factor, offset


class Block(nn.Module):
    """Residual block: two convolutions beside a shortcut; ``stride`` 2 halves the sides."""

    def __init__(self, into: int, out: int, stride: int = 1, *, conditional: bool = False) -> None:
        super().__init__()
        self.first = ConvNorm(into, out, stride=stride, conditional=conditional)
        self.second = ConvNorm(out, out, conditional=conditional)
        self.shortcut = ConvNorm(into, out, kernel=1) if (into, stride) != (out, 1) else None
        self.stride = stride

    def forward(self, x: Tensor, code: Tensor | None) -> Tensor:
        """The block's answer, after its last ReLU."""
        y = self.second(F.relu(self.first(x, code), inplace=True), code)
        if self.shortcut is not None:
            x = self.shortcut(F.avg_pool2d(x, self.stride) if self.stride > 1 else x, None)
        return F.relu(y + x, inplace=True)


class LeanResNet(nn.Module):
    """A residual classifier on folded pixels.

    ``conditional``: it looks at noisy images and is told their sigma. Otherwise it is told nothing, and looks at clean
    or denoised images or at noise of the one level it was trained for.
    """

    def __init__(
        self,
        classes: int,
        widths: tuple[int, ...] = (32, 80, 160),
        blocks: tuple[int, ...] = (1, 2, 2),
        *,
        conditional: bool = False,
    ) -> None:
        super().__init__()
        self.code = SigmaCode() if conditional else None
        self.stem = ConvNorm(12, widths[0], conditional=conditional)
        self.blocks = nn.ModuleList()
        into = widths[0]
        for stage, (width, count) in enumerate(zip(widths, blocks, strict=True)):
            for place in range(count):
                stride = 2 if stage > 0 and place == 0 else 1
                self.blocks.append(Block(into, width, stride, conditional=conditional))
                into = width
        self.head = nn.Linear(into, classes)

    def forward(self, images: Tensor, sigma: Sigma | None = None) -> Tensor:
        """Logits, shape (batch, classes)."""
        code = None
        spread: Tensor | float = SPREAD
        if self.code is not None:
            assert sigma is not None, "a conditional network must be told the sigma"
            level = per_image(sigma, images)
            code = self.code(level.flatten())
            spread = (level**2 + SPREAD**2).sqrt()
        x = fold((images - MID) / spread)
        x = F.relu(self.stem(x, code), inplace=True)
        for block in self.blocks:
            x = block(x, code)
        logits: Tensor = self.head(x.mean(dim=(2, 3)))
        return logits


class LeanUNet(nn.Module):
    """The core of a denoiser (see `Preconditioned`): a small U-Net at a half, a quarter and an eighth of the sides."""

    def __init__(self, width: int = 24, middle: int = 2) -> None:
        super().__init__()
        wide, wider = 2 * width, 4 * width
        self.code = SigmaCode()
        self.stem = ConvNorm(12, width, conditional=True)
        self.down_a = Block(width, width, conditional=True)
        self.shrink_a = ConvNorm(width, wide, stride=2, conditional=True)
        self.down_b = Block(wide, wide, conditional=True)
        self.shrink_b = ConvNorm(wide, wider, stride=2, conditional=True)
        self.middle = nn.ModuleList(Block(wider, wider, conditional=True) for _ in range(middle))
        self.grow_b = ConvNorm(wider, 4 * wide, kernel=1, conditional=True)
        self.up_b = Block(wide, wide, conditional=True)
        self.grow_a = ConvNorm(wide, 4 * width, kernel=1, conditional=True)
        self.up_a = Block(width, width, conditional=True)
        self.out = nn.Conv2d(width, 12, 3, padding=1)

    def forward(self, x: Tensor, sigma: Tensor) -> Tensor:
        """From noisy images of unit variance to images of the same shape; ``sigma`` has shape (1 or batch,)."""
        code = self.code(sigma)
        a = self.down_a(F.relu(self.stem(fold(x), code), inplace=True), code)
        b = self.down_b(F.relu(self.shrink_a(a, code), inplace=True), code)
        x = F.relu(self.shrink_b(b, code), inplace=True)
        for block in self.middle:
            x = block(x, code)
        x = self.up_b(b + F.pixel_shuffle(self.grow_b(x, code), 2), code)
        x = self.up_a(a + F.pixel_shuffle(self.grow_a(x, code), 2), code)
        return F.pixel_shuffle(self.out(x), 2)


def fold(images: Tensor) -> Tensor:
    """Fold 2x2 pixels into channels, laid out in memory as CPUs like it."""
    if images.shape[1] != 3 or images.shape[2] % 2 or images.shape[3] % 2:
        raise BadImage(f"lean networks take colour images with even sides, got shape {tuple(images.shape[1:])}")
    return F.pixel_unshuffle(images, 2).contiguous(memory_format=torch.channels_last)
