"""The options of training commands: how a network is trained and where, and all those of a classifier.

Enters: options. Leaves: a training that a bar shows, and the settings of a classifier as a recipe has them.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from dualrs.cli.device import chosen_device
from dualrs.cli.options import DATA, DEVICE, ENGINE, DataOptions, numbers, this_command
from dualrs.cli.sets import Only
from dualrs.errors import BadSetting

if TYPE_CHECKING:
    from dualrs.data.dataset import Dataset
    from dualrs.training.base import Training
    from dualrs.training.images import TrainingImages
    from dualrs.training.noise import Levels
    from dualrs.training.schedule import Schedule

ONE_SIGMA = "it names one sigma only: a fixed sigma does the same without it; label more images or train longer"

# Options by their group in the help.
data_option, schedule_option, objective_option, engine_option = (
    partial(Option, rich_help_panel=panel) for panel in (DATA, "Training", "Objective", ENGINE)
)
ARGS_OF_DENOISER, ARGS_OF_CLASSIFIER = '{"width": 32}', '{"widths": [24, 48, 96]}'
_NETWORK = "lean-resnet, resnet20, resnet56, resnet110, resnet50 or lipschitz; or your own, net.py:make."
_DENOISER = "The denoiser in front of it, kept as it is: zoo:NAME, PATH.safetensors, ... (see `dualrs models`)."
_SEED = "Seed of the weights, the order and the noise."
_DTYPE = "float32 or bfloat16; by default whichever the device computes faster."
_COMPILE = "Have torch compile the networks: a minute or so at the start, then faster steps."
_OPTIMIZER = "adamw, or sgd with momentum 0.9, which decays all weights and does not clip gradients."
_DROP_AT = "Epochs from which the rate is a tenth of what it was, as 50,100; takes the place of --halve-every."
_IMAGES = "Training images: cifar10:train, folder:PATH, hub:NAME:SPLIT or module:attribute."
METHOD_ARGS = (
    "Settings of the method as JSON, for example '{\"copies\": 4}'; by default those published for the nearest sigma."
)

Out = Annotated[
    Path, Argument(help="Where the weights go, NAME.safetensors; the card goes beside them.", show_default=False)
]
Data = Annotated[str, data_option(help=_IMAGES)]
Test = Annotated[str, data_option(help="Images to measure the result on.")]
Denoiser = Annotated[str | None, Option(help=_DENOISER)]
Network = Annotated[str, schedule_option(help=_NETWORK)]
NetworkArgs = Annotated[str, schedule_option(help=f"Arguments of the network as JSON, such as '{ARGS_OF_CLASSIFIER}'.")]
Shape = Annotated[DataOptions, Only("resize", "crop")]


@dataclass(frozen=True)
class Course:
    """How a denoiser or a router is trained, and where."""

    epochs: Annotated[int, schedule_option()] = 15
    batch_size: Annotated[int, schedule_option()] = 128
    rate: Annotated[float, schedule_option(help="Highest learning rate.")] = 2e-3
    weight_decay: Annotated[float, schedule_option()] = 0.01
    halve_every: Annotated[
        int,
        schedule_option(
            help="Epochs after which the rate halves; 0: it rises for a tenth of the time and then falls to nothing."
        ),
    ] = 0
    optimizer: Annotated[str, schedule_option(help=_OPTIMIZER)] = "adamw"
    drop_at: Annotated[str | None, schedule_option(help=_DROP_AT)] = None
    seed: Annotated[int, schedule_option(help=_SEED)] = 0
    device: Annotated[str | None, engine_option(help=DEVICE)] = None
    dtype: Annotated[str | None, engine_option(help=_DTYPE)] = None
    compile: Annotated[bool, engine_option("--compile", help=_COMPILE)] = False

    @property
    def schedule(self) -> "Schedule":
        """How long and how fast."""
        from dualrs.training.schedule import Schedule

        return Schedule(
            self.epochs, self.batch_size, self.rate, self.weight_decay, self.seed, self.halve_every,
            self.optimizer, tuple(_epochs(self.drop_at) or ()),  # type: ignore[arg-type]
        )  # fmt: skip


@dataclass(frozen=True)
class ClassifierOptions:
    """How a classifier is trained: what is left out is as in the recipe, and by default as it says here."""

    denoiser: Denoiser = None
    start: Annotated[
        str | None,
        Option(
            "--from",
            help="Go on from this network instead of fresh weights: fine-tuning. zoo:NAME, PATH.safetensors, "
            "transformers:FOLDER, module:attribute.",
        ),
    ] = None
    sigma: Annotated[
        str | None,
        Option(
            help="0 is clean; 0.5; one of 0.25,0.5,1.0, which is the default; a range 0.1:1.2; or a .npy file with one "
            "per image."
        ),
    ] = None
    method: Annotated[
        str | None,
        objective_option(
            help="gaussian (noise alone, the default), consistency, smoothadv, macer, smoothmix, cat-rs or easy-focus: "
            "docs/training.md compares them."
        ),
    ] = None
    method_args: Annotated[str | None, objective_option(help=METHOD_ARGS)] = None
    teacher: Annotated[
        str | None, objective_option(help="For cat-rs: a classifier that was trained with noise of sigma 0.25 alone.")
    ] = None
    loss: Annotated[
        str | None,
        objective_option(
            help="Your own in place of cross-entropy: net.py:loss, (logits, labels) -> one loss per image."
        ),
    ] = None
    network: Annotated[str | None, schedule_option(help=f"{_NETWORK} lean-resnet by default.")] = None
    network_args: Annotated[
        str | None, schedule_option(help=f"Arguments of the network as JSON, such as '{ARGS_OF_CLASSIFIER}'.")
    ] = None
    epochs: Annotated[int | None, schedule_option(help="15 by default.")] = None
    batch_size: Annotated[
        int | None,
        schedule_option(
            help="Noisy images in a step, 128 by default: with m noisy copies of each image, a step takes so many / m "
            "images."
        ),
    ] = None
    rate: Annotated[
        float | None, schedule_option(help="Highest learning rate; 3e-3, with --from 2e-5, with sgd 0.1.")
    ] = None
    weight_decay: Annotated[float | None, schedule_option(help="0.05, with --from 0.01, with sgd 1e-4.")] = None
    halve_every: Annotated[
        int | None,
        schedule_option(
            help="Epochs after which the rate halves; 0, the default: it rises for a tenth of the time and then falls "
            "to nothing."
        ),
    ] = None
    optimizer: Annotated[str | None, schedule_option(help=_OPTIMIZER)] = None
    drop_at: Annotated[str | None, schedule_option(help=_DROP_AT)] = None
    device: Annotated[str | None, engine_option(help=DEVICE)] = None
    dtype: Annotated[str | None, engine_option(help=_DTYPE)] = None
    compile: Annotated[bool, engine_option("--compile", help=_COMPILE)] = False

    def section(self) -> dict[str, Any]:
        """The section [classifier] of a recipe."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, example in (("network_args", ARGS_OF_CLASSIFIER), ("method_args", '{"copies": 4}')):
            given[name] = None if given[name] is None else json_object(given[name], name, example)
        return given | {"drop_at": _epochs(self.drop_at), "compile": self.compile or None}


@contextmanager
def shown_training(
    out: Path,
    images: "TrainingImages",
    test: "Dataset",
    levels: "Levels",
    schedule: "Schedule",
    where: Course | ClassifierOptions,
) -> "Iterator[Training]":
    """A training with its command; a bar shows it as long as it is in use, and then its result is printed."""
    from dualrs.cli.training_bar import TrainingBar
    from dualrs.training.base import Training

    before = _time_of(out)
    with TrainingBar(f"training {out.stem}") as bar:
        yield Training(
            out, images, test, levels, schedule,
            recipe=this_command(), device=chosen_device(where.device), dtype=where.dtype, compile=where.compile,
            report=bar.update,
        )  # fmt: skip
    _show(out, "wrote" if _time_of(out) != before else "this training is done already:")


def json_object(text: str, name: str, example: str) -> dict[str, Any]:
    """What an option says in JSON."""
    option = f"--{name.replace('_', '-')}"
    try:
        arguments: Any = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadSetting(f"{option} is not JSON: {error}") from error
    if not isinstance(arguments, dict):
        raise BadSetting(f"{option} takes a JSON object, such as '{example}'; got {text}")
    return arguments


def _epochs(text: str | None) -> list[int] | None:
    given = numbers(text, "--drop-at")
    if given is not None and any(epoch != int(epoch) for epoch in given):
        raise BadSetting(f"--drop-at takes whole epochs, such as 50,100; got {text}")
    return None if given is None else [int(epoch) for epoch in given]


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
