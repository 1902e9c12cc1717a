"""What a router is taught: training images with the radius that their class has at each sigma.

Enters: a ledger of labels and the dataset that it was made from. Leaves: images and radii to learn from, and some held
out, with the best sigma as label.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from dualrs.data.dataset import ArrayDataset, Dataset
from dualrs.errors import BadData
from dualrs.report.labels import read_labels
from dualrs.storage.ledger import Ledger
from dualrs.training.images import TrainingImages

_HELD_OUT = 20  # one in so many


@dataclass(frozen=True)
class Lessons:
    """Images and their radii, (images, sigmas), sigmas ascending; and a held-out dataset of best sigmas."""

    sigmas: tuple[float, ...]
    images: TrainingImages
    radii: Tensor
    held_out: ArrayDataset


def read_lessons(path: Path, dataset: Dataset) -> Lessons:
    """Take the inputs with a positive radius at some sigma, every 20th of them aside."""
    with Ledger.open(path) as ledger:
        if ledger.header.dataset_fingerprint != dataset.fingerprint:
            raise BadData(
                f"{path} has labels of {ledger.header.dataset}, and {dataset.name} is another dataset; give the same"
            )
        labels = read_labels(ledger)
    if tuple(sorted(labels.sigmas)) != labels.sigmas:
        raise BadData(f"the sigmas of {path} do not rise ({labels.sigmas}); label them in that order")
    places, radii = labels.index[labels.kept], labels.radii[labels.kept]
    aside = np.arange(len(places)) % _HELD_OUT == _HELD_OUT - 1
    if not aside.any():
        raise BadData(f"{path} has {len(places)} inputs with a positive radius, too few to train on; label more inputs")
    held_out = ArrayDataset(
        np.stack([dataset.image(int(i)) for i in places[aside]]),
        radii[aside].argmax(axis=1),
        ids=[dataset.ids[int(i)] for i in places[aside]],
        name=f"{dataset.name}, held out",
    )
    images = TrainingImages(dataset, [int(i) for i in places[~aside]])
    return Lessons(labels.sigmas, images, torch.from_numpy(radii[~aside]), held_out)
