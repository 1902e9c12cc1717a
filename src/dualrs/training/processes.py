"""Several processes that train one network together, a GPU each: thin over accelerate.

Enters: a process that `accelerate launch` or torchrun started among others, or one that is alone. Leaves: its share of
every batch, and means over all processes.

What does not depend on the number of processes: the order of the images, the size of the whole batch, the learning
rate, and the loss, a mean over the whole batch; so gradients are the same up to rounding wherever nothing is drawn at
random. What does: each process draws its own noise, shifts and dropout, the first as one alone would, and batch
normalisation sees a process's share of the batch. Its running statistics are averaged over processes when they are
kept; training does not depend on them.
"""

import atexit
import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module

import torch
from torch import Tensor

from dualrs.errors import BadSetting
from dualrs.extras import need
from dualrs.models.hardware import open_device

_PATIENCE = timedelta(days=2)  # how long the others wait for the one that measures the result
_PURPOSE = "training in several processes"


@dataclass(frozen=True)
class Processes:
    """One of the processes that train together: its device, its number, and how many they are."""

    device: torch.device
    rank: int = 0
    count: int = 1

    @property
    def main(self) -> bool:
        """Whether this one writes and reports."""
        return self.rank == 0

    def share(self, indices: Tensor) -> Tensor:
        """The part of a batch that is this process's."""
        return indices[self.rank :: self.count]

    def mean(self, tensor: Tensor) -> Tensor:
        """Mean over all processes."""
        if self.count == 1:
            return tensor
        mean: Tensor = need("accelerate.utils", "gpus", _PURPOSE).reduce(tensor, "mean")
        return mean

    def average(self, tensors: Iterable[Tensor]) -> None:
        """Put the mean over all processes into each tensor; all of them travel as one."""
        targets = list(tensors)
        if self.count == 1 or not targets:
            return
        flat = torch.cat([t.flatten() for t in targets])
        means = torch.split(self.mean(flat), [t.numel() for t in targets])
        for target, mean in zip(targets, means, strict=True):
            target.copy_(mean.view_as(target))

    def agree(self, sentence: str) -> None:
        """Refuse to go on unless every process says the same."""
        if self.count == 1:
            return
        said = dict.fromkeys(need("accelerate.utils", "gpus", _PURPOSE).gather_object([sentence]))
        if len(said) > 1:
            raise BadSetting(
                "the processes are not about to do the same; start them alike, in a folder that all of them see.\n  "
                + "\n  ".join(said)
            )

    def wait(self) -> None:
        """Until every process is here."""
        if self.count > 1:
            need("accelerate", "gpus", _PURPOSE).PartialState().wait_for_everyone()


def join(device: str | torch.device) -> Processes:
    """Find the processes that were launched with this one, each for a device of this kind; or none."""
    launched = _launched()
    if launched == 1:
        return Processes(open_device(device))
    kind = str(device).partition(":")[0]
    # Functions there keep the group that they find when imported, and its threads, as a default: let them find none.
    import_module("torch.distributed.nn.functional")
    state = need("accelerate", "gpus", _PURPOSE).PartialState(cpu=kind == "cpu", timeout=_PATIENCE)
    atexit.register(_leave)
    if state.num_processes != launched or state.device.type != kind:
        raise BadSetting(
            f"{launched} processes were launched, which cannot train together on {device} here; use cuda if there is "
            "a GPU for each, or cpu"
        )
    return Processes(open_device(state.device), state.process_index, state.num_processes)


def _leave() -> None:
    """End the threads that processes talk through: left to the interpreter's end, they may abort it."""
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def is_main() -> bool:
    """Whether this process writes and reports; asked without waiting for the others."""
    return alone() or os.environ.get("RANK", "0") == "0"


def alone() -> bool:
    """Whether this process was launched without others."""
    return _launched() == 1


def _launched() -> int:
    return int(os.environ.get("WORLD_SIZE", "1"))
