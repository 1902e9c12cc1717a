"""Networks that are half-spaces of images, with known smoothed answers, and certificates about them made by hand."""

import numpy as np
import torch
from torch import nn

from dualrs.certificates import Certificate, Outcome

SHAPE = (1, 8, 8)
IMAGE = np.full(SHAPE, 128, dtype=np.uint8)


def normal(seed):
    """A random unit vector."""
    w = np.random.default_rng(seed).standard_normal(np.prod(SHAPE))
    return torch.tensor(w / np.linalg.norm(w), dtype=torch.float32)


class Plane(nn.Module):
    """Answers ``beyond`` farther than ``reach`` from IMAGE along ``w``, and ``before`` nearer than that.

    Smoothed at any sigma it changes its answer at exactly the same plane. A hard one has no gradient.
    """

    def __init__(self, w, reach, before=0, beyond=1, *, answers=2, hard=False):
        super().__init__()
        self.register_buffer("w", w)
        self.start = float(torch.from_numpy(IMAGE).float().flatten() / 255 @ w)
        self.reach, self.sides, self.answers, self.hard = reach, (before, beyond), answers, hard
        self.eval()

    def beyond(self, pixels):
        """How far images lie beyond the plane."""
        return torch.as_tensor(pixels).float().flatten(1) @ self.w - self.start - self.reach

    def forward(self, x):
        t = self.beyond(x)
        logits = torch.full((len(x), self.answers), -20.0)
        score = 8 * t if not self.hard else 8 * torch.sign(t).detach()
        logits[:, self.sides[0]] = -score
        logits[:, self.sides[1]] = score
        return logits + 0 * x.sum() if not self.hard else logits


class Always(nn.Module):
    """One answer, whatever the image."""

    def __init__(self, answer, answers=2):
        super().__init__()
        self.answer, self.answers = answer, answers
        self.eval()

    def forward(self, x):
        return 20.0 * nn.functional.one_hot(torch.full((len(x),), self.answer), self.answers).float()


def claim(radius, sigma, prediction=0):
    """A certificate that says so, true or not."""
    return Certificate(prediction, radius, sigma, radius, radius, "class", Outcome.CERTIFIED)
