"""A toy problem whose best sigma is known for every input, for the whole training pipeline.

Images are flat colours. Red tells the class: its distance from grey is the margin of a linear classifier, small for
half of the images and large for the others. Green tells which half. Blue is always grey.

A half-space has the radius of its margin at every sigma, as far as n votes can show it. With n = 100 and alpha = 0.001
a margin of 0.2 is certified at sigma 0.25 only (at 1, p = 0.58 is not surely above 1/2), and one of 1.5 gets more at
sigma 1 (0.25 cannot show more than 1.5 sigma = 0.37). So the small margins want 0.25 and the large ones 1.
"""

import numpy as np
import torch
from torch import Tensor, nn

SIDE = 8  # the mean of a channel has noise sigma / SIDE, and a margin of SIDE times its distance from grey
SIGMAS = (0.25, 1.0)
SMALL, LARGE = 0.4, 3.0  # margins of the best classifier


def best(images: np.ndarray) -> np.ndarray:
    """The number of the best sigma of each image."""
    return (images[:, 1, 0, 0] > 127).astype(np.int64)


def make(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels."""
    source = np.random.default_rng(seed)
    labels = source.integers(0, 2, count)
    wide = source.integers(0, 2, count)
    colours = np.empty((count, 3))
    colours[:, 0] = 0.5 + (2 * labels - 1) * np.where(wide == 1, LARGE, SMALL) / SIDE
    colours[:, 1] = 0.5 + (2 * wide - 1) * 0.35
    colours[:, 2] = 0.5
    pixels = np.round(255 * colours).astype(np.uint8)
    return np.broadcast_to(pixels[:, :, None, None], (count, 3, SIDE, SIDE)).copy(), labels


def train() -> tuple[np.ndarray, np.ndarray]:
    return make(400, 0)


def test() -> tuple[np.ndarray, np.ndarray]:
    return make(100, 1)


class Colours(nn.Module):
    """A linear function of the mean colour, in units in which noise of sigma 1 has standard deviation 1."""

    def __init__(self, weights: list[list[float]]) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.tensor(weights))

    def forward(self, images: Tensor) -> Tensor:
        return SIDE * (images.mean(dim=(2, 3)) - 0.5) @ self.weights.T


def classifier() -> nn.Module:
    """Half as good as it could be: it also looks at blue, where there is but noise, and its margins are halved."""
    return Colours([[-1.0, 0.0, 1.7], [1.0, 0.0, -1.7]]).eval()


def best_classifier() -> nn.Module:
    """It looks at red alone."""
    return Colours([[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]).eval()


def router() -> nn.Module:
    """Knows nothing yet."""
    return Colours([[0.01, 0.0, 0.0], [0.0, 0.0, 0.01]]).eval()
