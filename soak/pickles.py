"""Edits of checkpoints: other contents under the right names, and pickles with code in them.

Enters: the content of a checkpoint, randomness, and the path of a marker that the code would write if it were run.
Leaves: the archive of another checkpoint, and words for what was done; `sealed` makes a file of it.
"""

import io
import os
import pickle
import subprocess
import zipfile
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import torch

from dualrs.training.checkpoint import _DIGITS, _digest


def sealed(archive: bytes) -> bytes:
    """A checkpoint with a digest that fits it: it is no signature, and anyone can compute it."""
    return archive + _digest(io.BytesIO(archive), len(archive))


def unsealed(path: Path) -> bytes:
    """The archive in a checkpoint."""
    return path.read_bytes()[:-_DIGITS]


class _Calls:
    """Pickles as a call, which unpickling makes."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self.call


def _code(marker: Path, rng: Random) -> _Calls:
    """One of several ways to write the marker."""
    text = f"open({str(marker)!r}, 'w').close()"
    return rng.choice(
        (
            _Calls(os.system, f"touch {marker}"),
            _Calls(exec, text),
            _Calls(eval, text),
            _Calls(Path.touch, marker),
            _Calls(open, str(marker), "w"),
            _Calls(os.mkdir, str(marker)),
            _Calls(subprocess.call, ["touch", str(marker)]),
        )
    )


def with_code(content: dict[str, Any], rng: Random, marker: Path) -> tuple[bytes, str]:
    """A checkpoint that would write the marker if its pickle were trusted, in one of torch's formats or bare."""
    spoiled = deepcopy(content)
    place = rng.choice((*content, "more"))
    spoiled[place] = _code(marker, rng)
    how = rng.choice(("zip", "legacy", "pickle", "zip with another pickle"))
    file = io.BytesIO()
    if how == "pickle":
        pickle.dump(spoiled, file, protocol=rng.randint(0, 5))
    elif how == "zip with another pickle":
        torch.save(content, file)
        return _exchanged(file.getvalue(), pickle.dumps(spoiled[place], protocol=2)), f"code in a {how}"
    else:
        torch.save(spoiled, file, _use_new_zipfile_serialization=how == "zip")
    return file.getvalue(), f"code in {place!r}, as {how}"


def _exchanged(archive: bytes, data: bytes) -> bytes:
    """An archive of torch with another data.pkl in it."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as source, zipfile.ZipFile(out, "w") as target:
        for name in source.namelist():
            target.writestr(name, data if name.endswith("data.pkl") else source.read(name))
    return out.getvalue()


def edited_content(content: dict[str, Any], rng: Random, marker: Path) -> tuple[bytes, str]:
    """A checkpoint that loads, with something in it that does not belong there."""
    spoiled, done = deepcopy(content), []
    for _ in range(rng.choice((1, 1, 2, 3))):
        holder, key = _some_place(spoiled, rng)
        if rng.random() < 0.2:
            del holder[key]
            done.append(f"no {key!r}")
        else:
            value = rng.choice(_VALUES)
            holder[key] = deepcopy(value)
            done.append(f"{key!r} is {str(value)[:40]}")
    file = io.BytesIO()
    torch.save(rng.choice((spoiled, spoiled, spoiled, [spoiled], None)), file)
    return file.getvalue(), "; ".join(done)


_VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 7, 10**400, 1.5, float("nan"), float("inf"), "", "nonsense", "ü", b"\xff", (), [], {}, [None]),
    *({"a": {"b": []}}, {0: 1}, torch.zeros(0), torch.zeros(3, 3), torch.zeros(2, 3, dtype=torch.int8)),
    *(
        torch.tensor(float("nan")),
        torch.zeros(2, 3, dtype=torch.complex64),
        torch.zeros(1).expand(10**6),
        torch.Size((2, 3)),
    ),
)


def _some_place(content: Any, rng: Random) -> tuple[Any, Any]:
    """A container within the content, and a key of it."""
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        pairs = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        for key, value in pairs:
            places.append((node, key))
            walk(value)

    walk(content)
    return rng.choice(places) if places else ({"a": 1}, "a")
