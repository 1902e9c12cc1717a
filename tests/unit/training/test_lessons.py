"""What is taught: which inputs of a ledger, at which sigmas."""

import numpy as np
import pytest
import torch
from torch import nn

from dualrs.data.dataset import ArrayDataset
from dualrs.errors import BadData
from dualrs.jobs import assign_dataset, label_dataset
from dualrs.smoothed import Pool, RouterAlone
from dualrs.training.assignment import read_assignment
from dualrs.training.lessons import read_lessons

GREYS = np.repeat([30, 220], 20)
DATA = ArrayDataset(
    np.broadcast_to(GREYS[:, None, None, None], (40, 3, 4, 4)).astype(np.uint8), (GREYS > 128).astype(int), name="greys"
)
OTHER = ArrayDataset(DATA.pixels, DATA.labels, name="other", ids=[f"o{i}" for i in range(40)])


class Bright(nn.Module):
    def __init__(self, steepness=1.0):
        super().__init__()
        self.steepness = nn.Parameter(torch.tensor(steepness))

    def forward(self, x):
        bright = self.steepness * (x.mean(dim=(1, 2, 3)) - 0.5)
        return torch.stack([-bright, bright], dim=1)


def labelled(path, classifier=None):
    pool = Pool(classifier or Bright().eval(), (0.25, 0.5), batch_size=50)
    label_dataset(pool, DATA, path, n=20, alpha=0.05, seed=0, indices=range(40))
    return path


@pytest.fixture
def assigned(tmp_path):
    router = RouterAlone(Bright().eval(), (0.25, 0.5), 0.5, batch_size=50)
    assign_dataset(router, DATA, tmp_path / "a.ledger", n=20, alpha=0.05, seed=0, indices=range(40))
    return tmp_path / "a.ledger"


def test_every_twentieth_is_held_out(tmp_path):
    lessons = read_lessons(labelled(tmp_path / "l.ledger"), DATA)
    assert len(lessons.images) == 38
    assert list(lessons.held_out.ids) == ["19", "39"]
    assert lessons.radii.shape == (38, 2)


def test_only_the_inputs_that_are_asked_for(tmp_path):
    lessons = read_lessons(labelled(tmp_path / "l.ledger"), DATA, range(0, 40, 2))
    assert [*lessons.images.ids, *lessons.held_out.ids] == [str(i) for i in range(0, 40, 2)]


def test_one_classifier_is_no_pool_of_experts(tmp_path):
    assert not read_lessons(labelled(tmp_path / "one.ledger"), DATA).experts
    experts = {0.25: Bright().eval(), 0.5: Bright(2.0).eval()}
    assert read_lessons(labelled(tmp_path / "two.ledger", experts), DATA).experts


def test_each_image_has_the_sigma_that_the_router_names(assigned):
    assignment = read_assignment(assigned, DATA)
    wanted = torch.tensor(np.where(GREYS > 128, 0.5, 0.25), dtype=torch.float32)
    assert torch.equal(assignment.levels.draw(torch.arange(40), torch.Generator()), wanted)
    assert assignment.levels.typical == (0.25, 0.5)


def test_fine_tuning_on_some_of_them(assigned):
    assignment = read_assignment(assigned, DATA, [3, 30])
    assert list(assignment.images.ids) == ["3", "30"]
    assert assignment.levels.draw(torch.arange(2), torch.Generator()).tolist() == [0.25, 0.5]


def test_other_data_are_refused(assigned):
    with pytest.raises(BadData, match="is another dataset"):
        read_assignment(assigned, OTHER)
