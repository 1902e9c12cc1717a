"""Weights on disk: a safetensors file, and its card beside it as JSON. Loading runs no code and trusts nothing.

Enters: a network. Leaves: NAME.safetensors and NAME.json, and from them the network, if `architectures.build` can make
it, or its weights for a network that the caller made.
"""

import hashlib
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, device, nn

from dualrs.errors import BadCheckpoint, BadSetting
from dualrs.files import write_whole
from dualrs.models.architectures import build, known
from dualrs.models.card import Card
from dualrs.models.trial import demand_finite


def save_weights(network: nn.Module, card: Card, path: Path) -> Card:
    """Write weights and card, each whole or not at all; return the card with its checksum."""
    _demand_suffix(path)
    content = save({key: value.detach().cpu().contiguous() for key, value in network.state_dict().items()})
    card = card.model_copy(update={"sha256": hashlib.sha256(content).hexdigest()})
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content)
    write_whole(path.with_suffix(".json"), (card.model_dump_json(indent=2) + "\n").encode())
    return card


def load_weights(path: Path) -> nn.Module:
    """The network of a file, in evaluation mode, after its checksum, its names and its shapes were checked."""
    card, tensors = _read(path)
    if not known(card.architecture):
        maker = card.architecture.network
        raise BadCheckpoint(
            f"{path} holds weights for {maker!r}, which dualrs does not build; if you know what that is and trust it, "
            f"write '{maker} < {path}'"
        )
    try:
        with device("meta"):  # first in name only: the card may describe more than there is room for
            _pour(tensors, build(card.architecture), path, card, assign=True)
        network = build(card.architecture)
    except BadSetting as error:
        raise BadCheckpoint(f"{path} does not fit its card: {error}") from error
    return _pour(tensors, network, path, card)


def pour_weights(path: Path, network: nn.Module) -> nn.Module:
    """Put the weights of a file into a network made elsewhere, after the same checks; return it in evaluation mode."""
    card, tensors = _read(path)
    return _pour(tensors, network, path, card)


def _read(path: Path) -> tuple[Card, dict[str, Tensor]]:
    _demand_suffix(path)
    card = Card.read(path.with_suffix(".json"))
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadCheckpoint(f"cannot read the weights {path}: {error.strerror}") from error
    if hashlib.sha256(content).hexdigest() != card.sha256:
        raise BadCheckpoint(f"{path} is not the file that its card describes (cut short, or altered); fetch both anew")
    try:
        tensors = load(content)
    except SafetensorError as error:
        raise BadCheckpoint(f"{path} is not a safetensors file: {error}") from error
    demand_finite(tensors, path)
    return card, tensors


def _pour(tensors: dict[str, Tensor], network: nn.Module, path: Path, card: Card, *, assign: bool = False) -> nn.Module:
    try:
        network.load_state_dict(tensors, assign=assign)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise BadCheckpoint(f"{path} does not fit its card's {card.architecture}: {reason[:300]}") from error
    if card.classes:
        network.classes = card.classes  # type: ignore[assignment]
    if card.sigmas and card.sigma_e is not None:
        network.routes = card.sigmas, card.sigma_e  # type: ignore[assignment]
    return network.eval()


def _demand_suffix(path: Path) -> None:
    if path.suffix != ".safetensors":
        raise BadSetting(f"files of weights end in .safetensors; got {path}")
