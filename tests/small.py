"""The small networks of the tests, for grey images of 6 x 6 pixels; any folder of tests can import them."""

from itertools import pairwise

import torch
from torch import nn


class Small(nn.Module):
    """A real convolutional network; equal seeds make equal ones.

    Neither weights nor repr tell of ``shift``. It counts its ``calls`` and the images ``asked`` about, and has memory
    for batches of ``most`` images.
    """

    def __init__(self, seed=0, answers=3, *, shift=0.5, widths=(6,)):
        super().__init__()
        layers = []
        for before, width in pairwise((1, *widths)):
            layers += [nn.Conv2d(before, width, 3), nn.ReLU()]
        side = 6 - 2 * len(widths)
        self.body = nn.Sequential(*layers, nn.Flatten(), nn.Linear(widths[-1] * side**2, answers))
        generator = torch.Generator().manual_seed(seed)
        for p in self.body.parameters():
            p.data = torch.randn(p.shape, generator=generator) / 3
        self.shift = shift
        self.calls = self.asked = 0
        self.most = 10**9
        self.eval()

    def forward(self, x):
        if len(x) > self.most:
            raise MemoryError
        self.calls += 1
        self.asked += len(x)
        return self.body(x - self.shift)


def plain_net(seed=0, answers=3):
    """A plain sequence of layers for the same images, which interval bounds give a radius."""
    generator = torch.Generator().manual_seed(seed)
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32, answers))
    for p in net.parameters():
        p.data = torch.randn(p.shape, generator=generator) / 3
    return net.eval()
