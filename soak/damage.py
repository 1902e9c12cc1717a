"""Damage to bytes: what disks, transfers and editors do to a file, whatever is in it.

Enters: the content of a file and randomness. Leaves: other content, and words for what was done.
"""

from collections.abc import Callable
from random import Random

Damage = Callable[[bytes, Random], bytes]


def flipped(content: bytes, rng: Random) -> bytes:
    """A few bits turned over, mostly one."""
    spoiled = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        spoiled[rng.randrange(len(spoiled))] ^= 1 << rng.randrange(8)
    return bytes(spoiled)


def overwritten(content: bytes, rng: Random) -> bytes:
    """A stretch of other bytes: random ones, zeros, or ones."""
    start, length = rng.randrange(len(content)), rng.choice((1, 1, 4, 16, 200, 5000))
    length = len(content[start : start + length])
    other = rng.choice((rng.randbytes(length), bytes(length), b"\xff" * length))
    return content[:start] + other + content[start + length :]


def cut_short(content: bytes, rng: Random) -> bytes:
    """The end is missing."""
    return content[: rng.randrange(len(content))]


def cut_out(content: bytes, rng: Random) -> bytes:
    """A piece is missing."""
    start = rng.randrange(len(content))
    return content[:start] + content[start + rng.choice((1, 2, 16, 100, 4096)) :]


def inserted(content: bytes, rng: Random) -> bytes:
    """Bytes that do not belong there, at times from elsewhere in the file."""
    place, length = rng.randrange(len(content) + 1), rng.choice((1, 2, 16, 300))
    begin = rng.randrange(len(content))
    foreign = rng.randbytes(length) if rng.random() < 0.5 else content[begin : begin + length]
    return content[:place] + foreign + content[place:]


def swapped(content: bytes, rng: Random) -> bytes:
    """Two stretches of one length have changed places."""
    length = rng.choice((1, 8, 100, 512, 4096))
    length = min(length, len(content) // 2)
    first = rng.randrange(len(content) - 2 * length + 1)
    second = rng.randrange(first + length, len(content) - length + 1)
    a, b = content[first : first + length], content[second : second + length]
    return content[:first] + b + content[first + length : second] + a + content[second + length :]


def appended(content: bytes, rng: Random) -> bytes:
    """Something follows: garbage, or the whole file once more."""
    return content + rng.choice((content, rng.randbytes(rng.randint(1, 5000)), b"\0" * 512))


DAMAGES: tuple[Damage, ...] = (
    flipped,
    flipped,
    overwritten,
    overwritten,
    cut_short,
    cut_out,
    inserted,
    swapped,
    appended,
)


def damaged(content: bytes, rng: Random) -> tuple[bytes, str]:
    """Some damage, in two places at times."""
    names = []
    for _ in range(rng.choice((1, 1, 1, 2))):
        damage = rng.choice(DAMAGES)
        if len(content) > 1:
            content = damage(content, rng)
            names.append(damage.__name__.replace("_", " "))
    return content, " and ".join(names)
