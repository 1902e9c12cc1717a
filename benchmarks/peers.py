"""Beside the peers' own code: one network, one machine, the same inputs, n, alpha and batch size.

    pip install statsmodels adversarial-robustness-toolbox   # what the peers need
    python -m benchmarks.peers --locuslab smoothing/code --multiscale smoothing-multiscale --inputs 40

`--locuslab` is the folder of `core.py` in a clone of locuslab/smoothing (Cohen et al. 2019), `--multiscale` a clone of
jh-jeong/smoothing-multiscale (Jeong and Shin 2023); ART's randomized smoothing takes part if it is installed. Their
files are run as they are, with three things that today's libraries lack put in their place: `binom_test`, which they
import and do not use here; the device cuda, on a machine without one; mixed precision is left out, as ours has none.

The ways take turns, image by image, each turn in another order, so that a machine whose speed drifts slows them alike.
Seconds are means per image, ratios are to locuslab's `certify`. Noise differs, so radii agree only up to its chance:
the table has the share of images with the same answer, and the largest difference of radii among them.
"""

import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import numpy as np
import scipy.stats
import torch
import typer
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from dualrs import Cascade, DualSmoothed, Smoothed
from dualrs.data.sources import open_dataset
from dualrs.models.hardware import keep_memory
from dualrs.pipeline.networks import Networks
from dualrs.progress import PassingBar
from dualrs.smoothed import SmoothedModel

SIGMA, SIGMAS, ALPHA, N0, CLASSES = 0.5, (0.25, 0.5, 1.0), 0.001, 100, 10
FLOATS = "zoo:cifar10-denoiser | zoo:cifar10-classifier", "zoo:cifar10-denoiser | zoo:cifar10-first-router"
Answer = tuple[int, float]  # a class, -1 for none, and its radius
Certify = Callable[[Tensor], Answer]


class Told(nn.Module):
    """A network that is always told one sigma, as the peers' code calls networks without one."""

    def __init__(self, network: nn.Module, sigma: float) -> None:
        super().__init__()
        self.network, self.sigma = network, sigma

    def forward(self, x: Tensor) -> Tensor:
        """Logits at the sigma."""
        logits: Tensor = self.network(x, self.sigma)
        return logits


@dataclass
class Way:
    """A way to certify, with what it answered and the seconds it took."""

    certify: Certify
    like: str  # the way whose answers it should share
    answers: list[Answer] = field(default_factory=list)
    seconds: float = 0.0

    def run(self, image: Tensor) -> None:
        """Certify one more image."""
        began = time.perf_counter()
        answer = self.certify(image)
        self.seconds += time.perf_counter() - began
        self.answers.append(answer)


def ours(model: SmoothedModel, n: int, **asked: Any) -> Certify:
    """Our own certificates of a model, each image with a secret seed."""

    def certify(image: Tensor) -> Answer:
        found = model.certify(image, n=n, n0=N0, alpha=ALPHA, progress=False, **asked)
        return int(found.prediction), float(found.radius)

    certify(torch.zeros(3, 32, 32))  # preflight, noise tables
    return certify


def locuslab(core: ModuleType, network: nn.Module, n: int, batch: int) -> Certify:
    """`Smooth.certify` of Cohen et al."""
    smooth = core.Smooth(Told(network, SIGMA), CLASSES, SIGMA)

    def certify(image: Tensor) -> Answer:
        with _without_cuda():
            prediction, radius = smooth.certify(image, N0, n, ALPHA, batch)
        return int(prediction), float(radius)

    return certify


def multiscale(core: ModuleType, network: nn.Module, n: int, batch: int) -> Certify:
    """The stages of Jeong and Shin, largest sigma first, with their levels: alpha over the number of the stage."""
    stages = [core.Smooth(Told(network, sigma), CLASSES, sigma) for sigma in sorted(SIGMAS, reverse=True)]

    def certify(image: Tensor) -> Answer:
        earlier: list[Any] = []
        for number, stage in enumerate(stages, start=1):
            with _without_cuda():
                counted = stage.confidence(image, N0, n, batch)
            prediction, radius = counted.certified_radius(ALPHA / number)
            if prediction >= 0:
                others = [-one.off_class_upper_radius(ALPHA / number, prediction) for one in earlier]
                radius = min([radius, *others])
                return (int(prediction), float(radius)) if radius >= 0 else (-1, 0.0)
            if prediction == -2:  # undecided: the stage might have stopped here
                break
            earlier.append(counted)
        return -1, 0.0

    return certify


def art(network: nn.Module, n: int, batch: int) -> Certify:
    """`PyTorchRandomizedSmoothing.certify` of the Adversarial Robustness Toolbox."""
    from art.estimators.certification.randomized_smoothing import PyTorchRandomizedSmoothing

    smooth = PyTorchRandomizedSmoothing(
        model=Told(network, SIGMA),
        loss=nn.CrossEntropyLoss(),
        input_shape=(3, 32, 32),
        nb_classes=CLASSES,
        clip_values=None,
        sample_size=N0,
        scale=SIGMA,
        alpha=ALPHA,
        device_type="cpu",
    )

    def certify(image: Tensor) -> Answer:
        prediction, radius = smooth.certify(x=image[None].numpy(), n=n, batch_size=batch)
        return int(prediction[0]), float(radius[0])

    return certify


@contextmanager
def _without_cuda() -> Iterator[None]:
    """Their noise is drawn on the device cuda; without one, it is drawn where the images are."""
    drawn = torch.randn_like
    if not torch.cuda.is_available():
        torch.randn_like = lambda like, **asked: drawn(like)  # type: ignore[assignment]
    try:
        yield
    finally:
        torch.randn_like = drawn


def _file(path: Path, name: str) -> ModuleType:
    """A file of theirs as a module."""
    if not hasattr(scipy.stats, "binom_test"):
        scipy.stats.binom_test = scipy.stats.binomtest
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise typer.BadParameter(f"{path} is not there")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def ways(
    network: nn.Module, router: nn.Module, locuslab_at: Path | None, multiscale_at: Path | None, n: int, batch: int
) -> dict[str, Way]:
    """Every way that can be run here, by name."""
    one, several = Smoothed(network, SIGMA, batch_size=batch), Cascade(network, SIGMAS, batch_size=batch)
    dual = DualSmoothed(router, network, SIGMAS, 1.0, batch_size=batch)
    fixed, stages = "dualrs, fixed", "dualrs, multiscale"
    found = {fixed: Way(ours(one, n), fixed), "dualrs, adaptive": Way(ours(one, n, budget="adaptive"), fixed)}
    if locuslab_at is not None:
        core = _file(locuslab_at / "core.py", "locuslab_core")
        found["locuslab"] = Way(locuslab(core, network, n, batch), fixed)
    if importlib.util.find_spec("art") is not None:
        found["ART"] = Way(art(network, n, batch), fixed)
    found[stages] = Way(ours(several, n, rule="multiscale"), stages)
    if multiscale_at is not None:
        core = _file(multiscale_at / "third_party" / "core_mdds.py", "multiscale_core")
        found["Multiscale's own"] = Way(multiscale(core, network, n, batch), stages)
    for name, model in (("cascade", several), ("dual, paper", dual), ("dual, fusion", dual)):
        asked = {"rule": name.rpartition(" ")[2]}
        found[f"dualrs, {name}"] = Way(ours(model, n, **asked), "")
        found[f"dualrs, {name}, adaptive"] = Way(ours(model, n, budget="adaptive", **asked), "")
    return found


def main(
    locuslab: Annotated[Path | None, typer.Option(help="Where core.py lies in a clone of locuslab/smoothing.")] = None,
    multiscale: Annotated[Path | None, typer.Option(help="A clone of jh-jeong/smoothing-multiscale.")] = None,
    inputs: Annotated[int, typer.Option(help="How many images, spread over the bundled subset.")] = 40,
    classifier: Annotated[str, typer.Option(help="The network, one that is told the sigma.")] = FLOATS[0],
    router: Annotated[str, typer.Option(help="The dual predictor's other network.")] = FLOATS[1],
    n: Annotated[int, typer.Option(help="Votes a stage.")] = 10_000,
    batch: Annotated[int, typer.Option(help="Images in a batch, the same for all.")] = 256,
) -> None:
    """Certify the same images by our code and by that of the peers, in turns, and print seconds and agreement."""
    keep_memory()
    data = open_dataset("cifar10:subset", None, None, None)
    assert data is not None, "it comes with dualrs"
    chosen = np.linspace(0, len(data.ids) - 1, inputs).astype(int)
    networks = Networks()
    found = ways(networks(classifier), networks(router), locuslab, multiscale, n, batch)
    order = np.random.default_rng(0)
    with PassingBar("peers") as bar:
        for done, i in enumerate(chosen):
            bar.update("certifying", done, inputs)
            image = torch.from_numpy(data.image(int(i))).float() / 255
            for name in order.permutation(list(found)):
                found[name].run(image)
    table = Table("way", "s an image", "ratio", "same answer", "radii differ by", "certified", title_justify="left")
    base = found.get("locuslab", found["dualrs, fixed"]).seconds
    for name, way in found.items():
        like = found.get(way.like)
        row = [f"{way.seconds / inputs:.2f}", f"{way.seconds / base:.2f}", "", ""]
        if like is not None and like is not way:
            pairs = [(a, b) for a, b in zip(way.answers, like.answers, strict=True) if a[0] == b[0]]
            row[2:] = [f"{len(pairs)} of {inputs}", f"{max((abs(a[1] - b[1]) for a, b in pairs), default=0.0):.3f}"]
        table.add_row(name, *row, str(sum(radius > 0 for _, radius in way.answers)))
    threads = torch.get_num_threads()
    Console().print(f"{inputs} images, n = {n:,}, alpha = {ALPHA}, batches of {batch}, {threads} threads", table)


if __name__ == "__main__":
    typer.run(main)
