"""The zoo: every card is complete, every file is the one that its card describes."""

from importlib.resources import files
from pathlib import Path

import pytest
import torch

from dualrs.errors import BadSetting
from dualrs.models import zoo
from dualrs.models.noisy import takes_sigma

BUNDLED = Path(str(files("dualrs.models") / "bundled"))
WEIGHTS = sorted(p.stem for p in BUNDLED.glob("*.safetensors"))


def test_bundled_networks_are_there():
    assert {"cifar10-denoiser", "cifar10-classifier", "cifar10-experts", "cifar10-tuned", "cifar10-router"} <= set(
        WEIGHTS
    )


def test_every_file_has_a_card_and_stays_small():
    sizes = {p.stem: p.stat().st_size for p in BUNDLED.glob("*.safetensors")}
    assert max(sizes.values()) <= 8_000_000
    assert sum(sizes.values()) <= 25_000_000
    assert set(sizes) <= set(zoo.names())


@pytest.mark.parametrize("name", zoo.names())
def test_card_says_everything(name):
    card = zoo.card(name)
    assert all([card.what, card.data, card.recipe, card.cost, card.licence, card.scores])
    assert len(card.sha256) == 64


@pytest.mark.parametrize("name", WEIGHTS)
def test_network_is_built_from_its_card(name):
    network = zoo.load(name)
    assert not network.training
    images = torch.rand(2, 3, 32, 32)
    with torch.inference_mode():
        out = network(images, 0.5) if takes_sigma(network) else network(images)
    assert torch.isfinite(out).all()


def test_unknown_name_is_refused():
    with pytest.raises(BadSetting, match="the zoo has no network 'elephant'; it has "):
        zoo.card("elephant")
