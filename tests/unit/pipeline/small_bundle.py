"""Tiny networks on disk, for tests of what is made from them."""

from pathlib import Path

import torch

from dualrs.models.architectures import build
from dualrs.models.card import Architecture, Card
from dualrs.models.weights import save_weights

HEAD = Architecture(network="lean-resnet", arguments={"classes": 3, "widths": [8], "blocks": [1]})
ROUTER = Architecture(network="lean-resnet", arguments={"classes": 2, "widths": [8], "blocks": [1]})
DENOISER = Architecture(network="lean-unet", arguments={"width": 8, "middle": 1})


def save_network(architecture: Architecture, path: Path, *, seed: int = 0) -> None:
    """Fresh weights with a card."""
    torch.manual_seed(seed)
    card = Card(what="a test", architecture=architecture, data="", recipe="", seed=seed, cost="", scores={}, licence="")
    save_weights(build(architecture), card, path)
