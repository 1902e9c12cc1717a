"""The engine: the networks of a model, made ready to vote in this process.

Enters: networks by stage and sigma, and how they are to run; an image to try them on. Leaves: what a run has to know of
them, and `count`, which counts for one engine or for several.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Unpack

from dualrs.data.images import Pixels
from dualrs.models.noisy import NoisyModel
from dualrs.sampling.counting import count
from dualrs.sampling.identity import identify
from dualrs.sampling.machine import EngineSettings, Machine
from dualrs.sampling.noise import NOISE, SHARED, NoiseSource
from dualrs.sampling.preflight import preflight
from dualrs.sampling.work import Slot, Work
from dualrs.votes import Stage, Stream


class Engine:
    """Runs networks on noisy copies of images, for their answers to be counted.

    ``models`` maps (stage, sigma) to the network that votes there. ``batch_size`` is settled at first use: the networks
    have to fit into memory, and by default into the cache of a CPU. It is the shape of every batch from then on. With
    ``share``, an expert at the router's sigma votes on the router's own noisy copies, which are then drawn and denoised
    once for both. With ``compile``, torch compiles the networks in place.
    """

    def __init__(
        self, models: Mapping[Slot, NoisyModel], *, share: bool = True, **machine: Unpack[EngineSettings]
    ) -> None:
        self.models = dict(models)
        self.machine = Machine(self.models.values(), **machine)
        routers = [sigma for stage, sigma in self.models if stage is Stage.ROUTER]
        self._shared = next((s for s in routers if share and (Stage.CLASS, s) in self.models), None)
        self.dtype, self.device = self.machine.dtype, self.machine.device
        self.answers: dict[Slot, int] = {}

    @property
    def batch_size(self) -> int:
        """The shape of every batch."""
        return self.machine.batch_size

    @property
    def asked_size(self) -> int | None:
        """The batch size that was asked for, if any."""
        return self.machine.asked_size

    @property
    def compile(self) -> bool:
        """Whether torch compiles the networks."""
        return self.machine.compile

    @property
    def noise(self) -> str:
        """The name of the noise: its algorithm, and whether the stages share it."""
        return NOISE if self._shared is None else NOISE + SHARED

    def noise_of(self, stream: Stream) -> Stream:
        """The stream whose noise a stream votes on: its own or, where they share, the router's."""
        return replace(stream, stage=Stage.ROUTER) if stream.sigma == self._shared else stream

    def keep_shape(self, batch_size: int) -> None:
        """Take the batch size of others, or of a run that was begun earlier; it must fit."""
        self.machine.batch_size, self.machine.fixed = batch_size, True
        self.answers = {}

    def keep_noise(self, noise: str) -> None:
        """Share no copies if a run that was begun earlier does not."""
        if not noise.endswith(SHARED):
            self._shared = None

    def prepare(self, pixels: Pixels) -> None:
        """Preflight on one image, once: settle the batch size, learn the number of answers, refuse misuse."""
        if not self.answers:
            self.answers = preflight(self.machine, self.models, pixels)

    def identify(self, first: Pixels) -> dict[Slot, str]:
        """For each stage and sigma a hash of what its network answers to trial copies of this and of fixed images."""
        self.prepare(first)
        return identify(self.machine, self.models, self.answers, first)

    @property
    def counter(self) -> Callable[[Sequence["Engine"], Work, NoiseSource], None]:
        """What counts for it, alone or beside others: `count`."""
        return count
