"""EntropyBins: its answer is the number of thresholds that the entropy exceeds."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from dualrs import Smoothed
from dualrs.errors import BadSetting, TrainingMode
from dualrs.models.entropy import EntropyBins


class Fixed(nn.Module):
    """The same logits for every image."""

    def __init__(self, *p):
        super().__init__()
        self.p = torch.tensor(p).log()
        self.eval()

    def forward(self, x):
        return self.p.expand(len(x), -1)


class Level(nn.Module):
    """A network that wants to know sigma, and is unsure where it is large."""

    def __init__(self):
        super().__init__()
        self.eval()

    def forward(self, x, sigma):
        return torch.tensor([[0.0, 1.0 / sigma]]).expand(len(x), -1)


IMAGES = torch.zeros(3, 1, 2, 2)


@pytest.mark.parametrize(
    ("p", "entropy"),
    [((0.5, 0.5), math.log(2)), ((0.9, 0.1), 0.325083), ((0.999, 0.001), 0.007907), ((0.25,) * 4, math.log(4))],
)
def test_answer_counts_the_thresholds_exceeded(p, entropy):
    thresholds = (0.01, 0.3, 0.6, 1.0)
    answer = EntropyBins(Fixed(*p), thresholds)(IMAGES, 0.5).argmax(dim=1)
    assert answer.tolist() == [sum(entropy > t for t in thresholds)] * 3


def test_logits_are_continuous_at_a_threshold():
    just = [EntropyBins(Fixed(0.5, 0.5), (math.log(2) + shift,))(IMAGES, 0.5) for shift in (-1e-6, 1e-6)]
    assert [logits.argmax(dim=1)[0].item() for logits in just] == [1, 0]
    torch.testing.assert_close(just[0], just[1], atol=1e-5, rtol=0)


def test_network_is_told_sigma_if_it_wants_to_know():
    bins = EntropyBins(Level(), (0.5,))
    assert bins(IMAGES, 0.1).argmax(dim=1)[0] == 0
    assert bins(IMAGES, 4.0).argmax(dim=1)[0] == 1


def test_it_can_be_smoothed():
    found = Smoothed(EntropyBins(Fixed(0.9, 0.1), (0.1, 0.5)), 0.5).certify(np.zeros((1, 4, 4), np.uint8), n=100, n0=10)
    assert found.prediction == 1


def test_thresholds_are_in_the_fingerprint():
    from dualrs.models.noisy import fingerprint

    assert fingerprint(EntropyBins(Fixed(0.9, 0.1), (0.1,))) != fingerprint(EntropyBins(Fixed(0.9, 0.1), (0.2,)))


def test_a_network_in_training_mode_is_seen():
    with pytest.raises(TrainingMode):
        Smoothed(EntropyBins(Fixed(0.9, 0.1).train(), (0.1,)), 0.5)


@pytest.mark.parametrize("thresholds", [(), (0.5, 0.5), (0.5, 0.2), (-0.1, 0.2), (0.0,)], ids=str)
def test_nonsense_thresholds_are_refused(thresholds):
    with pytest.raises(BadSetting, match="positive and rising"):
        EntropyBins(Fixed(0.9, 0.1), thresholds)
