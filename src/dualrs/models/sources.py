"""What makes a network, other than Python code: the zoo, files of weights, hubs, other projects' checkpoints.

Enters: the maker that a `Reference` names. Leaves: the network; or the maker's name with its path made absolute. To
look at names does not import torch.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from dualrs.errors import did_you_mean
from dualrs.references import anchored_object

if TYPE_CHECKING:
    from torch import nn

FORMS = (
    "PATH.safetensors (weights that dualrs saved), transformers:FOLDER-OR-ID (a "
    "classifier), diffusers:FOLDER-OR-ID or openai:FILE.pt?SETTINGS (denoisers)"
)
_WEIGHTS = ".safetensors"


def anchored_maker(maker: str, folder: Path) -> str:
    """The same maker, a path made absolute; what may be a hub's id is a path if there is such a folder."""
    scheme, _, place = maker.partition(":")
    if maker.endswith(_WEIGHTS):
        return str(folder / maker)
    if place and (scheme == "openai" or (scheme in ("transformers", "diffusers") and (folder / place).exists())):
        return f"{scheme}:{folder / place}"
    return anchored_object(maker, folder)


def nearest_network(maker: str, folder: Path) -> str:
    """What was perhaps meant by a maker that makes nothing, to end a sentence with."""
    from dualrs.models.zoo import names

    rest = maker.partition(":")[2]
    if (folder / maker).is_dir():
        return f"; did you mean {'diffusers' if (folder / maker / 'unet').is_dir() else 'transformers'}:{maker}?"
    schemes = [f"{known}:{rest}" for known in ("zoo", "transformers", "diffusers", "openai") if rest]
    return did_you_mean(maker, [*schemes, *(f"zoo:{name}" for name in names())])


def open_network(maker: str, folder: Path) -> "nn.Module | None":
    """The network that a maker of one of `FORMS` makes, paths from ``folder`` on; None if it is of another form."""
    maker = anchored_maker(maker, folder)
    scheme, colon, place = maker.partition(":")
    if maker.endswith(_WEIGHTS):
        from dualrs.models.weights import load_weights

        return load_weights(Path(maker))
    match scheme + colon:
        case "zoo:":
            from dualrs.models.zoo import load

            return load(place)
        case "transformers:":
            from dualrs.models.hub import load_classifier

            return load_classifier(place)
        case "diffusers:":
            from dualrs.models.diffusion import load_diffusers

            return load_diffusers(place)
        case "openai:":
            from dualrs.models.openai import load_openai

            return load_openai(place)
    return None
