"""A small real problem that needs no download: scikit-learn's handwritten digits, 8 x 8 pixels, ten classes.

The classifier is trained under noise of every candidate sigma. The router learns, from votes of that classifier,
which sigma certifies each training image furthest (Section 5.2 of the paper, in small). Both are trained in
seconds at first use and kept in runs/digits.pt; delete the file to train again.

    dualrs certify examples/digits.toml
"""

from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from dualrs import Smoothed
from dualrs.data.dataset import ArrayDataset

SIGMAS, SIGMA_E = (0.12, 0.25, 0.5), 0.5
KEPT = Path("runs/digits.pt")
TRAINING = 1297  # the first images train, the last 500 test


def images() -> tuple[Tensor, Tensor]:
    """All images as uint8 (1797, 1, 8, 8), and their labels."""
    digits = load_digits()
    pixels = np.rint(digits.images * 255 / 16).astype(np.uint8)
    return torch.from_numpy(pixels)[:, None], torch.from_numpy(digits.target)


def test() -> ArrayDataset:
    """The 500 test images."""
    x, y = images()
    ids = range(TRAINING, len(x))
    return ArrayDataset(x[TRAINING:], y[TRAINING:], ids=ids, name="scikit-learn digits, last 500")


def router() -> nn.Module:
    """The network that chooses among `SIGMAS`."""
    return _trained()[0]


def classifier() -> nn.Module:
    """The network that reads noisy digits."""
    return _trained()[1]


def _network(answers: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Flatten(), nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, answers)
    )


def _trained() -> tuple[nn.Module, nn.Module]:
    h_e, h_c = _network(len(SIGMAS)), _network(10)
    if KEPT.exists():
        states = torch.load(KEPT, weights_only=True)
        h_e.load_state_dict(states["router"])
        h_c.load_state_dict(states["classifier"])
    else:
        torch.manual_seed(0)
        x, y = (t[:TRAINING] for t in images())
        _fit(h_c, x, nn.functional.one_hot(y, 10).float(), SIGMAS)
        _fit(h_e, x, _best_sigma(h_c.eval(), x, y), (SIGMA_E,))
        KEPT.parent.mkdir(exist_ok=True)
        torch.save({"router": h_e.state_dict(), "classifier": h_c.state_dict()}, KEPT)
    return h_e.eval(), h_c.eval()


def _fit(network: nn.Module, x: Tensor, target: Tensor, sigmas: tuple[float, ...], steps: int = 1000) -> None:
    """Train on noisy copies, each of a random sigma of the list, towards (soft) targets."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=2e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps)
    for _ in track(range(steps), "training", console=Console(stderr=True), transient=True):
        rows = torch.randint(len(x), (256,))
        sigma = torch.tensor(sigmas)[torch.randint(len(sigmas), (256,))].view(-1, 1, 1, 1)
        clean = x[rows].float() / 255
        loss = cross_entropy(network(clean + sigma * torch.randn_like(clean)), target[rows])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()


def _best_sigma(h_c: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Soft labels: softmax over the candidates of the certified radius of the true class, n = 100."""
    radii = []
    for sigma in SIGMAS:
        certificates = Smoothed(h_c, sigma).certify(x, n=100, alpha=0.001)
        radii.append(np.where(certificates.prediction == y.numpy(), certificates.radius, 0.0))
    return torch.softmax(torch.tensor(np.stack(radii, axis=1), dtype=torch.float32) / 0.05, dim=1)
