"""The command dual, from a classifier and images to a bundle, as a user calls it."""

import numpy as np
import pytest
from typer.testing import CliRunner

from dualrs.cli import app
from dualrs.config import DataSection
from dualrs.data.dataset import ArrayDataset
from dualrs.pipeline.fitted import fitted_recipe, held_out
from dualrs.storage import Ledger

run = CliRunner().invoke

NET = """
import numpy as np
import torch

rng = np.random.default_rng(0)
labels = np.arange(63) % 2
images = (rng.integers(0, 60, (63, 1, 28, 28)) + 160 * labels[:, None, None, None]).astype(np.uint8)
data = images, labels


class Brightness(torch.nn.Module):
    def forward(self, x):
        light = 40 * (x.mean(dim=(1, 2, 3)) - 0.43)
        return torch.stack([-light, light], dim=1)


network = Brightness().eval()
"""


@pytest.mark.slow
def test_63_grey_images_of_28_pixels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(NET)
    given = ["dual", "--classifier", "net.py:network", "--data", "net.py:data", "--sigmas", "0.25,0.5", "-o", "made"]
    first = run(app, given)
    assert first.exit_code == 0, first.output
    assert "the router names sigma 0.25" in first.output
    assert "best on these 16 held-out inputs" in first.output
    with Ledger.open("made/test.ledger") as ledger:
        tested = {row.position for row in ledger.inputs()}
    with Ledger.open("made/1-labels.ledger") as ledger:
        assert not tested & {row.position for row in ledger.inputs()}
    again = run(app, given)  # nothing is done twice
    assert again.exit_code == 0, again.output
    certified = run(app, ["certify", "--model", "made/bundle", "--inputs", "0:1", "-o", "own.ledger", "--n", "200"])
    assert certified.exit_code == 0, certified.output


def test_what_is_missing_is_said():
    found = run(app, ["dual", "-o", "made"])
    assert "name a classifier and labelled images" in str(found.exception)


@pytest.mark.parametrize(
    ("shape", "network"),
    [((3, 32, 32), "lean-resnet"), ((1, 28, 28), "resnet20"), ((3, 30, 32), "resnet20"), ((3, 224, 224), "resnet50")],
)
def test_router_suits_the_images(shape, network):
    images = ArrayDataset(np.zeros((40, *shape), dtype=np.uint8), labels=[0, 1] * 20)
    recipe = fitted_recipe(DataSection(source="x"), images, "zoo:ffdnet | net.py:f", (0.25, 0.5), 0.5, 0)
    assert recipe.router.network == network
    assert recipe.router.denoiser == "zoo:ffdnet"
    assert recipe.router.batch_size * 6 <= 30
    assert len(held_out(recipe, images)) == 10
