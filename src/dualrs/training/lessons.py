"""What a router is taught: training images with the radius that their class has at each sigma.

Enters: a ledger of labels and the dataset that it was made from. Leaves: images and radii to learn from, and some held
out, with the best sigma as label.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from dualrs.data.dataset import Dataset, Relabelled
from dualrs.errors import BadData
from dualrs.training.images import TrainingImages
from dualrs.training.labels import read_labels
from dualrs.training.ledgers import ledger_about

_HELD_OUT = 20  # one in so many


@dataclass(frozen=True)
class Lessons:
    """Images and their radii, (images, sigmas), sigmas ascending; and a held-out dataset of best sigmas.

    ``experts`` says that different networks voted at the sigmas.
    """

    sigmas: tuple[float, ...]
    experts: bool
    images: TrainingImages
    radii: Tensor
    held_out: Dataset


def read_lessons(path: Path, dataset: Dataset, among: Sequence[int] | None = None) -> Lessons:
    """Take the inputs with a positive radius at some sigma, every 20th of them aside; ``among`` some places only."""
    with ledger_about(path, dataset) as ledger:
        labels = read_labels(ledger)
        experts = len(set(ledger.header.models.values())) > 1
    if tuple(sorted(labels.sigmas)) != labels.sigmas:
        raise BadData(f"the sigmas of {path} do not rise ({labels.sigmas}); label them in that order")
    chosen = labels.kept if among is None else labels.kept & np.isin(labels.index, np.asarray(among))
    places, radii = labels.index[chosen], labels.radii[chosen]
    aside = np.arange(len(places)) % _HELD_OUT == _HELD_OUT - 1
    if not aside.any():
        raise BadData(f"{path} has {len(places)} inputs with a positive radius, too few to train on; label more inputs")
    best, name = radii[aside].argmax(axis=1).tolist(), f"{dataset.name}, held out"
    held_out = Relabelled(dataset, best, places=places[aside].tolist(), name=name)
    images = TrainingImages(dataset, places[~aside].tolist())
    return Lessons(labels.sigmas, experts, images, torch.from_numpy(radii[~aside]), held_out)
