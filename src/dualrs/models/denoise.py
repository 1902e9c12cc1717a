"""Denoised smoothing: a denoiser, then a network on what it makes of the noisy image.

Enters: noisy images in [0, 1] units and the sigma they carry, one for the batch or one per image. Leaves: from a
denoiser a clean estimate within [0, 1] and of the same shape; from `Denoised` the logits of the network behind it. A
denoiser never adds noise: that is done once, before it, by whoever samples (section 2 of the paper, diffusion denoised
smoothing).
"""

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial

from torch import Tensor, nn

from dualrs.models.noisy import NoisyModel, Wants, class_names, takes_randomness
from dualrs.models.randomness import Randomness

Sigma = float | Tensor  # of the whole batch, or one per image with shape (batch,)

MID, SPREAD = 0.5, 0.25  # mean and standard deviation of the pixels of natural images, near enough


class Identity(nn.Module):
    """No denoiser: for networks trained on noisy images. What lies outside [0, 1] stays there."""

    def forward(self, noisy: Tensor, sigma: Sigma) -> Tensor:
        """Return the images as they are."""
        return noisy


class Preconditioned(nn.Module):
    """A denoiser from a core network that works at unit variance, whatever the sigma.

    The core sees the noisy image divided by its standard deviation. Its answer is scaled to what the best linear
    estimate leaves open, and added to that estimate (the preconditioning of Karras et al., 2022).
    """

    def __init__(self, core: nn.Module) -> None:
        super().__init__()
        self.core = core

    def forward(self, noisy: Tensor, sigma: Sigma) -> Tensor:
        """The clean estimate, within [0, 1]."""
        return self.estimate(noisy, sigma).clamp(0, 1)

    def estimate(self, noisy: Tensor, sigma: Sigma) -> Tensor:
        """The clean estimate before clipping, which training needs: clipping has no gradient."""
        level = per_image(sigma, noisy)
        total = (level**2 + SPREAD**2).sqrt()
        centred = (noisy - MID) / total
        added: Tensor = self.core(centred, level.flatten())
        return MID + SPREAD**2 / total * centred + residual_spread(sigma, noisy) * added.float()


def residual_spread(sigma: Sigma, images: Tensor) -> Tensor:
    """Standard deviation of what the best linear estimate leaves open, for each image."""
    level = per_image(sigma, images)
    return level * SPREAD / (level**2 + SPREAD**2).sqrt()


class Behind(nn.Module):
    """A module that answers from what another one, its ``front``, makes of noisy images. Several may share a front."""

    @property
    def front(self) -> nn.Module:
        """The module in front."""
        raise NotImplementedError

    @property
    def takes_randomness(self) -> bool:
        """Whether one of its parts draws numbers of its own."""
        return any(takes_randomness(part) for part in self.children())

    def begin(self, noisy: Tensor, sigma: Sigma, randomness: Randomness | None = None) -> Tensor:
        """Run the front."""
        raise NotImplementedError

    def answer(self, begun: Tensor, sigma: Sigma, randomness: Randomness | None = None) -> Tensor:
        """Logits from what the front made."""
        raise NotImplementedError

    def forward(self, noisy: Tensor, sigma: Sigma, randomness: Randomness | None = None) -> Tensor:
        """Logits, front and all."""
        return self.answer(self.begin(noisy, sigma, randomness), sigma, randomness)


class Denoised(Behind):
    """A network behind a denoiser, as one module that dualrs can smooth.

    The head is told the sigma too if its forward has a parameter of that name. Either may draw numbers of its own.
    """

    def __init__(self, denoiser: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.denoiser = denoiser
        self.head = head
        self._head_wants, self._denoiser_draws = Wants.of(head), takes_randomness(denoiser)
        self.training = denoiser.training or head.training

    @property
    def classes(self) -> tuple[str, ...]:
        """What the head calls its classes."""
        return class_names(self.head)

    @property
    def routes(self) -> tuple[tuple[float, ...], float] | None:
        """Of a router, the sigmas that it was trained to choose from, and its own."""
        return getattr(self.head, "routes", None)

    @property
    def front(self) -> nn.Module:
        """The denoiser."""
        return self.denoiser

    def begin(self, noisy: Tensor, sigma: Sigma, randomness: Randomness | None = None) -> Tensor:
        """The denoised images."""
        if not isinstance(sigma, Tensor) and sigma == 0:  # nothing to take off
            return noisy
        drawing = {"randomness": randomness} if self._denoiser_draws else {}
        clean: Tensor = self.denoiser(noisy, sigma, **drawing)
        return clean

    def answer(self, begun: Tensor, sigma: Sigma, randomness: Randomness | None = None) -> Tensor:
        """Logits of the head on images that the denoiser has seen."""
        logits: Tensor = self.head(begun, **self._head_wants.told(sigma, randomness))
        return logits


class OnLogits(Behind):
    """A module that answers from the logits of a network; ``role`` is what errors call that network."""

    def __init__(self, network: nn.Module, role: str) -> None:
        super().__init__()
        self.network = network
        self._voter = NoisyModel(role, network)
        self.training = network.training

    @property
    def classes(self) -> tuple[str, ...]:
        """What the network calls its classes."""
        return class_names(self.network)

    @property
    def front(self) -> nn.Module:
        """The network."""
        return self.network

    def begin(self, noisy: Tensor, sigma: Sigma, randomness: Randomness | None = None) -> Tensor:
        """Its logits."""
        return self._voter(noisy, sigma, randomness)


def answer_together(
    models: Sequence[NoisyModel], noisy: Tensor, sigma: float, randomness: Randomness | None = None
) -> list[Tensor]:
    """Logits of several models on the same noisy images; what some of them have in front works once for all.

    Each draws from ``randomness`` what it would draw if it were alone: what stands behind a front goes on where that
    has left off.
    """
    if len(models) == 1:
        return [models[0](noisy, sigma, randomness)]
    made: dict[nn.Module, tuple[Tensor, Randomness | None]] = {}

    def of(module: nn.Module, run: Callable[[Randomness | None], Tensor]) -> tuple[Tensor, Randomness | None]:
        if module not in made:
            if isinstance(module, Behind):
                begun, left = of(module.front, partial(module.begin, noisy, sigma))
                left = copy(left)
                made[module] = module.answer(begun, sigma, left), left
            else:
                left = copy(randomness)
                made[module] = run(left), left
        return made[module]

    return [model.checked(of(model.module, partial(model, noisy, sigma))[0], len(noisy)) for model in models]


def per_image(sigma: Sigma, images: Tensor) -> Tensor:
    """Sigma as a tensor that multiplies a batch of images, shape (1 or batch, 1, 1, 1)."""
    tensor = sigma if isinstance(sigma, Tensor) else images.new_tensor([sigma])
    return tensor.to(images).view(-1, 1, 1, 1)
