"""Schedules: how long a network is trained, how fast, and by which optimizer.

Enters: settings. Leaves: the rate of every step, the optimizer of a network, and whether a checkpoint holds its state.
"""

from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from dualrs.errors import BadModel, BadSetting

Optimizer = Literal["adamw", "sgd"]

_WARM_UP = 0.1  # share of the steps
_DROP = 0.1  # what a rate is multiplied with at each epoch of ``drop_at``
_MOMENTUM = 0.9
_CLIP = 1.0  # norm of the gradient; methods that were published with plain SGD do not clip
_LATER = ("optimizer", "drop_at")  # settings that came later: a training without them is known by its old name


@dataclass(frozen=True)
class Schedule:
    """How long, how fast, by which optimizer and from which seed."""

    epochs: int = 20
    batch_size: int = 128
    rate: float = 2e-3
    weight_decay: float = 0.02
    seed: int = 0
    halve_every: int = 0  # epochs; at 0 the rate rises for a tenth of the time and then falls linearly to nothing
    optimizer: Optimizer = "adamw"
    drop_at: tuple[int, ...] = ()  # in place of that: epochs from which the rate is a tenth of what it was

    def __post_init__(self) -> None:
        if (
            min(self.epochs, self.batch_size - 1) < 1
            or not self.rate > 0
            or min(self.weight_decay, self.seed, self.halve_every, *self.drop_at, 0) < 0
        ):
            raise BadSetting(f"epochs, batch size and rate must be positive, and nothing negative; got {self}")
        if self.optimizer not in ("adamw", "sgd"):
            raise BadSetting(f"unknown optimizer {self.optimizer!r}; choose one of adamw, sgd")

    @property
    def settings(self) -> dict[str, Any]:
        """What tells this schedule from others, in the words of the cards that there are."""
        unset = {f.name for f in fields(self) if f.name in _LATER and getattr(self, f.name) == f.default}
        return {name: value for name, value in asdict(self).items() if name not in unset}

    @property
    def clip(self) -> float:
        """The largest norm that a gradient keeps."""
        return _CLIP if self.optimizer == "adamw" else float("inf")

    def of_copies(self, copies: int) -> "Schedule":
        """The same for so many noisy copies of each image: a batch holds fewer images, and an epoch more steps."""
        if copies == 1:
            return self
        images, left = divmod(self.batch_size, copies)
        if left or images < 2:
            raise BadSetting(
                f"a batch of {self.batch_size} noisy images cannot be made of {copies} copies of each of two images or "
                f"more; give a batch size that {copies} divides"
            )
        return replace(self, batch_size=images)

    def steps_per_epoch(self, images: int) -> int:
        """Whole batches in so many images; none are too few."""
        if images < self.batch_size:
            raise BadSetting(
                f"{images} images do not fill one batch of {self.batch_size}; take a smaller batch size, or more images"
            )
        return images // self.batch_size

    def rate_at(self, step: int, steps_per_epoch: int) -> float:
        """The learning rate of a step, counted from 0."""
        epoch = step // steps_per_epoch
        if self.drop_at:
            return self.rate * _DROP ** sum(epoch >= drop for drop in self.drop_at)
        if self.halve_every:
            return self.rate * 0.5 ** (epoch // self.halve_every)
        share = (step + 1) / (self.epochs * steps_per_epoch + 1)
        return self.rate * min(share / _WARM_UP, (1 - share) / (1 - _WARM_UP))

    def optimizer_of(self, network: nn.Module) -> torch.optim.Optimizer:
        """The optimizer of a network's parameters.

        With AdamW biases and normalisation do not decay; with SGD, as the field trains, everything does.
        """
        parameters = [p for p in network.parameters() if p.requires_grad]
        if not parameters:
            raise BadModel("the network has nothing to train: none of its parameters takes a gradient")
        if self.optimizer == "sgd":
            return torch.optim.SGD(parameters, lr=self.rate, momentum=_MOMENTUM, weight_decay=self.weight_decay)
        groups = [
            {"params": [p for p in parameters if p.ndim > 1], "weight_decay": self.weight_decay},
            {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(groups, lr=self.rate)


def form(value: object) -> object:
    """What must be equal for one state to take the place of another: names, and shapes and types of numbers."""
    match value:
        case Tensor():
            return value.shape, value.dtype, value.layout, value.device.type == "meta"
        case dict():
            return {name: form(held) for name, held in value.items()}
        case _:
            return type(value)


def are_moments(states: object, optimizer: torch.optim.Optimizer) -> bool:
    """Whether these are what an optimizer keeps of some of its parameters, by their numbers."""
    parameters = [p.detach() for group in optimizer.param_groups for p in group["params"]]
    if not isinstance(states, dict) or not all(type(place) is int for place in states):
        return False
    if not all(0 <= place < len(parameters) for place in states):
        return False
    return all(form(state) == _kept(optimizer, parameters[place]) for place, state in states.items())


def _kept(optimizer: torch.optim.Optimizer, parameter: Tensor) -> dict[str, object]:
    if isinstance(optimizer, torch.optim.SGD):
        return {"momentum_buffer": form(parameter)}
    return {"step": form(torch.tensor(0.0)), "exp_avg": form(parameter), "exp_avg_sq": form(parameter)}
