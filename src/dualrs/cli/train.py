"""The commands that train networks: train denoiser, train classifier, train router."""

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option, Typer

from dualrs.errors import BadSetting

if TYPE_CHECKING:
    from dualrs.config import DataSection
    from dualrs.data.dataset import Dataset
    from dualrs.models.card import Card
    from dualrs.training.base import Training
    from dualrs.training.images import TrainingImages
    from dualrs.training.loop import Schedule
    from dualrs.training.noise import Levels

train_app = Typer(no_args_is_help=True, help="Train networks: a denoiser, a classifier, a router.")

_TRAINING, _OBJECTIVE, _ENGINE = "Training", "Objective", "Engine"
Out = Annotated[
    Path, Argument(help="Where the weights go, NAME.safetensors; the card goes beside them.", show_default=False)
]
Data = Annotated[str, Option(help="Training images: cifar10:train, folder:PATH, hub:NAME:SPLIT or module:attribute.")]
Test = Annotated[str, Option(help="Images to measure the result on.")]
Resize = Annotated[int | None, Option(help="Resize images of folders and hubs: pixels of the shorter side.")]
Crop = Annotated[int | None, Option(help="Then take the central square of this side.")]
Behind = Annotated[
    str | None,
    Option(help="The denoiser in front of it, kept as it is: zoo:NAME, PATH.safetensors, ... (see `dualrs models`)."),
]
Network = Annotated[
    str,
    Option(
        help="lean-resnet, resnet20, resnet56, resnet110 or resnet50; or your own, as net.py:make.",
        rich_help_panel=_TRAINING,
    ),
]
Shape = Annotated[
    str, Option(help="Arguments of the network as JSON, such as '{\"width\": 32}'.", rich_help_panel=_TRAINING)
]
Epochs = Annotated[int, Option(rich_help_panel=_TRAINING)]
BatchSize = Annotated[int, Option(rich_help_panel=_TRAINING)]
Rate = Annotated[float, Option(help="Highest learning rate of AdamW.", rich_help_panel=_TRAINING)]
HalveEvery = Annotated[
    int,
    Option(
        help="Epochs after which the rate halves; 0: it rises for a tenth of the time and then falls to nothing.",
        rich_help_panel=_TRAINING,
    ),
]
Decay = Annotated[float, Option("--weight-decay", rich_help_panel=_TRAINING)]
Seed = Annotated[int, Option(help="Seed of the weights, the order and the noise.", rich_help_panel=_TRAINING)]
Device = Annotated[str, Option(help="cpu, cuda or mps.", rich_help_panel=_ENGINE)]
Dtype = Annotated[
    str | None,
    Option(help="float32 or bfloat16; by default whichever the device computes faster.", rich_help_panel=_ENGINE),
]


@train_app.command("denoiser")
def denoiser(
    out: Out,
    data: Data = "cifar10:train",
    test: Test = "cifar10:test",
    resize: Resize = None,
    crop: Crop = None,
    sigma: Annotated[str, Option(help="Sigmas: LOW:HIGH, or some, as 0.25,0.5,1.0.")] = "0.05:1.5",
    network: Annotated[
        str, Option(help="lean-unet, or unet2d (of diffusers).", rich_help_panel=_TRAINING)
    ] = "lean-unet",
    shape: Shape = "{}",
    epochs: Epochs = 12,
    batch_size: BatchSize = 128,
    rate: Rate = 2e-3,
    weight_decay: Decay = 0.01,
    seed: Seed = 0,
    device: Device = "cpu",
    dtype: Dtype = None,
) -> None:
    """Train a denoiser that is told the sigma, over a range of them.

    Stop it at any time; the same command goes on where it was.
    """
    from dualrs.build import build_data
    from dualrs.models.card import Architecture
    from dualrs.training.base import train_denoiser
    from dualrs.training.images import TrainingImages
    from dualrs.training.loop import Schedule
    from dualrs.training.noise import parse_levels

    images = TrainingImages(build_data(_section(data, resize, crop)))
    schedule = Schedule(epochs, batch_size, rate, weight_decay, seed)
    levels = parse_levels(sigma, len(images))
    tested = build_data(_section(test, resize, crop))
    with _training(out, images, tested, levels, schedule, device, dtype) as training:
        card = train_denoiser(training, Architecture(network=network, arguments=_arguments(shape)))
    _show(out, card)


@train_app.command("classifier")
def classifier(
    out: Out,
    behind: Behind = None,
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
    resize: Resize = None,
    crop: Crop = None,
    sigma: Annotated[
        str,
        Option(help="0 is clean; 0.5; one of 0.25,0.5,1.0; a range 0.1:1.2; or a .npy file with one per image."),
    ] = "0.25,0.5,1.0",
    sigma_from: Annotated[
        Path | None,
        Option(help="Instead: the ledger that `dualrs assign` wrote. Its inputs are trained on, each at its sigma."),
    ] = None,
    network: Network = "lean-resnet",
    shape: Shape = "{}",
    epochs: Epochs = 15,
    batch_size: BatchSize = 128,
    rate: Annotated[
        float | None,
        Option(help="Highest learning rate of AdamW; 3e-3, or with --from 2e-5.", rich_help_panel=_TRAINING),
    ] = None,
    weight_decay: Annotated[
        float | None, Option("--weight-decay", help="0.05, or with --from 0.01.", rich_help_panel=_TRAINING)
    ] = None,
    halve_every: HalveEvery = 0,
    seed: Seed = 0,
    device: Device = "cpu",
    dtype: Dtype = None,
) -> None:
    """Train a classifier on clean, on noisy or (with --behind) on denoised images.

    Stop it at any time; the same command goes on where it was.

    Fine-tune: `dualrs train classifier tuned.safetensors --behind zoo:cifar10-denoiser --from zoo:cifar10-classifier
    --sigma-from assigned.ledger`
    """
    from dualrs.build import Networks, build_data, fresh_network, known_network
    from dualrs.training.assignment import Assignment, read_assignment
    from dualrs.training.base import train_classifier
    from dualrs.training.images import TrainingImages
    from dualrs.training.loop import Schedule
    from dualrs.training.noise import parse_levels

    networks = Networks()
    front = None if behind is None else networks(behind)
    if start is None:
        architecture, begun = fresh_network(network, _arguments(shape), seed)
    else:
        architecture, begun = known_network(start), networks(start)
    dataset = build_data(_section(data, resize, crop))
    if sigma_from is None:
        images = TrainingImages(dataset)
        taught = Assignment(images, parse_levels(sigma, len(images)))
    else:
        taught = read_assignment(sigma_from, dataset)
    schedule = Schedule(
        epochs,
        batch_size,
        rate or (3e-3 if start is None else 2e-5),
        (0.05 if start is None else 0.01) if weight_decay is None else weight_decay,
        seed,
        halve_every,
    )
    tested = build_data(_section(test, resize, crop))
    with _training(out, taught.images, tested, taught.levels, schedule, device, dtype) as training:
        card = train_classifier(training, architecture, front, start=begun)
    _show(out, card)


@train_app.command("router")
def router(
    out: Out,
    labels: Annotated[Path, Option(help="The ledger that `dualrs label` wrote.", show_default=False)],
    behind: Behind = None,
    data: Data = "cifar10:train",
    resize: Resize = None,
    crop: Crop = None,
    sigma_e: Annotated[float, Option(help="Sigma of the router's own noise.", rich_help_panel=_OBJECTIVE)] = 1.0,
    consistency: Annotated[float, Option(help="Lambda, weight of the KL term.", rich_help_panel=_OBJECTIVE)] = 40.0,
    entropy: Annotated[float, Option(help="Eta, weight of the entropy.", rich_help_panel=_OBJECTIVE)] = 0.5,
    copies: Annotated[int, Option(help="Noisy copies of each image in the loss.", rich_help_panel=_OBJECTIVE)] = 2,
    gate: Annotated[str, Option(help="strong, weak or none: w_r.", rich_help_panel=_OBJECTIVE)] = "strong",
    balance: Annotated[
        bool | None,
        Option(
            "--balance/--no-balance",
            help="Weigh every best sigma alike (w_e = 1/q); by default so, but not for experts.",
            rich_help_panel=_OBJECTIVE,
        ),
    ] = None,
    hard: Annotated[bool, Option("--hard", help="Hard labels, for comparison.", rich_help_panel=_OBJECTIVE)] = False,
    network: Network = "lean-resnet",
    shape: Shape = "{}",
    epochs: Epochs = 90,
    batch_size: BatchSize = 256,
    rate: Rate = 0.01,
    weight_decay: Decay = 0.01,
    halve_every: HalveEvery = 30,
    seed: Seed = 0,
    device: Device = "cpu",
    dtype: Dtype = None,
) -> None:
    """Train a router (the paper's variance estimator) on the labels that `dualrs label` made.

    Defaults are the paper's for CIFAR-10. Every 20th input with a positive radius is held out to measure the result.
    """
    from dualrs.build import Networks, build_data, fresh_network
    from dualrs.training.base import train_router
    from dualrs.training.lessons import read_lessons
    from dualrs.training.loop import Schedule
    from dualrs.training.noise import OneOf
    from dualrs.training.router import RouterObjective

    front = None if behind is None else Networks()(behind)
    architecture, begun = fresh_network(network, _arguments(shape), seed)
    lessons = read_lessons(labels, build_data(_section(data, resize, crop)))
    balanced = not lessons.experts if balance is None else balance
    objective = RouterObjective(sigma_e, consistency, entropy, copies, gate, balanced, hard)  # type: ignore[arg-type]
    schedule = Schedule(epochs, batch_size, rate, weight_decay, seed, halve_every)
    levels = OneOf((sigma_e,))
    with _training(out, lessons.images, lessons.held_out, levels, schedule, device, dtype) as training:
        card = train_router(training, architecture, lessons.radii, objective, front, start=begun)
    _show(out, card)


@contextmanager
def _training(
    out: Path,
    images: "TrainingImages",
    test: "Dataset",
    levels: "Levels",
    schedule: "Schedule",
    device: str,
    dtype: str | None,
) -> "Iterator[Training]":
    """A training with a bar on the terminal as long as it is in use."""
    from dualrs.cli.progress import TrainingBar
    from dualrs.models.hardware import keep_memory
    from dualrs.training.base import Training

    keep_memory()
    with TrainingBar(f"training {out.stem}") as bar:
        yield Training(
            out=out,
            images=images,
            test=test,
            levels=levels,
            schedule=schedule,
            recipe=shlex.join(["dualrs", *sys.argv[1:]]),
            device=device,
            dtype=dtype,
            report=bar.update,
        )


def _section(source: str, resize: int | None, crop: int | None) -> "DataSection":
    from dualrs.config import DataSection

    return DataSection(source=source, resize=resize, crop=crop)


def _arguments(shape: str) -> dict[str, Any]:
    try:
        arguments: Any = json.loads(shape)
    except json.JSONDecodeError as error:
        raise BadSetting(f"--shape is not JSON: {error}") from error
    if not isinstance(arguments, dict):
        raise BadSetting(f"--shape takes a JSON object, such as '{{\"width\": 32}}'; got {shape}")
    return arguments


def _show(out: Path, card: "Card") -> None:
    from dualrs.training.processes import is_main

    if not is_main():
        return
    print(f"wrote {out} ({card.architecture}; {card.cost})")
    for name, value in card.scores.items():
        print(f"  {name}: {value}")
