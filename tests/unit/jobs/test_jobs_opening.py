"""How a job begins where its first inputs have no finite logits."""

import re

import numpy as np
import pytest
import torch
from torch import nn

from dualrs.data.dataset import ArrayDataset
from dualrs.errors import NonFiniteLogits
from dualrs.jobs import label_dataset
from dualrs.smoothed import Pool
from dualrs.storage import Ledger


class AfraidOfTheDark(nn.Module):
    def forward(self, x):
        mean = x.flatten(1).mean(1, keepdim=True)
        return torch.cat([mean, 1 - mean], dim=1).masked_fill(mean < 0.1, torch.nan)


def label(path, dark, indices=range(6)):
    images = np.full((6, 1, 4, 4), 128, dtype=np.uint8)
    images[list(dark)] = 0
    model = Pool(AfraidOfTheDark().eval(), (0.01,), batch_size=32)
    data = ArrayDataset(images, [0] * 6, name="grey")
    label_dataset(model, data, path, n=100, alpha=0.01, seed=0, indices=indices)


def test_dark_first_input_is_no_fault_of_the_network(tmp_path):
    """The network is accepted; one process then stops at the input itself, and says which it is."""
    with pytest.raises(NonFiniteLogits, match=r"the classifier returned NaN .* noisy copies, of input 0$"):
        label(tmp_path / "run.ledger", dark=[0])
    label(tmp_path / "run.ledger", dark=[0], indices=range(1, 6))
    with Ledger.open(tmp_path / "run.ledger") as ledger:
        assert sorted(ledger.complete()) == ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize(
    ("dark", "indices", "tried"),
    [(range(6), range(6), "0, 1, 2"), ([2], [2], "2"), ([1, 4], [4, 1, 4], "4, 1")],
)
def test_network_that_fails_on_every_input_tried_is_refused(tmp_path, dark, indices, tried):
    sentence = f"on 32 of 32 noisy copies, of every input tried ({tried}); check the network's weights and precision"
    with pytest.raises(NonFiniteLogits, match=re.escape(sentence)):
        label(tmp_path / "run.ledger", dark, indices)
    assert list(tmp_path.iterdir()) == []
