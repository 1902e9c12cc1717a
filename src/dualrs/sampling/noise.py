"""The noise stream: integer Gaussian noise, addressed, the same on every machine.

Enters: a purpose and a seed, an input's id and pixels, a stream, a block number. Leaves: ``Z = round(255 * d)`` for
d ~ N(0, sigma^2), one int16 per pixel, for the `BLOCK` noisy copies of that block.

*Addressed*: noise depends on its address alone, never on the place in a batch, the order of inputs, the shard
or what was drawn before. The address is hashed to the 128-bit key of a Philox generator, and the block number
is the top word of its counter, so no two blocks share a state. The pixels are part of the address: an image that is
changed to suit the noise gets other noise.

*Integer*: images are 8-bit, ``x = k / 255``, so ``round(255 * (x + d)) = k + Z`` exactly and a network that
reads ``(k + Z) / 255`` is a genuine function of ``x + d``. The theory then applies to it without a word about
floating point (docs/guarantees.md). Z comes by inversion from a table of the normal distribution function of
62 bits: the law of each pixel is within ``sigma * 2^-50`` of the exact one in total variation.
"""

import hashlib
import secrets
from dataclasses import dataclass, replace
from functools import lru_cache
from math import isqrt

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import NDArray

from dualrs.data.images import LEVELS, Pixels, content_id
from dualrs.errors import BadSetting
from dualrs.votes import BLOCK, Purpose, Stage, Stream

NOISE = "integer-gaussian philox-4x64 2"  # named in every ledger: another algorithm is another run
FIRST_NOISE = "integer-gaussian philox-4x64 1"  # by the input's id alone: read and drawn again, never for new votes
SHARED = ", shared at sigma_e"  # after the name: the expert at the router's sigma votes on the router's copies
LARGEST_SIGMA = 8.0

_TABLE_BITS, _GUIDE_BITS = 62, 16
_FINER_BITS = _TABLE_BITS - _GUIDE_BITS
_REACH = 9  # standard deviations; what lies beyond has probability < 2^-61
_UNDECIDED = np.iinfo(np.int16).min
_CHUNK = 1 << 15  # elements that stay in the cache between the steps

Int16s = NDArray[np.int16]


def check_sigma(sigma: float, name: str = "sigma") -> float:
    """Refuse a standard deviation that no noise can be drawn for."""
    if not 0 < sigma <= LARGEST_SIGMA:
        raise BadSetting(
            f"{name} must be positive and at most {LARGEST_SIGMA:g}, in units of pixel values in [0, 1]; got {sigma}"
        )
    return float(sigma)


def fresh_seed() -> int:
    """A seed of 128 bits that nobody knows yet."""
    return secrets.randbits(128)


@dataclass(frozen=True)
class NoiseSource:
    """Where the noise of a run comes from: what it is for, and a seed.

    ``by_name`` leaves purpose and pixels out of the address, as `FIRST_NOISE` did.
    """

    purpose: Purpose
    seed: int
    by_name: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.seed, int | np.integer) or isinstance(self.seed, bool):
            raise BadSetting(f"the seed must be a whole number, got {self.seed!r}")

    def address(self, input_id: str, image: Pixels, stream: Stream) -> str:
        """What the noise of a stream on an input is drawn from; the id comes last, as it may hold anything."""
        words = (str(self.seed), stream.stage, stream.part, stream.sigma.hex(), input_id)
        return "\0".join(words if self.by_name else (self.purpose, content_id(image), *words))


def draw_block(
    source: NoiseSource, input_id: str, image: Pixels, stream: Stream, block: int, copies: int = BLOCK
) -> Int16s:
    """Integer noise for the first copies of one block, shape (copies, pixels); none at sigma 0."""
    if stream.sigma == 0:
        return np.broadcast_to(np.int16(0), (copies, image.size))
    key = key_of(source.address(input_id, image, stream))
    philox = _generator(key, [0, 0, 0, block])
    # The bits that decide come after the guides of a whole block, also where some of its copies are not wanted.
    finer = philox if copies == BLOCK else _from_word(key, _guides(BLOCK * image.size), block)
    return draw_integers(philox, stream.sigma, copies * image.size, finer).reshape(copies, image.size)


class _Key(ISeedSequence):
    """A key as NumPy asks for it; where it is given as ``key=``, NumPy first asks the system for a random one."""

    def __init__(self, words: NDArray[np.uint64]) -> None:
        self._words = words

    def generate_state(self, n_words: int, dtype: object = np.uint64) -> NDArray[np.uint64]:
        return self._words


def _generator(key: NDArray[np.uint64], counter: list[int]) -> np.random.Philox:
    """A generator of this key of two words, at this place."""
    return np.random.Philox(_Key(key), counter=counter)  # type: ignore[arg-type]  # any ISeedSequence will do


def _from_word(key: NDArray[np.uint64], word: int, block: int) -> np.random.Philox:
    """A generator that goes on at some word of a block; a step of the counter gives four."""
    philox = _generator(key, [word // 4, 0, 0, block])
    philox.random_raw(word % 4)
    return philox


def noise_stream(stream: Stream, noise: str, router_sigma: float | None) -> Stream:
    """The stream whose noise a stream votes on, in a run whose noise has this name: its own, or the router's."""
    shared = noise.endswith(SHARED) and stream.sigma == router_sigma
    return replace(stream, stage=Stage.ROUTER) if shared else stream


def key_of(address: str) -> NDArray[np.uint64]:
    """The key of a generator for an address, shape (2,)."""
    return np.frombuffer(hashlib.blake2b(address.encode(), digest_size=16).digest(), dtype="<u8")


def _guides(size: int) -> int:
    """Words that so many numbers are looked up by, each by 16 bits."""
    return -(-size // 4)


def draw_integers(philox: np.random.Philox, sigma: float, size: int, finer: np.random.Philox) -> Int16s:
    """So many numbers round(255 * d), d ~ N(0, sigma^2), from a generator; ``finer`` decides where 16 bits do not."""
    table = _table(sigma)
    guide = philox.random_raw(_guides(size)).astype("<u8", copy=False).view("<u2")[:size]
    noise = np.empty(size, dtype=np.int16)
    for start in range(0, size, _CHUNK):
        np.take(table.guide, guide[start : start + _CHUNK], out=noise[start : start + _CHUNK], mode="wrap")
    # Where 16 bits do not decide, 46 more do.
    open_ = np.flatnonzero(noise == _UNDECIDED)
    cells = guide[open_]
    rest = finer.random_raw(len(open_)) >> np.uint64(64 - _FINER_BITS)
    place = table.first[cells].astype(np.intp)
    noise[open_] = place + (rest >= table.step[place]) - table.largest
    far = np.flatnonzero(table.several[place])
    uniform = cells[far].astype(np.uint64) << np.uint64(_FINER_BITS) | rest[far]
    noise[open_[far]] = np.searchsorted(table.cdf, uniform.astype(np.int64), side="right") - table.largest
    return noise


@dataclass(frozen=True)
class _Table:
    """Inversion table of round(255 * d): ``cdf[i] = 2^62 * P[Z <= i - largest]``, and a guide by the top 16 bits.

    Where these leave two values, one comparison with the step between them decides; where they leave more, as far from
    the mean, a search does.
    """

    cdf: NDArray[np.int64]  # (2 * largest,)
    guide: Int16s  # (65536,): the value, or _UNDECIDED where the top bits leave more than one
    first: NDArray[np.uint16]  # (65536,): the place in ``cdf`` of the first step above these bits
    step: NDArray[np.uint64]  # (2 * largest,): the bits of ``cdf`` that come after those of the guide
    several: NDArray[np.bool_]  # (2 * largest,): whether the next step has the same top bits
    largest: int


@lru_cache(maxsize=32)
def _table(sigma: float) -> _Table:
    check_sigma(sigma)
    numerator, denominator = sigma.as_integer_ratio()
    largest = int(LEVELS * sigma * _REACH) + 1
    # P[Z <= z] = Phi((z + 1/2) / (255 sigma)), by symmetry for negative z.
    upper = [_normal_cdf((2 * z + 1) * denominator, 2 * LEVELS * numerator, _TABLE_BITS) for z in range(largest)]
    cdf = np.array([(1 << _TABLE_BITS) - u for u in reversed(upper)] + upper, dtype=np.int64)
    cells = np.arange(1 << _GUIDE_BITS, dtype=np.int64) << _FINER_BITS
    first, last = (np.searchsorted(cdf, u, side="right") for u in (cells, cells + ((1 << _FINER_BITS) - 1)))
    guide = np.where(first == last, first - largest, _UNDECIDED).astype(np.int16)
    several = np.append(np.diff(cdf >> _FINER_BITS) == 0, False)
    step = (cdf & ((1 << _FINER_BITS) - 1)).astype(np.uint64)
    return _Table(cdf, guide, first.astype(np.uint16), step, several, largest)


_POINT = 192  # fractional bits of the fixed-point arithmetic; the series loses about 60 of them
_PI = 31415926535897932384626433832795028841971693993751058209749445923078164062862
_PI_DIGITS = 76


def _normal_cdf(numerator: int, denominator: int, bits: int) -> int:
    """Phi(numerator / denominator) * 2^bits for a ratio >= 0, rounded to an integer; bits < 76.

    Alternating Taylor series in fixed-point arithmetic: doubles carry 53 bits, the table needs 62.
    """
    if numerator >= 10 * denominator:  # 1 - Phi(10) < 2^-76, and the series would hardly end
        return 1 << bits
    x = (numerator << _POINT) // denominator
    half_square = (x * x) >> (_POINT + 1)
    power, total, k = x, x, 0
    while power:
        k += 1
        power = (power * half_square >> _POINT) // k
        total += (-1) ** k * (power // (2 * k + 1))
    doubled = (1 << bits) + (total * _one_over_root_two_pi() >> (2 * _POINT - bits - 1))
    return (doubled + 1) >> 1


@lru_cache(maxsize=1)
def _one_over_root_two_pi() -> int:
    return isqrt((10**_PI_DIGITS << (2 * _POINT)) // (2 * _PI))
