"""A trained network in eight bits: its steps chosen on noisy training images, its answers compared, written down.

Enters: a lean residual network, training images, the sigmas that it shall answer under. Leaves: weights and card.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Generator, Tensor, nn

from dualrs.data.dataset import Dataset
from dualrs.data.images import LEVELS
from dualrs.errors import BadSetting
from dualrs.models.card import Architecture, Card
from dualrs.models.eight_bits import eight_bits
from dualrs.models.noisy import class_names
from dualrs.models.weights import save_weights
from dualrs.training.noise import OneOf, add_noise

_LICENCE = "that of the network it was made from"


@dataclass(frozen=True)
class Sampled:
    """Noisy copies of some images of a dataset, evenly spread, one at each sigma."""

    dataset: Dataset
    images: int
    sigmas: tuple[float, ...]
    seed: int

    def __iter__(self) -> Iterator[tuple[float, Tensor]]:
        """A batch for each sigma."""
        OneOf(self.sigmas)
        if not 0 < self.images <= len(self.dataset.ids):
            raise BadSetting(f"{self.dataset.name} has {len(self.dataset.ids):,} images; got {self.images:,}")
        generator = Generator().manual_seed(self.seed)
        chosen = np.linspace(0, len(self.dataset.ids) - 1, self.images).round().astype(int).tolist()
        clean = torch.from_numpy(np.stack([self.dataset.image(i) for i in chosen])).float().div_(LEVELS)
        for sigma in self.sigmas:
            yield sigma, add_noise(clean, torch.full((len(clean),), sigma), generator)


def quantise(network: nn.Module, name: str, train: Sampled, test: Sampled, out: Path, *, recipe: str) -> Card:
    """Write the eight-bit form of a network to ``out``, with a card that tells how often the two answer alike."""
    if out.exists():
        raise BadSetting(f"{out} is there already; give another name, or delete it and its card")
    began = time.perf_counter()
    told = getattr(network, "code", None) is not None
    batches = list(train)
    if not told:
        batches = [(train.sigmas[0], torch.cat([noisy for _, noisy in batches]))]
    made = eight_bits(network, batches)
    sigmas, sigma_e = getattr(network, "routes", None) or ((), None)
    card = Card(
        what=f"{name} in eight bits, for CPUs; under sigma {', '.join(f'{s:g}' for s in train.sigmas)}",
        architecture=Architecture(network="eight-bit-resnet", arguments=made.arguments),
        data=train.dataset.name,
        recipe=recipe,
        seed=train.seed,
        cost=f"{time.perf_counter() - began:.0f} s",
        scores={
            f"{test.dataset.name} same answer sigma={s:g}": round(share, 4) for s, share in _alike(network, made, test)
        },
        licence=_LICENCE,
        classes=class_names(network),
        sigmas=sigmas,
        sigma_e=sigma_e,
    )
    return save_weights(made, card, out)


@torch.inference_mode()
def _alike(network: nn.Module, made: nn.Module, test: Sampled) -> Iterator[tuple[float, float]]:
    for sigma, noisy in test:
        answers = [one(noisy, sigma).argmax(dim=1) for one in (network, made)]
        yield sigma, float((answers[0] == answers[1]).float().mean())
