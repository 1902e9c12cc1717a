"""DensePure (Xiao et al. 2023): several random walks back through the noise, and the class most lead to.

Enters: noisy images, their sigma, and randomness. Leaves: logits whose arg max is the plurality of the walks. A walk
goes from the noise of the image to the clean one in a few long steps, evenly spaced, each a draw from what the denoiser
takes for the less noisy image; the last one draws nothing. Steps are timesteps of a diffusion model, as the authors
have them, or sigmas of any other denoiser.
"""

from itertools import pairwise
from typing import Protocol

import torch
from torch import Tensor, nn

from dualrs.errors import BadModel, BadSetting
from dualrs.models.denoise import Behind, Sigma, per_image
from dualrs.models.diffusion import DiffusionDenoiser
from dualrs.models.noisy import NoisyModel, class_names, takes_randomness
from dualrs.models.randomness import Randomness

_UNSEEN = 1e-6  # of a run: for a class that no run has led to, as a logit has to be finite
_FIRST = 0.25  # of a run at most, for the class that came first among equal ones


class _Steps(Protocol):
    """The steps of a walk in the units of a denoiser: an image is clean + ratio * noise."""

    def begin(self, noisy: Tensor, sigma: Sigma, steps: int) -> tuple[Tensor, list[Tensor]]:
        """Noisy images in these units, and where each step begins."""

    def ratio(self, step: Tensor) -> Tensor:
        """Of noise, shape (1 or batch, 1, 1, 1)."""

    def estimate(self, image: Tensor, step: Tensor) -> tuple[Tensor, Tensor | None]:
        """What is taken for the clean image, and the variance that was learned, if one was."""

    def pixels(self, clean: Tensor) -> Tensor:
        """A clean image within [0, 1]."""


class _Timesteps:
    """Those of a diffusion model, whose images are in [-1, 1]."""

    def __init__(self, denoiser: DiffusionDenoiser) -> None:
        self._denoiser, self.estimate = denoiser, denoiser.estimate

    def begin(self, noisy: Tensor, sigma: Sigma, steps: int) -> tuple[Tensor, list[Tensor]]:
        first = self._denoiser.first_step(noisy, sigma)
        return noisy * 2 - 1, [(first * (steps - i) / steps).round().long() for i in range(steps)]

    def ratio(self, step: Tensor) -> Tensor:
        return self._denoiser.ratios[step].view(-1, 1, 1, 1)

    def pixels(self, clean: Tensor) -> Tensor:
        return (clean + 1) / 2


class _Sigmas:
    """Those of a denoiser that is told the sigma."""

    def __init__(self, denoiser: nn.Module) -> None:
        self._denoiser = denoiser

    def begin(self, noisy: Tensor, sigma: Sigma, steps: int) -> tuple[Tensor, list[Tensor]]:
        first = per_image(sigma, noisy).flatten()
        return noisy, [first * (steps - i) / steps for i in range(steps)]

    def ratio(self, step: Tensor) -> Tensor:
        return step.view(-1, 1, 1, 1)

    def estimate(self, image: Tensor, step: Tensor) -> tuple[Tensor, Tensor | None]:
        return self._denoiser(image, step), None

    def pixels(self, clean: Tensor) -> Tensor:
        return clean


class ReverseRuns(nn.Module):
    """``runs`` walks back from a noisy image, each of ``steps`` steps."""

    def __init__(self, denoiser: nn.Module, runs: int = 10, steps: int = 2) -> None:
        super().__init__()
        if runs < 1 or steps < 2:
            raise BadSetting(
                f"DensePure needs at least 1 run of at least 2 steps, got {runs} of {steps}; in one step nothing is "
                "random, which is the denoiser alone"
            )
        if takes_randomness(denoiser):
            raise BadModel("DensePure draws the steps of its walks itself, behind a denoiser that draws nothing")
        self.denoiser, self.runs, self.steps = denoiser, runs, steps
        self.training = denoiser.training

    def extra_repr(self) -> str:
        """The settings, because a fingerprint hashes the printed form."""
        return f"runs={self.runs}, steps={self.steps}"

    def forward(self, noisy: Tensor, sigma: Sigma, randomness: Randomness) -> Tensor:
        """Clean images within [0, 1], shape (batch, runs, channels, height, width)."""
        front = self.denoiser
        way: _Steps = _Timesteps(front) if isinstance(front, DiffusionDenoiser) else _Sigmas(front)
        image, steps = way.begin(noisy, sigma, self.steps)
        begun = way.estimate(image, steps[0])  # all walks begin alike
        walks = []
        for _ in range(self.runs):
            here, (clean, learned) = image, begun
            for step, later in pairwise(steps):
                here = _drawn(here, clean, learned, way.ratio(step), way.ratio(later), randomness)
                clean, learned = way.estimate(here, later)
            walks.append(way.pixels(clean))
        return torch.stack(walks, dim=1)


def _drawn(
    image: Tensor, clean: Tensor, learned: Tensor | None, before: Tensor, after: Tensor, randomness: Randomness
) -> Tensor:
    """An image of less noise, given one of more and what is taken for the clean one.

    The posterior of Ho et al. 2020, for images divided by their signal: y = clean + ratio * noise. Of a model that
    learned a variance, the logarithm is between that of the posterior, at -1, and that of the step, at 1.
    """
    share = (after / before).square()
    spread = after * (1 - share).sqrt()
    if learned is not None:
        wider = (1 + after.square()) / (share * (1 + before.square()))
        spread = spread * wider ** ((learned + 1) / 4)
    return clean + share * (image - clean) + spread * randomness.randn(*image.shape)


class Plurality(Behind):
    """A network on every walk's image, and the plurality of its answers; of equal ones, that which came first."""

    def __init__(self, reverse: nn.Module, network: nn.Module) -> None:
        super().__init__()
        self.reverse, self.network = reverse, network
        self._voter = NoisyModel("network behind DensePure", network)
        self.classes, self.routes = class_names(network), getattr(network, "routes", None)
        self.training = reverse.training or network.training

    @property
    def front(self) -> nn.Module:
        """The walks."""
        return self.reverse

    def begin(self, noisy: Tensor, sigma: Sigma, randomness: Randomness | None = None) -> Tensor:
        """Where the walks lead."""
        images: Tensor = self.reverse(noisy, sigma, randomness)
        return images

    def answer(self, begun: Tensor, sigma: Sigma, randomness: Randomness | None = None) -> Tensor:
        """Logits of the plurality, with the gradient of the mean log-softmax: counts have none, and attacks want one.

        That of logits which are not finite is not a number, and neither is the answer then.
        """
        tables = torch.stack([self._voter(images, sigma, randomness).float() for images in begun.unbind(dim=1)], dim=1)
        soft = tables.log_softmax(dim=2).mean(dim=1)
        return plurality(tables.argmax(dim=2), tables.shape[2]) + (soft - soft.detach())


def plurality(answers: Tensor, classes: int) -> Tensor:
    """The log of the share of runs that each class has, shape (batch, classes), from answers of shape (batch, runs).

    A class is taken to have up to a quarter of a run more, the more the earlier it came first.
    """
    runs = answers.shape[1]
    seen = nn.functional.one_hot(answers, classes)
    counts, first = seen.sum(dim=1), seen.argmax(dim=1)
    early = _FIRST * (runs - first) / runs
    return (torch.where(counts > 0, counts + early, _UNSEEN) / runs).log()
