"""8-bit images inside a ball: distances are compared in whole numbers, so that no rounding lets an image slip out."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dualrs.data.images import LEVELS, Pixels

_SHRINK = 0.999  # by which a change is scaled until it fits after rounding


def squared_levels(a: Pixels, b: Pixels) -> int:
    """Squared L2 distance of two images, in grey levels: a whole number."""
    return int(((a.astype(np.int64) - b) ** 2).sum())


def distance(a: Pixels, b: Pixels) -> float:
    """L2 distance of two images, in units where pixels lie in [0, 1]."""
    return float(np.sqrt(squared_levels(a, b)) / LEVELS)


def is_inside(a: Pixels, b: Pixels, radius: float) -> bool:
    """Whether two images are closer than a radius, exactly."""
    return squared_levels(a, b) < (LEVELS * Fraction(radius)) ** 2


def rounded_inside(image: Pixels, moved: NDArray[np.floating], radius: float) -> Pixels:
    """The 8-bit image nearest to ``moved`` (pixels in [0, 1]), drawn towards ``image`` until it is inside the ball."""
    change = moved * LEVELS - image
    while True:
        found: Pixels = np.rint(np.clip(image + change, 0, LEVELS)).astype(np.uint8)
        if is_inside(image, found, radius):
            return found
        change = change * _SHRINK
