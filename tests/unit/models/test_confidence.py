"""ConfidenceBins: its answer is the class of the network, and how many confidences its softmax probability reaches."""

import pytest
import torch
from torch import nn

from dualrs.errors import BadModel, TrainingMode
from dualrs.models.confidence import ConfidenceBins
from dualrs.models.denoise import Denoised, answer_together
from dualrs.models.noisy import NoisyModel, fingerprint


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
CONFIDENCES = (0.3, 0.4, 0.5, 0.6)


@pytest.mark.parametrize(
    ("p", "class_", "bin_"),
    [
        ((0.26, 0.25, 0.25, 0.24), 0, 0),
        ((0.31, 0.23, 0.23, 0.23), 0, 1),
        ((0.2, 0.41, 0.2, 0.19), 1, 2),
        ((0.1, 0.1, 0.55, 0.25), 2, 3),
        ((0.1, 0.1, 0.1, 0.7), 3, 4),
        ((0.0, 0.0, 0.0, 1.0), 3, 4),
    ],
)
def test_answer_is_the_class_times_the_bins_and_the_bin(p, class_, bin_):
    answer = ConfidenceBins(Fixed(*p), CONFIDENCES)(IMAGES, 0.5).argmax(dim=1)
    assert answer.tolist() == [class_ * 5 + bin_] * 3


@pytest.mark.parametrize("confidences", [(), (0.5,), CONFIDENCES], ids=str)
def test_answers_of_random_logits_are_those_of_the_definition(confidences):
    logits = 3 * torch.randn(2000, 10, generator=torch.Generator().manual_seed(0))
    bins = ConfidenceBins(nn.Identity().eval(), confidences)
    found = bins(logits, 0.5)
    assert found.shape == (2000, 10 * (len(confidences) + 1))
    sure, class_ = logits.softmax(dim=1).max(dim=1)
    reached = sum((sure >= c).long() for c in confidences) if confidences else torch.zeros(2000, dtype=torch.long)
    assert torch.equal(found.argmax(dim=1), class_ * (len(confidences) + 1) + reached)
    if confidences:
        assert len(reached.unique()) == len(confidences) + 1  # every bin occurs


def test_logits_are_continuous_at_the_end_of_a_bin():
    just = [ConfidenceBins(Fixed(0.4 + d, 0.35 - d, 0.25), CONFIDENCES)(IMAGES, 0.5) for d in (-1e-6, 1e-6)]
    assert [logits.argmax(dim=1)[0].item() for logits in just] == [1, 2]
    torch.testing.assert_close(just[0], just[1], atol=1e-4, rtol=0)


def test_logits_are_continuous_where_two_classes_tie():
    just = [ConfidenceBins(Fixed(0.45 + d, 0.45 - d, 0.1), CONFIDENCES)(IMAGES, 0.5) for d in (-1e-6, 1e-6)]
    assert [logits.argmax(dim=1)[0].item() // 5 for logits in just] == [1, 0]
    torch.testing.assert_close(just[0], just[1], atol=1e-4, rtol=0)


def test_network_is_told_sigma_if_it_wants_to_know():
    bins = ConfidenceBins(Level(), (0.9,))
    assert bins(IMAGES, 0.1).argmax(dim=1)[0] == 3
    assert bins(IMAGES, 4.0).argmax(dim=1)[0] == 2


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
    models = [NoisyModel("m", m) for m in (ConfidenceBins(classifier, (0.4, 0.5)), classifier, other)]
    alone = [model(image, 0.5) for model in models]
    denoiser.calls = 0
    together = answer_together(models, image, 0.5)
    assert denoiser.calls == 1
    for ours, theirs in zip(alone, together, strict=True):
        assert torch.equal(ours, theirs)


def test_confidences_are_in_the_fingerprint():
    found = {fingerprint(ConfidenceBins(Fixed(0.9, 0.1), c)) for c in ((), (0.4,), (0.5,), (0.4, 0.5))}
    assert len(found) == 4
    one, other = (ConfidenceBins(nn.Linear(4, 2).eval(), (0.4,)) for _ in range(2))
    assert fingerprint(one) != fingerprint(other)


def test_a_network_that_returns_no_logits_is_refused():
    with pytest.raises(BadModel, match="the classifier returned shape"):
        ConfidenceBins(nn.Flatten(0).eval(), (0.5,))(IMAGES, 0.5)


def test_a_network_in_training_mode_is_seen():
    from dualrs import Smoothed

    with pytest.raises(TrainingMode):
        Smoothed(ConfidenceBins(Fixed(0.9, 0.1).train(), (0.4,)), 0.5)


def test_a_network_that_gives_no_number_is_no_vote():
    """NaN stays NaN, which the sampling refuses."""
    assert ConfidenceBins(Fixed(float("nan"), 0.5), (0.4,))(IMAGES, 0.5).isnan().all()
