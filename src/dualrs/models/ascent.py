"""Ascent: the sigma at which a classifier promises the largest radius on an image, as a level (Alfarra et al. 2022).

Enters: 8-bit images as floats in [0, 1], without noise. Leaves: logits, 1 for the level and 0 for all others.

The noise of the ascent is drawn from the pixels, so that sigma is a function of the image. Nothing is known of how fast
that function changes: what is certified under such a sigma has no guarantee by itself.
"""

import hashlib
from math import log

import torch
from torch import Tensor, nn

from dualrs.errors import BadSetting
from dualrs.models.noisy import NoisyModel
from dualrs.models.randomness import FromGenerator

_CLAMP = 0.001  # probabilities stay this far from 0 and 1
_SPAN = 8.0  # sigma stays within this factor of where it starts


class Ascent(nn.Module):
    """Steps of ``rate`` up the gradient of ``sigma / 2 * (Phi^-1(p1) - Phi^-1(p2))``, from ``start``, image by image.

    p1 and p2 are the two largest mean softmax probabilities over ``draws`` noises, which are drawn once for a step and
    scaled by sigma. The networks of the authors end in a softmax; here it is taken of the logits.
    """

    def __init__(
        self,
        classifier: nn.Module,
        start: float,
        *,
        rate: float = 0.04,
        steps: int = 900,
        draws: int = 100,
        levels: int = 256,
    ) -> None:
        super().__init__()
        if steps < 1 or draws < 1 or not rate > 0:
            raise BadSetting(f"an ascent takes steps, draws and a positive rate; got {steps}, {draws} and {rate:g}")
        self.classifier, self.start, self.rate = classifier, start, rate
        self.steps, self.draws, self.levels = steps, draws, levels
        self.lowest, self.highest = start / _SPAN, start * _SPAN
        self._known: dict[bytes, int] = {}  # levels of images that were asked before: batches hold copies
        self.eval()

    def extra_repr(self) -> str:
        """What weights do not tell, for fingerprints."""
        return (
            f"start={self.start}, rate={self.rate}, steps={self.steps}, draws={self.draws}, levels={self.levels}, "
            f"span={_SPAN}, clamp={_CLAMP}"
        )

    def forward(self, x: Tensor) -> Tensor:
        """Logits, shape (batch, levels)."""
        level = torch.tensor([self._level(image) for image in x], device=x.device)
        return nn.functional.one_hot(level, self.levels).float()

    def _level(self, image: Tensor) -> int:
        key = hashlib.blake2b((image * 255).round().byte().cpu().numpy().tobytes(), digest_size=8).digest()
        if key not in self._known:
            share = log(self.sigma(image, int.from_bytes(key, "big") >> 1) / self.lowest) / log(_SPAN**2)
            self._known[key] = min(max(round(share * (self.levels - 1)), 0), self.levels - 1)
        return self._known[key]

    def sigma(self, image: Tensor, seed: int) -> float:
        """Where the ascent ends."""
        network = NoisyModel("classifier", self.classifier)
        noises = torch.Generator().manual_seed(seed)
        with torch.inference_mode(False), torch.enable_grad():
            fixed = image.clone()
            sigma = torch.tensor(float(self.start), device=image.device)
            for _ in range(self.steps):
                here = sigma.detach().requires_grad_(True)
                noise = torch.randn((self.draws, *fixed.shape), generator=noises).to(fixed)
                logits = network(fixed + here * noise, float(sigma), FromGenerator(noises, fixed.device))
                mean = logits.float().softmax(dim=1).mean(dim=0)
                first, second = torch.special.ndtri(mean.topk(2).values.clamp(_CLAMP, 1 - _CLAMP))
                (slope,) = torch.autograd.grad(here / 2 * (first - second), here)
                sigma = (here + self.rate * slope).detach().clamp(self.lowest, self.highest)
        return float(sigma)
