"""Exercises for training methods: a few random images, a network in double precision, and what is right."""

import torch
from torch import nn

from dualrs.training.memory import Memory
from dualrs.training.methods import Exercise

INPUTS, CLASSES = 5, 4
SIGMA = 0.15


def network(scale=1.0, seed=0):
    """Two layers with a smooth bend, so that finite differences are near."""
    torch.manual_seed(seed)
    made = nn.Sequential(nn.Flatten(), nn.Linear(12, 8), nn.Tanh(), nn.Linear(8, CLASSES)).double()
    with torch.no_grad():
        made[-1].weight *= scale
    return made.train()


SURE = network()


def exercise(net, *, seed=1, epoch=1000, soft=None, weights=None, known=None, sigma=SIGMA):
    """All random numbers are those of the seed, so that it can be done again; the network is right on most inputs."""
    source = torch.Generator().manual_seed(7)
    clean = torch.rand(INPUTS, 3, 2, 2, generator=source, dtype=torch.float64)
    with torch.no_grad():
        answers = SURE(clean).argmax(-1)
    labels = (answers + (torch.arange(INPUTS) == 0)) % CLASSES if soft is None else soft.argmax(-1)
    memory = Memory()
    memory.epoch, memory.known = epoch, known or {}
    return Exercise(
        net, lambda noisy, sigma: net(noisy), torch.arange(INPUTS), clean, torch.full((INPUTS,), sigma), labels,
        torch.Generator().manual_seed(seed), memory, soft, weights,
    )  # fmt: skip
