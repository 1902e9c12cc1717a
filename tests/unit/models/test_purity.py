"""Purity: networks that leave something behind when they answer are told from those that do not."""

import threading
from collections import deque
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from dualrs.models.purity import picture
from dualrs.models.zoo import load

X = torch.rand(2, 3, 8, 8)


class Doing(nn.Module):
    """Does something with itself and an image on its way to its answer."""

    def __init__(self, doing, **held):
        super().__init__()
        self.doing, self.layer = doing, nn.Conv2d(3, 4, 3)
        self.register_buffer("scratch", torch.zeros(2, 3, 8, 8))
        for name, thing in held.items():
            setattr(self, name, thing)
        self.eval()

    def forward(self, x):
        self.doing(self, x)
        return self.layer(x).mean(dim=(2, 3))


KEPT, LAST = {}, None


def keep_globally(x):
    global LAST
    LAST = x


class Global(Doing):
    """Its method, and not its forward, writes to a global variable."""

    def forward(self, x):
        self.remember(x)
        return super().forward(x)

    def remember(self, x):
        [KEPT.update(last=each) for each in [x]]


def hooked(keep):
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten())
    network[0].register_forward_hook(lambda layer, given, output: keep(output))
    return network.eval()


def through_closure():
    kept = {}
    return hooked(lambda output: kept.update(features=output))


def through_method():
    return hooked(deque(maxlen=3).append)


IMPURE = {
    "an attribute that is set": Doing(lambda self, x: setattr(self, "features", x)),
    "a counter": Doing(lambda self, x: setattr(self, "calls", self.calls + 1), calls=0),
    "a list": Doing(lambda self, x: self.seen.append(x), seen=[]),
    "a dict in an object in a list": Doing(
        lambda self, x: self.helpers[0].cache.update(last=x), helpers=[SimpleNamespace(cache={})]
    ),
    "a buffer written in place": Doing(lambda self, x: self.scratch.copy_(x)),
    "a weight written in place": Doing(lambda self, x: self.layer.weight.mul_(1)),
    "a plain tensor": Doing(lambda self, x: self.plain.add_(1), plain=torch.zeros(2)),
    "an array": Doing(lambda self, x: self.array.__iadd__(1), array=np.zeros(2)),
    "a default argument": Doing(lambda self, x, kept=[]: kept.append(x)),
    "a partial function": Doing(partial(lambda kept, self, x: kept.append(x), [])),
    "a hook with a closure": through_closure(),
    "a global dict": Global(lambda self, x: None),
    "a global name": Doing(lambda self, x: keep_globally(x)),
}


@pytest.mark.parametrize("network", IMPURE.values(), ids=IMPURE.keys())
def test_what_a_forward_leaves_behind_is_seen(network):
    with torch.inference_mode():
        network(X)
        before = picture(network)
        network(X.flip(0))
    assert before is not None
    assert before != picture(network)


def first_only(self, x):
    if len(x) not in self.made:
        self.made[len(x)] = torch.arange(len(x))


PURE = {
    "convolutions": nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten()).eval(),
    "something made at the first call, in inference": Doing(first_only, made={}),
    "functions, and what they hold": Doing(lambda self, x, kept=(1, 2): kept, helper=partial(max, 3), name="a"),
    "a hook that keeps nothing": hooked(lambda output: None),
    "eight bits, packed at the first call": load("cifar10-consistent-8bit"),
}


@pytest.mark.parametrize("network", PURE.values(), ids=PURE.keys())
def test_what_leaves_nothing_behind_looks_the_same(network):
    given = (torch.rand(2, 3, 32, 32), 0.5) if "sigmas" in repr(network) else (X,)
    with torch.inference_mode():
        network(*given)
        before = picture(network)
        network(*given)
    assert before is not None
    assert before == picture(network)


class Loop(nn.Module):
    """Refers to itself, as back-references do, and to what has no attributes."""

    def __init__(self):
        super().__init__()
        self.back, self.lock = [self], threading.Lock()


def test_a_module_that_refers_to_itself_has_a_picture():
    assert picture(Loop()) is not None


def compiled():
    network = nn.Linear(2, 2)
    network.compile()
    return network


@pytest.mark.parametrize(
    "network",
    [
        pytest.param(lambda: nn.Sequential(torch.jit.trace(nn.Linear(2, 2), torch.zeros(1, 2))), id="TorchScript"),
        pytest.param(lambda: nn.Sequential(compiled()), id="compiled"),
        pytest.param(lambda: Doing(print, many=[object() for _ in range(200_001)]), id="too much to look at"),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_cannot_be_seen_has_no_picture(network):
    assert picture(network()) is None


class Strict(nn.Module):
    """As diffusers' modules do, it complains of attributes that it does not have."""

    def __getattr__(self, name):
        raise KeyError(name)


def test_a_module_that_complains_of_unknown_attributes_has_a_picture():
    assert picture(nn.Sequential(Strict())) is not None
