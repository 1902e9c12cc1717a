"""Weights on disk: what was saved comes back, and nothing else is believed."""

import json
import pickle

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from dualrs import Smoothed
from dualrs.errors import BadCheckpoint, BadSetting
from dualrs.models.architectures import build
from dualrs.models.card import Architecture, Card
from dualrs.models.noisy import fingerprint
from dualrs.models.weights import load_weights, save_weights

SMALL = Architecture(network="lean-resnet", arguments={"classes": 3, "widths": [8, 16], "blocks": [1, 1]})
IMAGES = np.random.default_rng(0).integers(0, 256, (3, 3, 16, 16), dtype=np.uint8)


def card(architecture=SMALL):
    return Card(
        what="a test", architecture=architecture, data="", recipe="", seed=0, cost="", scores={}, licence=""
    )  # fmt: skip


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "small.safetensors"
    torch.manual_seed(0)
    network = build(SMALL)
    save_weights(network, card(), path)
    return network, path


def rewrite(path, **changes):
    file = path.with_suffix(".json")
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


@pytest.mark.parametrize(
    "architecture",
    [
        SMALL,
        Architecture(
            network="lean-resnet", arguments={"classes": 3, "widths": [8], "blocks": [1], "conditional": True}
        ),
        Architecture(network="lean-unet", arguments={"width": 8, "middle": 1}),
        Architecture(network="resnet20", arguments={"classes": 3}),
    ],
    ids=str,
)
def test_network_comes_back_as_it_was(tmp_path, architecture):
    network = build(architecture)
    save_weights(network, card(architecture), tmp_path / "a.safetensors")
    loaded = load_weights(tmp_path / "a.safetensors")
    assert fingerprint(loaded) == fingerprint(network)
    assert not loaded.training


def test_saved_and_loaded_network_casts_the_same_votes(saved):
    network, path = saved
    before, after = (Smoothed(n, sigma=0.5).certify(IMAGES, n=300, alpha=0.1) for n in (network, load_weights(path)))
    assert len(before) == len(after) == 3
    for old, new in zip(before, after, strict=True):
        assert old == new


def test_card_comes_back_with_the_checksum(saved):
    _, path = saved
    assert Card.read(path.with_suffix(".json")).architecture == SMALL
    assert len(Card.read(path.with_suffix(".json")).sha256) == 64


def test_truncated_file_is_refused(saved):
    _, path = saved
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(BadCheckpoint, match="cut short, or altered"):
        load_weights(path)


def test_one_altered_bit_is_found(saved):
    _, path = saved
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(BadCheckpoint, match="cut short, or altered"):
        load_weights(path)


def resealed(path):
    import hashlib

    rewrite(path, sha256=hashlib.sha256(path.read_bytes()).hexdigest())


def test_weights_of_another_architecture_are_refused(saved):
    _, path = saved
    rewrite(
        path, architecture={"network": "lean-resnet", "arguments": {"classes": 3, "widths": [8, 24], "blocks": [1, 1]}}
    )
    with pytest.raises(BadCheckpoint, match=r"does not fit its card's lean-resnet.*size mismatch"):
        load_weights(path)


@pytest.mark.parametrize(
    "arguments",
    [
        {"classes": 3, "widths": [8, -1], "blocks": [1, 1]},
        {"classes": 3, "widths": [8, 10**8], "blocks": [1, 1]},
        {"classes": 3, "widths": [], "blocks": []},
        {"classes": 3, "widths": {}, "blocks": [1, 1]},
        {"classes": 3, "widths": [8, 16], "blocks": [1, 10**9]},
        {"classes": 10**400, "widths": [8, 16], "blocks": [1, 1]},
        {"classes": 3, "widths": [4096, 4096], "blocks": [100, 100]},  # within bounds, and 600 GB of numbers
    ],
    ids=lambda arguments: str(arguments)[:40],
)
def test_sizes_out_of_proportion_are_refused_at_once(saved, arguments):
    _, path = saved
    rewrite(path, architecture={"network": "lean-resnet", "arguments": arguments})
    with pytest.raises(BadCheckpoint, match="does not fit its card"):
        load_weights(path)


def test_too_many_layers_are_refused_at_once():
    with pytest.raises(BadSetting, match="middle must lie between 0 and 256"):
        build(Architecture(network="lean-unet", arguments={"width": 8, "middle": 10**9}))


def test_unknown_architecture_is_refused(saved):
    _, path = saved
    rewrite(path, architecture={"network": "os.system", "arguments": {}})
    with pytest.raises(BadCheckpoint, match=r"weights for 'os\.system', which dualrs does not build"):
        load_weights(path)


def test_missing_tensor_is_named(saved):
    network, path = saved
    tensors = {k: v for k, v in network.state_dict().items() if k != "head.bias"}
    save_file(tensors, path)
    resealed(path)
    with pytest.raises(BadCheckpoint, match=r"Missing key.*head\.bias"):
        load_weights(path)


class Trap:
    """Writes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def test_pickle_with_code_is_refused_and_not_run(saved, tmp_path):
    _, path = saved
    path.write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
    resealed(path)
    with pytest.raises(BadCheckpoint, match="not a safetensors file"):
        load_weights(path)
    assert not (tmp_path / "sprung").exists()


def test_missing_files_are_named(saved):
    _, path = saved
    path.unlink()
    with pytest.raises(BadCheckpoint, match="cannot read the weights"):
        load_weights(path)
    path.with_suffix(".json").unlink()
    with pytest.raises(BadCheckpoint, match="there is no card"):
        load_weights(path)


@pytest.mark.parametrize("content", ["", "{", "{}", '{"what": 1}', "[1]"])
def test_damaged_card_is_refused(saved, content):
    _, path = saved
    path.with_suffix(".json").write_text(content)
    with pytest.raises(BadCheckpoint, match="is not a card"):
        load_weights(path)


def test_other_suffix_is_refused(tmp_path):
    with pytest.raises(BadSetting, match=r"end in \.safetensors"):
        load_weights(tmp_path / "model.pt")
