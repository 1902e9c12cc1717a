"""Weights on disk: a safetensors file, and its card beside it as JSON. Loading runs no code and trusts nothing.

Enters: a network that `architectures.build` made. Leaves: NAME.safetensors and NAME.json, and from them the network.
"""

import hashlib
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import nn

from dualrs.errors import BadCheckpoint, BadSetting
from dualrs.files import whole_file
from dualrs.models.architectures import build
from dualrs.models.card import Card


def save_weights(network: nn.Module, card: Card, path: Path) -> Card:
    """Write weights and card, each whole or not at all; return the card with its checksum."""
    _demand_suffix(path)
    content = save({key: value.detach().cpu().contiguous() for key, value in network.state_dict().items()})
    card = card.model_copy(update={"sha256": hashlib.sha256(content).hexdigest()})
    path.parent.mkdir(parents=True, exist_ok=True)
    for target, data in (
        (path, content),
        (path.with_suffix(".json"), (card.model_dump_json(indent=2) + "\n").encode()),
    ):
        with whole_file(target) as file:
            file.write(data)
    return card


def load_weights(path: Path) -> nn.Module:
    """The network of a file, in evaluation mode, after its checksum, its names and its shapes were checked."""
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
    try:
        network = build(card.architecture)
        network.load_state_dict(tensors)
    except (BadSetting, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise BadCheckpoint(f"{path} does not fit its card's {card.architecture}: {reason[:300]}") from error
    return network


def _demand_suffix(path: Path) -> None:
    if path.suffix != ".safetensors":
        raise BadSetting(f"files of weights end in .safetensors; got {path}")
