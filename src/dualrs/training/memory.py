"""Memory: what a training knows besides the weights, and in which order it takes its images.

Enters: the beginning of each epoch. Leaves: the order of its images, and tables with a row for each image, which
checkpoints keep: they are made from weights that are gone when a training goes on.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn

from dualrs.training.images import TrainingImages
from dualrs.training.noise import Levels, add_noise
from dualrs.training.processes import Processes

Respond = Callable[[Tensor, Tensor], Tensor]  # (noisy images, their sigmas) -> logits

_AT_ONCE = 512  # noisy images


@dataclass(frozen=True)
class Poll:
    """Votes on all training images, as they are, between two epochs. Several processes share the work."""

    network: nn.Module  # that is trained
    images: TrainingImages
    together: Processes
    source: Callable[[int], Generator]  # for each part of the work, whoever does it
    tell: Callable[[float], None]  # the share that is done

    @torch.no_grad()
    def votes(self, respond: Respond, levels: Levels, count: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Of some images at a time their places, and so many answers to each, (count, images)."""
        self.together.average(b for b in self.network.buffers() if b.is_floating_point())
        device = self.together.device
        self.network.eval()
        parts = torch.split(torch.arange(len(self.images)), max(1, _AT_ONCE // count))
        for number, places in enumerate(parts):
            if number % self.together.count != self.together.rank:
                continue
            generator = self.source(number)
            clean = self.images.plain(places).repeat(count, 1, 1, 1)
            sigma = levels.draw(places.repeat(count), generator)
            logits = respond(add_noise(clean, sigma, generator).to(device), sigma.to(device))
            yield places, logits.argmax(dim=-1).view(count, len(places)).cpu()
            self.tell((number + 1) / len(parts))
        self.network.train()

    def gathered(self, table: Tensor) -> Tensor:
        """A table of which each process has filled in its rows, the others zero."""
        return self.together.mean(table.to(self.together.device)).cpu() * self.together.count


class Memory:
    """A training that knows nothing besides: it takes every image once in an epoch, in random order."""

    def __init__(self) -> None:
        self.epoch = 0
        self.known: dict[str, Tensor] = {}

    def renew(self, poll: Poll) -> None:
        """At the beginning of an epoch, find out what it needs; this makes no difference to a step before."""

    def order(self, images: int, generator: Generator) -> Tensor:
        """The places of the images that the epoch takes, in its order."""
        return torch.randperm(images, generator=generator)
