"""A checkpoint as a file: what torch saves, and after it a digest of every byte; and what identifies numbers.

Enters: the state of a training, or a path. Leaves: a file that is there as a whole or not at all, or what it holds. A
file of which one bit is not as it was written is refused: a training that went on from it would end otherwise, and
nobody would know. The digest finds damage; it is no signature, as anyone can compute it.
"""

import hashlib
import os
import zipfile
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor

from dualrs.errors import BadCheckpoint
from dualrs.files import whole_file

_DIGITS = 64  # of a digest, in text: bytes might look like the end of an archive, for which its readers search
_AT_ONCE = 1 << 20  # bytes


def write_checkpoint(content: dict[str, Any], path: Path) -> None:
    """Write a file that `read_checkpoint` gives back."""
    with whole_file(path) as file:
        torch.save(content, file)
        seal = _digest(file, file.tell())
        file.seek(0, os.SEEK_END)
        file.write(seal)


def read_checkpoint(path: Path) -> Any:
    """What was written, on the CPU; no code in it is run. Torch's own complaints about a file get out as they are."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END) - _DIGITS
        if size < 0 or _digest(file, size) != file.read():
            raise BadCheckpoint(f"{path} does not end with the digest of what it holds")
        _demand_plain(file, path)
        file.seek(0)
        return torch.load(file, map_location="cpu", weights_only=True)


def digest(tensor: Tensor) -> str:
    """A short hash of numbers, for the sentence that says what is trained on what."""
    return hashlib.blake2b(tensor.contiguous().numpy().tobytes(), digest_size=8).hexdigest()


def _digest(file: IO[bytes], size: int) -> bytes:
    """The digest of so many bytes from the start of a file, which is left behind them."""
    digest = hashlib.blake2b(digest_size=_DIGITS // 2)
    file.seek(0)
    while size > 0 and (piece := file.read(min(size, _AT_ONCE))):
        digest.update(piece)
        size -= len(piece)
    return digest.hexdigest().encode()


def _demand_plain(file: IO[bytes], path: Path) -> None:
    """Refuse what torch.save does not write, though it be sealed: entries that unpack to a flood, or are damaged."""
    with zipfile.ZipFile(file) as archive:
        packed = [entry.filename for entry in archive.infolist() if entry.compress_type != zipfile.ZIP_STORED]
        if bad := archive.testzip() if not packed else packed[0]:
            raise BadCheckpoint(f"{path}: {bad} is damaged")
