"""The commands that train networks: train denoiser, train classifier, train router."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option, Typer

from dualrs.cli.device import chosen_device
from dualrs.cli.options import DATA, DEVICE, ENGINE, DataOptions, this_command
from dualrs.cli.sets import Only, spread_out
from dualrs.errors import BadSetting

if TYPE_CHECKING:
    from dualrs.data.dataset import Dataset
    from dualrs.training.base import Training
    from dualrs.training.images import TrainingImages
    from dualrs.training.noise import Levels

ONE_SIGMA = "it names one sigma only: a fixed sigma does the same without it; label more images or train longer"

train_app = Typer(no_args_is_help=True, help="Train networks: a denoiser, a classifier, a router.")

# Options by their group in the help.
_data, _schedule, _objective, _engine = (
    partial(Option, rich_help_panel=panel) for panel in (DATA, "Training", "Objective", ENGINE)
)
ARGS_OF_DENOISER, ARGS_OF_CLASSIFIER = '{"width": 32}', '{"widths": [24, 48, 96]}'
Out = Annotated[
    Path, Argument(help="Where the weights go, NAME.safetensors; the card goes beside them.", show_default=False)
]
Data = Annotated[str, _data(help="Training images: cifar10:train, folder:PATH, hub:NAME:SPLIT or module:attribute.")]
Test = Annotated[str, _data(help="Images to measure the result on.")]
Denoiser = Annotated[
    str | None,
    Option(help="The denoiser in front of it, kept as it is: zoo:NAME, PATH.safetensors, ... (see `dualrs models`)."),
]
Network = Annotated[
    str, _schedule(help="lean-resnet, resnet20, resnet56, resnet110 or resnet50; or your own, as net.py:make.")
]
NetworkArgs = Annotated[str, _schedule(help=f"Arguments of the network as JSON, such as '{ARGS_OF_CLASSIFIER}'.")]
Shape = Annotated[DataOptions, Only("resize", "crop")]


@dataclass(frozen=True)
class Course:
    """How a network is trained, and where."""

    epochs: Annotated[int, _schedule()] = 15
    batch_size: Annotated[int, _schedule()] = 128
    rate: Annotated[float, _schedule(help="Highest learning rate of AdamW.")] = 2e-3
    weight_decay: Annotated[float, _schedule()] = 0.01
    halve_every: Annotated[
        int,
        _schedule(
            help="Epochs after which the rate halves; 0: it rises for a tenth of the time and then falls to nothing."
        ),
    ] = 0
    seed: Annotated[int, _schedule(help="Seed of the weights, the order and the noise.")] = 0
    device: Annotated[str | None, _engine(help=DEVICE)] = None
    dtype: Annotated[
        str | None, _engine(help="float32 or bfloat16; by default whichever the device computes faster.")
    ] = None

    @contextmanager
    def training(self, out: Path, images: "TrainingImages", test: "Dataset", levels: "Levels") -> "Iterator[Training]":
        """A training with its command; a bar shows it as long as it is in use, and then its result is printed."""
        from dualrs.cli.training_bar import TrainingBar
        from dualrs.training.base import Training
        from dualrs.training.schedule import Schedule

        schedule = Schedule(self.epochs, self.batch_size, self.rate, self.weight_decay, self.seed, self.halve_every)
        before = _time_of(out)
        with TrainingBar(f"training {out.stem}") as bar:
            yield Training(
                out, images, test, levels, schedule,
                recipe=this_command(), device=chosen_device(self.device), dtype=self.dtype, report=bar.update,
            )  # fmt: skip
        _show(out, "wrote" if _time_of(out) != before else "this training is done already:")


@train_app.command("denoiser")
@spread_out
def denoiser(
    out: Out,
    data: Data = "cifar10:train",
    test: Test = "cifar10:test",
    sigma: Annotated[str, Option(help="Sigmas: LOW:HIGH, or some, as 0.25,0.5,1.0.")] = "0.05:1.5",
    network: Annotated[str, _schedule(help="lean-unet, or unet2d (of diffusers).")] = "lean-unet",
    network_args: Annotated[
        str, _schedule(help=f"Arguments of the network as JSON, such as '{ARGS_OF_DENOISER}'.")
    ] = "{}",
    *,
    shape: Shape,
    course: Annotated[Course, Only("batch_size", "rate", "weight_decay", "seed", "device", "dtype", epochs=12)],
) -> None:
    """Train a denoiser that is told the sigma, over a range of them.

    Stop it at any time; run the same command again to resume.
    """
    from dualrs.models.card import Architecture
    from dualrs.training.base import train_denoiser
    from dualrs.training.images import TrainingImages
    from dualrs.training.noise import parse_levels

    images = TrainingImages(replace(shape, data=data).open())
    levels = parse_levels(sigma, len(images))
    with course.training(out, images, replace(shape, data=test).open(), levels) as training:
        train_denoiser(training, Architecture(network=network, arguments=_arguments(network_args)))


@train_app.command("classifier")
@spread_out
def classifier(
    out: Out,
    denoiser: Denoiser = None,
    start: Annotated[
        str | None,
        Option(
            "--from",
            help="Go on from this network instead of fresh weights: fine-tuning. zoo:NAME, PATH.safetensors, "
            "transformers:FOLDER, module:attribute.",
        ),
    ] = None,
    data: Data = "cifar10:train",
    test: Test = "cifar10:test",
    sigma: Annotated[
        str,
        Option(help="0 is clean; 0.5; one of 0.25,0.5,1.0; a range 0.1:1.2; or a .npy file with one per image."),
    ] = "0.25,0.5,1.0",
    sigma_from: Annotated[
        Path | None,
        Option(help="Instead: the ledger that `dualrs assign` wrote. Its inputs are trained on, each at its sigma."),
    ] = None,
    loss: Annotated[
        str | None,
        _objective(help="Your own in place of cross-entropy: net.py:loss, (logits, labels) -> one loss per image."),
    ] = None,
    network: Network = "lean-resnet",
    network_args: NetworkArgs = "{}",
    rate: Annotated[float | None, _schedule(help="Highest learning rate of AdamW; 3e-3, or with --from 2e-5.")] = None,
    weight_decay: Annotated[float | None, _schedule(help="0.05, or with --from 0.01.")] = None,
    *,
    shape: Shape,
    course: Annotated[Course, Only("epochs", "batch_size", "halve_every", "seed", "device", "dtype")],
) -> None:
    """Train a classifier on clean, on noisy or (with --denoiser) on denoised images.

    Stop it at any time; run the same command again to resume.

    Fine-tune: `dualrs train classifier tuned.safetensors --denoiser zoo:cifar10-denoiser --from zoo:cifar10-classifier
    --sigma-from assigned.ledger`
    """
    from dualrs.data.classes import numbered_as
    from dualrs.models.reference import Reference
    from dualrs.pipeline.build import build_loss
    from dualrs.pipeline.networks import Networks
    from dualrs.training.assignment import Assignment, read_assignment
    from dualrs.training.base import train_classifier
    from dualrs.training.images import TrainingImages
    from dualrs.training.noise import parse_levels

    if start is None:
        trainee = Networks().fresh(Reference.parse(network).behind(denoiser), _arguments(network_args), course.seed)
        usual = (3e-3, 0.05)
    else:
        trainee = Networks().going_on(Reference.parse(start).behind(denoiser))
        usual = (2e-5, 0.01)
    rate = usual[0] if rate is None else rate
    course = replace(course, rate=rate, weight_decay=usual[1] if weight_decay is None else weight_decay)
    dataset = replace(shape, data=data).open()
    if sigma_from is None:
        images = TrainingImages(numbered_as(dataset, trainee.classes))
        taught = Assignment(images, parse_levels(sigma, len(images)))
    else:
        taught = read_assignment(sigma_from, dataset, classes=trainee.classes)
    with course.training(out, taught.images, replace(shape, data=test).open(), taught.levels) as training:
        train_classifier(training, trainee, build_loss(loss))


@train_app.command("router")
@spread_out
def router(
    out: Out,
    labels: Annotated[Path, Option(help="The ledger that `dualrs label` wrote.", show_default=False)],
    denoiser: Denoiser = None,
    data: Data = "cifar10:train",
    sigma_e: Annotated[float, _objective(help="Sigma of the router's own noise.")] = 1.0,
    consistency_weight: Annotated[float, _objective(help="Lambda, weight of the KL term.")] = 40.0,
    entropy_weight: Annotated[float, _objective(help="Eta, weight of the entropy.")] = 0.5,
    noise_copies: Annotated[int, _objective(help="Noisy copies of each image in the loss.")] = 2,
    gate: Annotated[str, _objective(help="strong, weak or none: w_r.")] = "strong",
    balanced: Annotated[
        bool | None,
        _objective(help="Weigh every best sigma alike (w_e = 1/q); by default for a classifier, but not for experts."),
    ] = None,
    hard: Annotated[bool, _objective("--hard", help="Hard labels, for comparison.")] = False,
    loss: Annotated[
        str | None,
        _objective(
            help="Your own in place of the paper's: net.py:loss, (logits of shape (copies, images, sigmas), radii of "
            "shape (images, sigmas)) -> one loss per image."
        ),
    ] = None,
    network: Network = "lean-resnet",
    network_args: NetworkArgs = "{}",
    *,
    shape: Shape,
    course: Annotated[
        Course,
        Only("weight_decay", "seed", "device", "dtype", epochs=90, batch_size=256, rate=0.01, halve_every=30),
    ],
) -> None:
    """Train a router (the paper's variance estimator) on the labels that `dualrs label` made.

    Defaults are the paper's for CIFAR-10. Every 20th input with a positive radius is held out to measure the result.
    """
    from dualrs.models.reference import Reference
    from dualrs.pipeline.build import build_loss
    from dualrs.pipeline.networks import Networks
    from dualrs.training.base import train_router
    from dualrs.training.lessons import read_lessons
    from dualrs.training.noise import OneOf
    from dualrs.training.router import RouterObjective

    trainee = Networks().fresh(Reference.parse(network).behind(denoiser), _arguments(network_args), course.seed)
    lessons = read_lessons(labels, replace(shape, data=data).open())
    objective = RouterObjective(
        sigma_e, consistency_weight, entropy_weight, noise_copies, gate,  # type: ignore[arg-type]
        not lessons.experts if balanced is None else balanced, hard, build_loss(loss),
    )  # fmt: skip
    with course.training(out, lessons.images, lessons.held_out, OneOf((sigma_e,))) as training:
        train_router(training, trainee, lessons.radii, lessons.sigmas, objective)


def _arguments(text: str) -> dict[str, Any]:
    try:
        arguments: Any = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadSetting(f"--network-args is not JSON: {error}") from error
    if not isinstance(arguments, dict):
        raise BadSetting(f"--network-args takes a JSON object, such as '{ARGS_OF_CLASSIFIER}'; got {text}")
    return arguments


def _time_of(path: Path) -> int | None:
    return path.stat().st_mtime_ns if path.exists() else None


def _show(out: Path, said: str) -> None:
    from dualrs.models.card import Card
    from dualrs.training.processes import is_main

    if not is_main():
        return
    card = Card.read(out.with_suffix(".json"))
    print(f"{said} {out} ({card.architecture}; {card.cost})")
    for name, value in card.scores.items():
        print(f"  {name}: {value}")
    if [value > 0 for name, value in card.scores.items() if name.startswith("names sigma")].count(True) == 1:
        print(f"  {ONE_SIGMA}")
