"""Networks are known again by their answers; of large images fewer copies are drawn, and say as much."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from dualrs.models.noisy import NoisyModel
from dualrs.sampling import identity
from dualrs.sampling.engine import Engine
from dualrs.votes import Stage

ONE = (Stage.CLASS, 0.5)
LARGE = np.random.default_rng(0).integers(0, 256, (3, 101, 101), dtype=np.uint8)


class Pooled(nn.Module):
    """A linear network over 8 x 8 squares of an image, its weights changed by a little; counts what it is shown."""

    def __init__(self, answers, change=0.0, seed=1):
        super().__init__()
        weights, other = (torch.randn(192, answers, generator=torch.Generator().manual_seed(s)) for s in (0, seed))
        self.register_buffer("weights", weights + change * other)
        self.shown, self.tried = 0, False
        self.eval()

    def forward(self, x):
        self.shown += len(x)
        return (functional.adaptive_avg_pool2d(x.double(), 8) - 0.5).flatten(1) @ self.weights.double()


def said(network, batch_size=16):
    made = Engine({ONE: NoisyModel("classifier", network)}, batch_size=batch_size)
    made.prepare(LARGE)
    network.shown, network.tried = 0, True
    return made.identify(LARGE)[ONE]


@pytest.mark.parametrize(("answers", "copies"), [(1000, 8), (9, 8), (8, 64), (2, 64)])
def test_copies_are_fewer_where_answers_can_be_ranked(answers, copies):
    network = Pooled(answers)
    said(network, batch_size=4)
    assert network.shown == 4 * copies


def test_small_images_have_all_copies():
    network = Pooled(1000)
    made = Engine({ONE: NoisyModel("classifier", network)}, batch_size=64)
    small = LARGE[:, :32, :32]
    made.prepare(small)
    network.shown = 0
    made.identify(small)
    assert network.shown == 4 * identity.COPIES


@pytest.mark.parametrize("answers", [10, 1000])
def test_slight_changes_show_no_less_than_in_all_copies(answers, monkeypatch):
    """Of changes so small that the first answers to 256 copies show some of them only."""
    changed = [(change, seed) for change in (1e-4, 1e-3, 1e-2, 1e-1) for seed in range(1, 6)]

    def found():
        own = said(Pooled(answers))
        return sum(said(Pooled(answers, *one)) != own for one in changed)

    few = found()
    monkeypatch.setattr(identity, "LARGE", LARGE.size)
    every = found()
    assert 0 < every < len(changed)
    assert few >= every


def test_the_shape_of_batches_does_not_matter():
    assert said(Pooled(1000), batch_size=16) == said(Pooled(1000), batch_size=24)


def test_logits_that_are_no_numbers_are_an_answer_too():
    class Odd(Pooled):
        def forward(self, x):
            logits = super().forward(x)
            return logits.where(logits > 0, torch.nan) if self.tried and self.shown == 32 else logits

    assert said(Odd(1000)) != said(Pooled(1000))
