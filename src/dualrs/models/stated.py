"""Networks that state a radius: for an 8-bit image a class, and an L2 distance within which it stays the same.

Enters: images. Leaves: what a network states, and as a vote that can be kept and counted: a pair of its answer and of
the radius, rounded down to a grid.
"""

from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from dualrs.errors import BadModel
from dualrs.models.noisy import class_names

LEVELS = 255


class Statement(NamedTuple):
    """What a network answers to images and how far away it answers the same; both (images,)."""

    answer: Tensor
    radius: Tensor  # float64, not negative
    answers: int  # how many there are


@runtime_checkable
class States(Protocol):
    """A network that states a radius."""

    def state(self, pixels: Tensor) -> Statement:
        """The answers to 8-bit images, shape (images, channels, height, width), and their radii.

        Guarantee: no 8-bit image closer than the radius, in L2 with pixels in [0, 1], is answered otherwise by this
        very computation, rounding and all. An image is answered by itself, whatever its company.
        """


class StatedBins(nn.Module):
    """What a network states, as logits over pairs; the arg max is answer * ``bins`` + radius / ``step``, rounded down.

    Images are rounded to 8 bits. Equal ones, as those that fill up a batch, are answered once. ``expected`` is how
    many answers the network has to have, if that is known. Where gradients are asked for, to search for images that
    are answered otherwise, they are those of the network itself.
    """

    def __init__(self, network: nn.Module, bins: int, step: float, role: str, expected: int | None = None) -> None:
        super().__init__()
        self.network, self.answers_per_class, self.step = network, bins, step
        self.role, self.expected = role, expected
        self.training = network.training
        if not isinstance(network, States):
            raise BadModel(
                f"the {role} is asked without noise and has to state a radius: a 1-Lipschitz network (--network "
                "lipschitz of `dualrs train`), a plain nn.Sequential (for interval bounds), or a module of your own "
                f"with a method state; got {type(network).__name__}"
            )

    @property
    def classes(self) -> tuple[str, ...]:
        """What the network calls its classes."""
        return class_names(self.network)

    def extra_repr(self) -> str:
        """The grid."""
        return f"bins={self.answers_per_class}, step={self.step}"

    def forward(self, images: Tensor) -> Tensor:
        """Logits, shape (batch, answers * bins)."""
        if images.requires_grad:
            soft: Tensor = self.network(images)
            return soft.repeat_interleave(self.answers_per_class, dim=1)
        pixels = (images.double() * LEVELS).round().clamp(0, LEVELS).byte().cpu()
        distinct, place = torch.unique(pixels.flatten(1), dim=0, return_inverse=True)
        assert isinstance(self.network, States), "checked when it was made"
        answer, radius, answers = self.network.state(distinct.view(-1, *pixels.shape[1:]))
        if self.expected not in (None, answers):
            raise BadModel(f"the {self.role} has {answers} answers, and there are {self.expected} candidates for it")
        bins = self.answers_per_class
        found = (radius / self.step).floor().clamp(0, bins - 1).long()  # exact: the step is a power of two
        logits = torch.zeros(len(images), answers * bins)
        logits[torch.arange(len(images)), (answer * bins + found)[place]] = 1.0
        return logits.to(images.device)


def stating(network: nn.Module) -> nn.Module:
    """The network itself if it states a radius, or with interval bounds if it is a plain sequence of layers."""
    from dualrs.models.interval import Intervals

    return Intervals(network) if isinstance(network, nn.Sequential) and not isinstance(network, States) else network
