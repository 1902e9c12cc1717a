"""Compiled networks: the same votes, in whatever company; without a compiler, the network as it is."""

import shutil

import numpy as np
import pytest
import torch
from torch import nn

from dualrs import Smoothed
from dualrs.errors import NotCompiled
from dualrs.models.denoise import Denoised, Preconditioned

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")  # torch's compiler uses what torch gave up

IMAGES = np.random.default_rng(0).integers(0, 256, (3, 3, 8, 8), dtype=np.uint8)


class Shift(nn.Module):
    """The core of a small denoiser."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, x: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
        return self.layer(x) * sigma.view(-1, 1, 1, 1)


def network() -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        head = nn.Sequential(nn.Flatten(), nn.Linear(192, 16), nn.ReLU(), nn.Linear(16, 3))
        return Denoised(Preconditioned(Shift()), head).eval()


@pytest.fixture
def no_cache() -> None:
    torch.compiler.reset()


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch compiles with g++")
def test_compiled_networks_give_the_same_certificates(no_cache: None) -> None:
    plain = Smoothed(network(), 0.5, batch_size=32)
    compiled = Smoothed(network(), 0.5, batch_size=32, compile=True)
    found = compiled.certify(IMAGES, n=500, seed=0)
    assert compiled.engine.compile
    assert list(found) == list(plain.certify(IMAGES, n=500, seed=0))
    assert compiled.classifier.fingerprint == plain.classifier.fingerprint  # a ledger takes them for one network


def test_without_a_compiler_the_network_runs_as_it_is(no_cache: None) -> None:
    from torch._inductor import config

    with config.patch({"cpp.cxx": ("no-such-compiler",), "fx_graph_cache": False}):
        smoothed = Smoothed(network(), 0.5, batch_size=32, compile=True)
        with pytest.warns(NotCompiled, match=r"cannot compile the classifier here .*; networks run as they are"):
            found = smoothed.certify(IMAGES, n=500, seed=0)
    assert not smoothed.engine.compile
    assert list(found) == list(Smoothed(network(), 0.5, batch_size=32).certify(IMAGES, n=500, seed=0))
