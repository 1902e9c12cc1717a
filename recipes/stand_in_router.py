"""Labels for the stand-in router: for each image the sigma that seems to suit it best.

The paper's labels are certified radii from votes. These are cheaper: with p the mean probability that the bundled
classifier gives to the true class on four noisy copies, the radius is taken to be sigma * quantile(p), and the label is
the candidate with the largest one. Images with no positive radius are dropped. About five minutes on two cores.
"""

from functools import cache

import numpy as np
import torch

from dualrs.data.cifar10 import load
from dualrs.data.dataset import ArrayDataset
from dualrs.models import zoo
from dualrs.models.denoise import Denoised
from dualrs.training.noise import add_noise

SIGMAS = (0.25, 0.5, 1.0)
COPIES = 4
STEP = 3  # every third training image
HELD_OUT = 1_000  # of those


@cache
def _labelled() -> ArrayDataset:
    everything = load("train")
    assert everything.labels is not None
    chosen = np.arange(0, len(everything), STEP)
    pixels, truth = everything.pixels[chosen], torch.tensor(everything.labels)[chosen]
    model = Denoised(zoo.load("cifar10-denoiser"), zoo.load("cifar10-classifier"))
    generator = torch.Generator().manual_seed(0)
    radii = torch.zeros(len(chosen), len(SIGMAS))
    with torch.inference_mode():
        for start in range(0, len(chosen), 250):
            rows = slice(start, start + 250)
            clean = torch.from_numpy(pixels[rows]).float() / 255
            for k, sigma in enumerate(SIGMAS):
                levels = torch.full((len(clean),), sigma)
                chances = [
                    model(add_noise(clean, levels, generator), sigma).softmax(1).gather(1, truth[rows, None])
                    for _ in range(COPIES)
                ]
                share = torch.cat(chances, 1).mean(1).clamp(0.001, 0.999)
                radii[rows, k] = sigma * torch.special.ndtri(share)
    kept = (radii.max(1).values > 0).numpy()
    return ArrayDataset(pixels[kept], radii.argmax(1).numpy()[kept], name="cifar10/train by sigma")


def train() -> ArrayDataset:
    """Images with the number of their sigma as label."""
    whole = _labelled()
    assert whole.labels is not None
    return ArrayDataset(whole.pixels[:-HELD_OUT], whole.labels[:-HELD_OUT], name=whole.name)


def test() -> ArrayDataset:
    """The last of these images, held out."""
    whole = _labelled()
    assert whole.labels is not None
    return ArrayDataset(whole.pixels[-HELD_OUT:], whole.labels[-HELD_OUT:], name=f"{whole.name}, held out")
