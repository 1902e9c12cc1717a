"""The network that is trained as a loss sees it: noisy images in, logits out, the frozen denoiser between them.

A gradient passes to the images only where they ask for one: attacks do, and steps of training do not.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from torch import Tensor, nn

from dualrs.models.denoise import Sigma
from dualrs.models.noisy import answering, logits_of, takes_sigma
from dualrs.training.front import Front


@dataclass(frozen=True)
class Pupil:
    """A network behind its front; ``role`` is what errors call it."""

    role: str
    network: nn.Module
    front: Front

    def __call__(self, noisy: Tensor, sigma: Sigma) -> Tensor:
        """Logits, on the device where it is trained."""
        seen = self.front(noisy, sigma)
        with answering(self.role, self.network, seen):
            logits: Tensor = logits_of(self.network(seen, sigma=sigma) if self._told else self.network(seen))
        return logits

    @cached_property
    def _told(self) -> bool:
        return takes_sigma(self.network)


@contextmanager
def standing_still(network: nn.Module) -> Iterator[None]:
    """For attacks: evaluation mode, so that they leave no trace in the statistics of batch normalisation."""
    network.eval()
    try:
        yield
    finally:
        network.train()
