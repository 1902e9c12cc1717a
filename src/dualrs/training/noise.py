"""Noise for training: how large it is for each image, and adding it. The only place in training that adds any."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Generator, Tensor

from dualrs.errors import BadSetting
from dualrs.training.checkpoint import digest

_OVER_A_RANGE = (0.1, 0.25, 0.5, 1.0)


class Levels(Protocol):
    """Decides the sigma of each training image."""

    @property
    def typical(self) -> tuple[float, ...]:
        """A few sigmas to measure the result at."""

    def draw(self, indices: Tensor, generator: Generator) -> Tensor:
        """One sigma per image of a batch; ``indices`` are their places in the dataset."""


@dataclass(frozen=True)
class OneOf:
    """One of a few sigmas, each equally often; 0 is the clean image."""

    sigmas: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.sigmas or any(s < 0 or not math.isfinite(s) for s in self.sigmas):
            raise BadSetting(f"give one or more sigmas, none negative; got {self.sigmas}")

    @property
    def typical(self) -> tuple[float, ...]:
        """All of them."""
        return self.sigmas

    def __str__(self) -> str:
        return "sigma " + " or ".join(f"{s:g}" for s in self.sigmas)

    def draw(self, indices: Tensor, generator: Generator) -> Tensor:
        """One sigma per image."""
        return torch.tensor(self.sigmas)[torch.randint(len(self.sigmas), (len(indices),), generator=generator)]


@dataclass(frozen=True)
class Between:
    """Anything from ``low`` to ``high``, the logarithm uniform."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 < self.low < self.high < math.inf:
            raise BadSetting(f"a range of sigmas is two positive numbers, the lower first; got {self.low}, {self.high}")

    @property
    def typical(self) -> tuple[float, ...]:
        """Four that denoisers are compared at."""
        return _OVER_A_RANGE

    def __str__(self) -> str:
        return f"sigma from {self.low:g} to {self.high:g}"

    def draw(self, indices: Tensor, generator: Generator) -> Tensor:
        """One sigma per image."""
        share = torch.rand(len(indices), generator=generator)
        return self.low * (self.high / self.low) ** share


class PerInput:
    """Each image has a sigma of its own, given beforehand in the order of the dataset."""

    def __init__(self, sigmas: Tensor) -> None:
        self.sigmas = sigmas.float().flatten()
        OneOf(tuple(self.sigmas.tolist()))  # the same conditions

    @property
    def typical(self) -> tuple[float, ...]:
        """All that occur, if they are few."""
        distinct = tuple(sorted(set(self.sigmas.tolist())))
        return distinct if len(distinct) <= 2 * len(_OVER_A_RANGE) else _OVER_A_RANGE

    def __str__(self) -> str:
        return "a sigma per image"

    def __repr__(self) -> str:
        return f"PerInput({digest(self.sigmas)})"

    def draw(self, indices: Tensor, generator: Generator) -> Tensor:
        """One sigma per image."""
        return self.sigmas[indices]


def parse_levels(text: str, count: int) -> Levels:
    """From a command line: ``0.5`` (0 is clean), ``0.25,0.5,1.0`` (one of these), ``0.1:1.2`` (a range), or a file.

    The file, .npy, holds one sigma per training image, ``count`` in all, in the order of the dataset.
    """
    if text.endswith(".npy"):
        try:
            sigmas = np.load(Path(text), allow_pickle=False)
        except (OSError, ValueError) as error:
            raise BadSetting(f"cannot read sigmas from {text}: {error}") from error
        if sigmas.shape != (count,) or not np.issubdtype(sigmas.dtype, np.floating):
            raise BadSetting(f"{text} has shape {sigmas.shape}; expected one float for each of {count} images")
        return PerInput(torch.from_numpy(sigmas))
    numbers = parse_sigmas(text.replace(":", ","))
    return Between(numbers[0], numbers[-1]) if ":" in text else OneOf(numbers)


def parse_sigmas(text: str) -> tuple[float, ...]:
    """Sigmas separated by commas, as on a command line."""
    try:
        return tuple(float(t) for t in text.split(","))
    except ValueError as error:
        raise BadSetting(f"sigmas are numbers separated by commas, such as 0.25,0.5,1.0; got {text!r}") from error


def add_noise(images: Tensor, sigma: Tensor, generator: Generator) -> Tensor:
    """Images plus Gaussian noise of standard deviation ``sigma``, one per image, in the units of the images."""
    noise = torch.randn(images.shape, generator=generator)
    return images + sigma.view(-1, 1, 1, 1) * noise
