"""Nearest: what an attack found beside one input.

Enters: a row of an attack, and the image that was attacked if it is at hand. Leaves: the image that was found, its
difference made visible, and what it says about the certificate.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dualrs.report.gallery import Image, class_name
from dualrs.storage.attacks import Attack
from dualrs.theory.radius import round_down

_GREY = 128  # where nothing was changed
_MOST = 64  # times that a difference is amplified


@dataclass(frozen=True, eq=False)
class Nearest:
    """An attack on the certificate that one input has under a method."""

    method: str
    attack: Attack

    @property
    def reach(self) -> float:
        """How far the attack tells anything: to the image that it found, or else as far as it searched."""
        attack = self.attack
        return max(attack.radius, attack.searched) if attack.upper is None else attack.upper

    def said(self, names: Sequence[str] | None = None) -> str:
        """What came of it, in two or three sentences."""
        attack = self.attack
        radius, own = round_down(attack.radius), class_name(attack.prediction, names)
        claim = f"{self.method} certifies {own} up to {radius}."
        if attack.broken:
            other = class_name(attack.flipped, names)
            claim += f" This certificate is broken: an image within the radius is answered with {other}."
        if attack.upper is None:
            far = f"up to distance {round_down(attack.searched)}" if attack.searched else "within the radius"
            return claim if attack.broken else f"{claim} The attack searched {far}, and found nothing."
        upper, answer = self.upper, class_name(attack.answer, names)
        found = f"The nearest image that the attack found with another answer, {answer}, is at distance {upper}"
        between = "" if attack.upper < attack.radius else f" The true radius lies between {radius} and {upper}."
        return f"{claim} {found}; it aimed at {attack.aim}.{between}"

    @property
    def upper(self) -> str:
        """The distance of the image, rounded up: an upper bound."""
        assert self.attack.upper is not None, "an image was found"
        return round_down(-self.attack.upper).removeprefix("-")

    def image(self, attacked: Image) -> Image | None:
        """The image that was found, of the one that was attacked; None if there is none."""
        change = self.attack.change
        return None if change is None else np.clip(attacked.astype(np.int16) + change, 0, 255).astype(np.uint8)

    def difference(self) -> tuple[Image, int] | None:
        """What was changed, grey where nothing was, and how many times it is amplified; None without an image."""
        change = self.attack.change
        if change is None:
            return None
        times = int(np.clip((_GREY - 1) // max(np.abs(change).max(), 1), 1, _MOST))
        return np.clip(_GREY + times * change.astype(np.int64), 0, 255).astype(np.uint8), times
