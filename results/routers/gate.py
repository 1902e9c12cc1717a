"""Routers as gates of the cascade: a vote of a noisy stage passes where a router names a smaller sigma.

    dualrs certify --classifier results/routers/gate.py:gated --sigmas 0.25,0.5,1.0 --confidences 0.15 ...

Passing is to be unsure: such a vote names its class with a confidence of a tenth, which `cascade-0.15,0.15` lets pass.
"""

from pathlib import Path

import torch
from torch import Tensor, nn

import dualrs

SIGMAS = (0.25, 0.5, 1.0)
HERE = Path(__file__).parent


class Gated(nn.Module):
    """The experts in eight bits, and a router in front of each but the last."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = dualrs.load("zoo:cifar10-consistent-8bit")
        self.at_half, self.at_one = (dualrs.load(str(HERE / f"networks/regret-{s}.safetensors")) for s in (0.5, 1.0))

    def forward(self, images: Tensor, sigma: float) -> Tensor:
        """Logits, nearly all alike where the router of this sigma names a smaller one."""
        logits: Tensor = self.experts(images, sigma)
        stage = SIGMAS.index(sigma)
        if stage == 0:
            return logits
        gate = self.at_half if stage == 1 else self.at_one
        smaller = gate(images, sigma).argmax(dim=1) < stage
        return torch.where(smaller[:, None], 1e-3 * logits, logits)


def gated() -> nn.Module:
    """The network, in evaluation mode."""
    return Gated().eval()
