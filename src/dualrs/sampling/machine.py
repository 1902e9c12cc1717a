"""The machine: where networks run, in which number format and shape of batches, and where its memory ends.

Enters: networks, and integer pixels plus noise. Leaves: networks on their device, compiled if they can be, and float
images for them.
"""

import warnings
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from copy import copy
from typing import TypedDict

import torch
from torch import Tensor

from dualrs.data.images import LEVELS
from dualrs.errors import BadSetting, NotCompiled, OutOfMemory, first_line
from dualrs.models.compiled import compile_parts
from dualrs.models.hardware import autocast, check_dtype, is_out_of_memory, open_device
from dualrs.models.noisy import NoisyModel
from dualrs.sampling.noise import Int16s

BATCH_SIZE = 256  # by default, and at most
CACHE = 4 << 20  # bytes that a layer may leave of a batch on one thread of a CPU; of several each has half as many
LEAST = 4  # images in a batch by default
_MOST_AT_ONCE = 8  # batches: Python has to keep all of them going


class EngineSettings(TypedDict, total=False):
    """How networks are run: see `Machine`."""

    batch_size: int | None
    device: str | torch.device | None
    dtype: str
    compile: bool
    threads: int | None


class Machine:
    """Runs networks on one device, in one number format, on batches of one shape.

    The networks are moved there; with ``compile``, torch compiles them in place. ``batch_size`` may shrink until they
    fit, unless it is ``fixed``; without one there is a default, on a CPU one that suits the networks. ``threads`` are
    those of the processor that torch may use: by default as many as it does, or one for networks so small that more
    would wait for one another. Images are ``channels_last`` in memory, and several batches run ``at_once``, where that
    suits the networks.
    """

    def __init__(
        self,
        models: Collection[NoisyModel],
        *,
        batch_size: int | None = None,
        device: str | torch.device | None = None,
        dtype: str = "float32",
        compile: bool = False,
        threads: int | None = None,
    ) -> None:
        for name, value in (("batch size", batch_size), ("number of threads", threads)):
            if value is not None and value < 1:
                raise BadSetting(f"the {name} must be at least 1, got {value}")
        self.threads, self.noise_threads = threads, threads or torch.get_num_threads()
        self.batch_size, self.fixed = batch_size or BATCH_SIZE, False
        self.asked_size = batch_size
        self.dtype = check_dtype(dtype)
        self.device = _choose_device(device, models)
        self.compile = compile
        self.channels_last, self.at_once = False, 1
        self._eager = False  # ignore what is compiled, as torch cannot do it here
        for module in {model.module for model in models}:
            module.to(self.device)
            if compile:
                compile_parts(module)

    @property
    def suits_networks(self) -> bool:
        """Whether the batch size is free to suit the networks: a CPU's, unless somebody asked for one."""
        return self.device.type == "cpu" and self.asked_size is None and not self.fixed

    @property
    def most_at_once(self) -> int:
        """How many batches may run at once, each on its share of the threads; compiled networks run one at a time."""
        return min(self.noise_threads, _MOST_AT_ONCE) if self.device.type == "cpu" and not self.compile else 1

    def share_of(self, batches: int) -> int:
        """The threads that each of so many batches has."""
        return self.noise_threads // batches

    def suit(self, widest: int) -> None:
        """Halve the batch size until what a layer leaves of a batch, so many bytes an image, stays in the cache."""
        cache = max(CACHE, CACHE * self.share_of(self.most_at_once) // 2)
        while self.batch_size > LEAST and self.batch_size * widest > cache:
            self.batch_size //= 2

    def images(self, rows: Int16s, shape: tuple[int, ...]) -> Tensor:
        """Integer pixels plus noise, (batch, pixels), as float images in [0, 1] units on the device."""
        images = torch.from_numpy(rows).to(self.device).view(-1, *shape).float().div_(LEVELS)
        return images.contiguous(memory_format=torch.channels_last) if self.channels_last else images

    @contextmanager
    def inference(self, threads: int | None = None) -> Iterator[None]:
        """No gradients; reduced precision if asked for; so many threads, if they are not those of the machine."""
        compiler = torch.compiler.set_stance("force_eager") if self._eager else nullcontext()
        with torch.inference_mode(), autocast(self.device, self.dtype), compiler, on_threads(threads or self.threads):
            yield

    @contextmanager
    def settled(self, threads: int | None = None) -> Iterator[None]:
        """Inference once the networks have fitted: says in a sentence if memory runs out nevertheless."""
        try:
            with self.inference(threads):
                yield
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise OutOfMemory(
                "memory ran out in the middle of a run; what was recorded is kept: free memory and run the same "
                "command again"
            ) from error

    def beside(self, others: Iterable["Machine"]) -> "Machine":
        """The same machine for networks that see the same images as those of others: as suits all of them."""
        shared, machines = copy(self), [self, *others]
        shared.channels_last = all(machine.channels_last for machine in machines)
        shared.at_once = min(machine.at_once for machine in machines)
        return shared

    def do_without_compiler(self, name: str, error: Exception) -> None:
        """Run networks as they are from here on, because torch cannot compile one of them."""
        self.compile, self._eager = False, True
        warnings.warn(
            NotCompiled(f"torch cannot compile the {name} here ({first_line(error)}); networks run as they are"),
            stacklevel=2,
        )


@contextmanager
def on_threads(threads: int | None) -> Iterator[None]:
    """Have torch use so many threads of the processor; None leaves it as it is."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _choose_device(device: str | torch.device | None, models: Collection[NoisyModel]) -> torch.device:
    if device is not None:
        return open_device(device)
    devices = {m.device for m in models}
    if len(devices) > 1:
        raise BadSetting(f"the networks are on different devices ({', '.join(map(str, devices))}); pass device=...")
    return devices.pop()
