"""What is loaded is tried: a good denoiser passes, one that is told something else than in its training does not."""

import pytest
import torch
from torch import nn

from dualrs.errors import BadCheckpoint
from dualrs.models import zoo
from dualrs.models.denoise import Identity
from dualrs.models.trial import demand_finite, demand_restores


class Told(nn.Module):
    """A denoiser that hears of another sigma, as under the schedule of another training."""

    def __init__(self, denoiser, factor):
        super().__init__()
        self.denoiser, self.factor = denoiser, factor

    def forward(self, noisy, sigma):
        return self.denoiser(noisy, sigma * self.factor)


@pytest.mark.parametrize("size", [32, 64])
def test_the_bundled_denoiser_restores(size):
    demand_restores(zoo.load("cifar10-denoiser"), size, "it")


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(lambda good: Identity(), id="nothing is taken off"),
        pytest.param(lambda good: Told(good, 0.43), id="cosine for linear"),
        pytest.param(lambda good: Told(good, 4.0), id="far too much noise"),
        pytest.param(lambda good: Told(good, torch.nan), id="NaN"),
    ],
)
def test_a_wrong_one_does_not(wrong):
    with pytest.raises(BadCheckpoint, match="it does not restore images"):
        demand_restores(wrong(zoo.load("cifar10-denoiser")), 32, "it")


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_tensors_that_are_no_numbers_are_refused(value):
    demand_finite({"a": torch.ones(2), "b": torch.tensor([1])}, "it")
    with pytest.raises(BadCheckpoint, match="it: the tensor b holds NaN or infinity"):
        demand_finite({"a": torch.ones(2), "b": torch.tensor([1.0, value])}, "it")
