"""EntropyBins: its answer is the number of thresholds that the entropy exceeds."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from dualrs import Smoothed
from dualrs.errors import BadModel, BadSetting, TrainingMode
from dualrs.models.denoise import Denoised, answer_together
from dualrs.models.entropy import EntropyBins
from dualrs.models.noisy import NoisyModel


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


class Counting(nn.Module):
    """A denoiser that counts its calls."""

    def __init__(self):
        super().__init__()
        self.calls = 0
        self.eval()

    def forward(self, noisy, sigma):
        self.calls += 1
        return noisy


def test_what_stands_in_front_works_once_for_all_that_vote_together():
    denoiser, image = Counting(), torch.rand(3, 1, 2, 2)
    head = nn.Sequential(nn.Flatten(), nn.Linear(4, 3)).eval()
    classifier, other = Denoised(denoiser, head), Denoised(denoiser, Fixed(0.3, 0.7))
    models = [
        NoisyModel("m", m) for m in (EntropyBins(classifier, (0.5, 1.0)), classifier, other, EntropyBins(head, (1.0,)))
    ]
    alone = [model(image, 0.5) for model in models]
    denoiser.calls = 0
    together = answer_together(models, image, 0.5)
    assert denoiser.calls == 1
    for ours, theirs in zip(alone, together, strict=True):
        assert torch.equal(ours, theirs)


def test_a_network_that_returns_no_logits_is_refused():
    with pytest.raises(BadModel, match="the selector returned shape"):
        EntropyBins(nn.Flatten(0).eval(), (0.5,))(IMAGES, 0.5)


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
