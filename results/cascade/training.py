"""Fine-tune the bundled classifier for the cascade in three ways of equal cost: what README.md reports.

    python results/cascade/training.py plain         cross-entropy
    python results/cascade/training.py consistency   and consistency of two noisy copies, at the noisiest stage only
    python results/cascade/training.py passing       an eleventh answer: to pass, which is worth more at noisier stages

Each takes one pass over the training images, with two noisy copies of each, and writes
runs/for-the-cascade/WAY.safetensors.
"""

import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

import dualrs
from dualrs.models.card import Architecture, Card
from dualrs.models.denoise import Denoised
from dualrs.models.noisy import fingerprint
from dualrs.models.weights import save_weights
from dualrs.models.zoo import card as card_of
from dualrs.training.classifier import measure
from dualrs.training.front import Front
from dualrs.training.images import TrainingImages
from dualrs.training.loop import Schedule, State, Task, fit
from dualrs.training.losses import consistency
from dualrs.training.noise import OneOf, add_noise

SIGMAS = (0.25, 0.5, 1.0)
COPIES = 2
CONSISTENCY_WEIGHT, ENTROPY_WEIGHT = 10.0, 0.5  # Jeong and Shin's for sigma 1.0
WORTH = {0.25: 0.1, 0.5: 0.3, 1.0: 0.4}  # of passing, beside 1 for the right class; 0.1 is that of a guess among ten


class Passing(nn.Module):
    """A classifier with one more answer, to pass, whose probability is spread over the classes: passing is unsure."""

    def __init__(self) -> None:
        super().__init__()
        self.network = dualrs.load("zoo:cifar10-classifier")
        old = self.network.head
        self.network.head = nn.Linear(old.in_features, old.out_features + 1)
        with torch.no_grad():
            self.network.head.weight.zero_()[:-1] = old.weight
            self.network.head.bias.fill_(-1.0)[:-1] = old.bias

    def forward(self, images: Tensor) -> Tensor:
        """Log-probabilities of the classes."""
        p = self.network(images).softmax(dim=1)
        return (p[:, :-1] + p[:, -1:] / (p.shape[1] - 1)).log()


def passing_network() -> nn.Module:
    """The same with an answer more, in evaluation mode."""
    return Passing().eval()


def plain(logits: Tensor, labels: Tensor, sigma: Tensor) -> Tensor:
    """Cross-entropy; logits are (copies, images, classes)."""
    return F.cross_entropy(logits.flatten(0, 1), labels.repeat(COPIES))


def consistent(logits: Tensor, labels: Tensor, sigma: Tensor) -> Tensor:
    """Cross-entropy, and consistency of the copies under the largest sigma."""
    regular = consistency(logits, consistency_weight=CONSISTENCY_WEIGHT, entropy_weight=ENTROPY_WEIGHT)
    return plain(logits, labels, sigma) + (regular * (sigma == max(SIGMAS))).mean()


def passing(logits: Tensor, labels: Tensor, sigma: Tensor) -> Tensor:
    """-log(p_y + worth * p_pass), the loss of Ziyin et al. (2019) with a worth that depends on sigma."""
    log_p = logits.log_softmax(dim=-1)
    right = log_p.gather(-1, labels.expand(COPIES, -1)[..., None])[..., 0]
    worth = torch.tensor([WORTH[round(s, 2)] for s in sigma.tolist()])
    return -torch.logaddexp(right, worth.log() + log_p[..., -1]).mean()


def train(way: str) -> None:
    """One pass over the training images; a run that was cut is resumed."""
    loss_of = {"plain": plain, "consistency": consistent, "passing": passing}[way]
    whole = Passing() if way == "passing" else dualrs.load("zoo:cifar10-classifier")
    network = whole.network if isinstance(whole, Passing) else whole
    denoiser, test = dualrs.load("zoo:cifar10-denoiser"), dualrs.load_data("cifar10:test")
    front = Front(denoiser)
    images = TrainingImages(dualrs.load_data("cifar10:train"))
    levels = OneOf(SIGMAS)

    def loss(indices: Tensor, generator: Generator) -> Tensor:
        clean = images.batch(indices, generator).repeat(COPIES, 1, 1, 1)
        sigma = levels.draw(indices, generator)
        copied = sigma.repeat(COPIES)
        logits = network(front(add_noise(clean, copied, generator), copied))
        return loss_of(logits.unflatten(0, (COPIES, -1)), images.labels[indices], sigma)

    def report(state: State) -> None:
        if state.step % 20 == 0:
            print(f"{way} {state.step}/{state.steps} loss {state.loss:.4f} {state.images_per_second:.0f}/s", flush=True)

    out = Path("runs/for-the-cascade") / f"{way}.safetensors"
    about = f"for the cascade: {way} {fingerprint(network)} {front.name}, {images.name} {images.fingerprint}"
    schedule = Schedule(epochs=1, batch_size=128, rate=5e-4, weight_decay=0.05)
    seconds = fit(Task(network, images, loss, about), schedule, out.with_suffix(".checkpoint"), report=report)
    bundled_card = card_of("cifar10-classifier")
    card = Card(
        what=f"cifar10-classifier, fine-tuned behind cifar10-denoiser for the cascade: {way}",
        architecture=Architecture(network=f"{__file__}:passing_network")
        if way == "passing"
        else bundled_card.architecture,
        data=images.name,
        recipe=f"python results/cascade/training.py {way}",
        seed=schedule.seed,
        cost=f"{seconds / 60:.0f} min on {torch.get_num_threads()} CPU threads",
        scores={
            f"cifar10/test accuracy sigma={sigma:g}": round(
                measure(Denoised(denoiser, whole.eval()), test, sigma).accuracy, 4
            )
            for sigma in levels.typical
        },
        licence=bundled_card.licence,
    )
    save_weights(whole, card, out)


if __name__ == "__main__":
    train(*sys.argv[1:])
