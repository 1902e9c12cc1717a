"""The auxiliary stream: numbers that a network draws for itself, addressed by the vote that it draws them for.

Enters: votes, by the address of their noise and their number. Leaves: `Randomness` of a batch, row by row.

*Addressed*, as the noise is (see `noise`): what a vote draws depends on its address alone, never on the place in a
batch, on other votes, the shard, or what was drawn before. The name of the stream stands before the address of the
noise in what is hashed to the key, so it shares no state with the noise; the number of the vote is the top word of the
counter and the number of the draw the next one, so no two votes share a state, and no two draws of a vote.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dualrs.data.images import LEVELS, Pixels
from dualrs.errors import BadModel
from dualrs.sampling.noise import NoiseSource, draw_integers, key_of
from dualrs.votes import Stream

RANDOMNESS = "auxiliary philox-4x64 1"  # named in the ledger of every run whose networks draw: see `noise.NOISE`

_SIGMA = 2.0  # normal numbers are drawn as integer noise of this sigma, so in steps of 1 / 510
_UNIFORM_BITS = 24  # of a float32


class Vote(NamedTuple):
    """What a vote draws from: the key of its stream on its input, and its number there."""

    key: NDArray[np.uint64]
    number: int


def votes_of(source: NoiseSource, input_id: str, image: Pixels, stream: Stream, first: int, last: int) -> list[Vote]:
    """Votes number ``first`` to ``last`` (exclusive) of a stream on an input."""
    key = key_of(f"{RANDOMNESS}\0{source.address(input_id, image, stream)}")
    return [Vote(key, number) for number in range(first, last)]


class VoteRandomness:
    """The `Randomness` of a batch: row i is drawn from vote i, and from nothing else.

    Guarantee: what two votes draw is as independent as two keys or two counters of Philox make it, and so are a vote's
    draws and its noise; a vote draws the same in any batch.
    Assumes: votes of a batch are different ones, but for padding, which is not counted; a network uses row i for image
    i alone, which `preflight` tests.
    """

    def __init__(self, votes: Sequence[Vote], device: torch.device) -> None:
        self._votes, self._device, self._draws = votes, device, 0

    def rand(self, *size: int) -> Tensor:
        """Uniform numbers in [0, 1): multiples of 2^-24."""
        each = self._per_vote(size)
        words = np.stack([philox.random_raw(-(-each // 2)) for philox in self._generators()])
        bits = words.astype("<u8", copy=False).view("<u4")[:, :each] >> (32 - _UNIFORM_BITS)
        return self._given(bits.astype(np.float32) * np.float32(2.0**-_UNIFORM_BITS), size)

    def randn(self, *size: int) -> Tensor:
        """Standard normal numbers, rounded to multiples of 1 / 510."""
        rows = np.empty((len(self._votes), self._per_vote(size)), dtype=np.float32)
        for row, philox in zip(rows, self._generators(), strict=True):
            row[:] = draw_integers(philox, _SIGMA, len(row), philox)
        rows /= np.float32(LEVELS * _SIGMA)
        return self._given(rows, size)

    def _per_vote(self, size: tuple[int, ...]) -> int:
        """How many numbers each vote draws; refuses a size in which votes would share them."""
        if not size or size[0] != len(self._votes):
            raise BadModel(
                f"a network draws numbers of size {size} for a batch of {len(self._votes)}: images may not share them. "
                "Give the batch as the first dimension, as in randomness.randn(len(x), ...)"
            )
        return int(np.prod(size[1:]))

    def _generators(self) -> Iterator[np.random.Philox]:
        """For each vote in turn one generator in the state of that vote, which is quicker than to make another."""
        philox = np.random.Philox(key=0)
        state: Any = philox.state
        draw, self._draws = self._draws, self._draws + 1
        for vote in self._votes:
            state["state"] = {"key": vote.key, "counter": np.array([0, 0, draw, vote.number], dtype=np.uint64)}
            philox.state = state
            yield philox

    def _given(self, rows: NDArray[np.float32], size: tuple[int, ...]) -> Tensor:
        return torch.from_numpy(rows).view(size).to(self._device)
