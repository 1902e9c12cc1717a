"""What a job needs of a model: networks at their sigmas, something that counts their votes, and the kind of run."""

from collections.abc import Mapping
from typing import Any, Protocol

from dualrs.models.noisy import NoisyModel
from dualrs.sampling.work import Counting, Slot
from dualrs.schemes import Scheme


class Model(Protocol):
    """The side of a smoothed model that a job sees."""

    engine: Counting

    @property
    def models(self) -> Mapping[Slot, NoisyModel]:
        """The network that votes at each stage and sigma."""

    @property
    def scheme(self) -> Scheme[Any]:
        """The kind of run; known in full once the networks were tried."""
