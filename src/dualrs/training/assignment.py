"""What a classifier is fine-tuned on: training images, each with the sigma that the router assigns to it.

Enters: a ledger that `dualrs assign` wrote and the dataset that it was made from. Leaves: images and their sigmas.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from dualrs.data.classes import numbered_as
from dualrs.data.dataset import Dataset
from dualrs.training.assigned import read_assigned
from dualrs.training.images import TrainingImages
from dualrs.training.ledgers import ledger_about
from dualrs.training.noise import Levels, PerInput


@dataclass(frozen=True)
class Assignment:
    """Images and the level of noise of each."""

    images: TrainingImages
    levels: Levels


def read_assignment(
    path: Path, dataset: Dataset, among: Sequence[int] | None = None, classes: Sequence[str] = ()
) -> Assignment:
    """Every input that the ledger has all votes of, or those ``among`` some places; undecided ones like the others.

    Labels are numbered as the network numbers its ``classes``, where it names them.
    """
    with ledger_about(path, dataset) as ledger:
        assigned = read_assigned(ledger)
    chosen = np.ones(len(assigned.index), bool) if among is None else np.isin(assigned.index, np.asarray(among))
    images = TrainingImages(numbered_as(dataset, classes), assigned.index[chosen].tolist())
    return Assignment(images, PerInput(torch.from_numpy(assigned.sigma_c[chosen])))
