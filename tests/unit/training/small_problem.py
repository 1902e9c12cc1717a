"""A problem on which plain noise does worse than it could: two colours, and images among them that lie.

Images of 2 x 2 pixels have one colour each, in which noise of sigma 0.25 moves the mean by 0.125 a channel. Class 0 is
at 0.3 of the first channel, class 1 at 0.7. A seventh of the training images are between them and off the line, and
all of those say class 0. Whoever believes them bends the boundary towards class 1, and loses radius there.
"""

import numpy as np
import torch
from torch import nn

from dualrs.data.dataset import ArrayDataset

SIGMA = 0.25
_SPREAD = 0.03
_VOTES = 1000


def colours(centres, labels, counts, seed):
    generator = np.random.default_rng(seed)
    mean = np.repeat(centres, counts, axis=0)
    pixels = (255 * np.clip(mean + generator.normal(0, _SPREAD, mean.shape), 0, 1)).round().astype(np.uint8)
    whole = np.ascontiguousarray(np.broadcast_to(pixels[:, :, None, None], (*pixels.shape, 2, 2)))
    return ArrayDataset(whole, np.repeat(labels, counts), name="colours")


TWO = [(0.3, 0.5, 0.5), (0.7, 0.5, 0.5)]
TRAIN = colours([*TWO, (0.65, 0.75, 0.5)], [0, 1, 0], [96, 96, 32], 0)
TEST = colours(TWO, [0, 1], [50, 50], 1)


class Mean(nn.Module):
    """The mean colour, and a small network on it."""

    def __init__(self, classes=2):
        super().__init__()
        layers = nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, classes)
        self.body = nn.Sequential(*layers)

    def forward(self, images):
        return self.body(4 * (images.mean((2, 3)) - 0.5))


def network(seed=0):
    torch.manual_seed(seed)
    return Mean()


@torch.no_grad()
def accuracy_and_radius(net):
    """Of the smoothed network on test images: the share that is right, and the mean radius (0 where it is wrong)."""
    images = torch.from_numpy(np.stack([TEST.image(i) for i in range(len(TEST.ids))])).float() / 255
    labels = torch.tensor(TEST.labels)
    noise = SIGMA * torch.randn(_VOTES, *images.shape, generator=torch.Generator().manual_seed(9))
    answers = net((images + noise).flatten(0, 1)).argmax(-1).view(_VOTES, -1)
    share = (answers == labels).float().mean(0).clamp(max=1 - 1 / _VOTES)
    radius = torch.where(share > 0.5, SIGMA * torch.special.ndtri(share), 0.0)
    return (share > 0.5).float().mean().item(), radius.mean().item()
