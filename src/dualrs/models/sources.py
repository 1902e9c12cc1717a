"""References to networks that are not Python objects: the zoo, files of weights, hubs, other projects' checkpoints."""

from collections.abc import Callable
from pathlib import Path

from torch import nn

FORMS = (
    "PATH.safetensors (weights that dualrs saved), transformers:FOLDER-OR-ID (a "
    "classifier), diffusers:FOLDER-OR-ID or openai:FILE.pt (denoisers)"
)


def open_network(reference: str, folder: Path) -> nn.Module | None:
    """The network that a reference of one of `FORMS` names; None if it is of another form.

    Relative paths start at ``folder``. A hub's id is taken as a folder if there is one of that name.
    """
    if reference.endswith(".safetensors"):
        from dualrs.models.weights import load_weights

        return load_weights(folder / reference)
    scheme, colon, rest = reference.partition(":")
    if not colon or scheme not in _SCHEMES:
        return None
    return _SCHEMES[scheme](rest, folder)


def _zoo(name: str, folder: Path) -> nn.Module:
    from dualrs.models.zoo import load

    return load(name)


def _transformers(source: str, folder: Path) -> nn.Module:
    from dualrs.models.hub import load_classifier

    return load_classifier(_here_or_hub(source, folder))


def _diffusers(source: str, folder: Path) -> nn.Module:
    from dualrs.models.diffusion import load_diffusers

    return load_diffusers(_here_or_hub(source, folder))


def _openai(path: str, folder: Path) -> nn.Module:
    from dualrs.models.openai import load_openai

    return load_openai(folder / path)


def _here_or_hub(source: str, folder: Path) -> str | Path:
    return folder / source if (folder / source).exists() else source


_SCHEMES: dict[str, Callable[[str, Path], nn.Module]] = {
    "zoo": _zoo,
    "transformers": _transformers,
    "diffusers": _diffusers,
    "openai": _openai,
}
