"""Tiny networks and images that the real commands are run on, named on the command line as soak.toys:NAME.

With SOAK_PAUSE in the environment every batch takes so many seconds longer, every file that takes its place does so
slowly, and trainings keep a checkpoint four times a second: there is time to be killed in. Nothing of it changes an
answer, so a run without it has the same votes and weights.
"""

import os
import time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

PAUSE = float(os.environ.get("SOAK_PAUSE", "0"))
SIDE = 8  # of the images for rounds: the mean of a channel has noise sigma / SIDE

Labelled = tuple[NDArray[np.uint8], list[int]]


class Small(nn.Module):
    """A convolutional network of three answers on grey images of six by six pixels, with weights from a seed."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        layers = (nn.Conv2d(1, 6, 3), nn.ReLU(), nn.Conv2d(6, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32, 3))
        self.body = nn.Sequential(*layers)
        source = torch.Generator().manual_seed(seed)
        for parameter in self.body.parameters():
            parameter.data = torch.randn(parameter.shape, generator=source) / 3

    def forward(self, images: Tensor) -> Tensor:
        """Logits."""
        time.sleep(PAUSE)
        return torch.as_tensor(self.body(images - 0.5))


def router() -> nn.Module:
    """One answer for each of three sigmas."""
    return Small(6).eval()


def classifier() -> nn.Module:
    """Three classes."""
    return Small(7).eval()


def images() -> Labelled:
    """Eight images of noise, with labels that mean nothing."""
    return np.random.default_rng(0).integers(0, 256, (8, 1, 6, 6), dtype=np.uint8), [0, 1, 2, 0, 1, 2, 0, 1]


class Colours(nn.Module):
    """A linear function of the mean colour."""

    def __init__(self, weights: list[list[float]]) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.tensor(weights))

    def forward(self, images: Tensor) -> Tensor:
        """Logits."""
        time.sleep(PAUSE)
        return SIDE * (images.mean(dim=(2, 3)) - 0.5) @ self.weights.T


def colour_classifier() -> nn.Module:
    """Two classes by red against blue, where there is but noise."""
    return Colours([[-1.0, 0.0, 1.7], [1.0, 0.0, -1.7]]).eval()


def colour_router() -> nn.Module:
    """Knows nothing yet of two sigmas."""
    return Colours([[0.01, 0.0, 0.0], [0.0, 0.0, 0.01]]).eval()


def colours_to_train() -> Labelled:
    """Flat colours: red tells the class, green how far it is from the other one."""
    return _colours(60, 0)


def colours_to_test() -> Labelled:
    """The same, others."""
    return _colours(20, 1)


def _colours(count: int, seed: int) -> Labelled:
    source = np.random.default_rng(seed)
    labels, wide = source.integers(0, 2, count), source.integers(0, 2, count)
    colours = np.full((count, 3), 0.5)
    colours[:, 0] += (2 * labels - 1) * np.where(wide == 1, 3.0, 0.4) / SIDE
    colours[:, 1] += (2 * wide - 1) * 0.35
    pixels = np.round(255 * colours).astype(np.uint8)
    return np.broadcast_to(pixels[:, :, None, None], (count, 3, SIDE, SIDE)).copy(), labels.tolist()


def _slow_down() -> None:
    """Files take their places slowly, and checkpoints come often."""
    from dualrs.training import loop

    quick = os.replace

    def slowly(*places: Any, **options: Any) -> None:
        time.sleep(PAUSE)
        quick(*places, **options)
        time.sleep(PAUSE)

    os.replace = slowly
    loop._SECONDS_BETWEEN_CHECKPOINTS = 0.25  # type: ignore[assignment]


if PAUSE:
    _slow_down()
