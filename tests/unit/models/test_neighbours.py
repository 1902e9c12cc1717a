"""The level of an image: exact, the same in any company, and no faster than the image moves."""

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

from dualrs.errors import BadModel, BadSetting
from dualrs.models.neighbours import Neighbours

RNG = np.random.default_rng(0)
KNOWN = RNG.integers(0, 256, (2_500, 3, 4, 4), dtype=np.uint8)  # more than are taken at once
ASKED = RNG.integers(0, 256, (9, 3, 4, 4), dtype=np.uint8)


def as_floats(images):
    return torch.from_numpy(images).float() / 255


def brute_force(images, known, k):
    far = cdist(images.reshape(len(images), -1).astype(float), known.reshape(len(known), -1).astype(float)) / 255
    return np.sort(far, axis=1)[:, :k].mean(axis=1)


@pytest.mark.parametrize("k", [1, 20, 2_500])
def test_distance_is_the_mean_to_the_nearest(k):
    found = Neighbours(KNOWN, k).distance(as_floats(ASKED)).numpy()
    assert found == pytest.approx(brute_force(ASKED, KNOWN, k), abs=1e-12)


def test_distance_to_itself_is_none():
    assert Neighbours(KNOWN, 1).distance(as_floats(KNOWN[:3])).tolist() == [0, 0, 0]


def test_level_is_the_same_to_the_bit_in_any_company():
    module = Neighbours(KNOWN, 20)
    together = module.distance(as_floats(ASKED))
    alone = torch.cat([module.distance(as_floats(ASKED[i : i + 1])) for i in range(len(ASKED))])
    copies = module.distance(as_floats(np.concatenate([ASKED[::-1], ASKED, ASKED])))
    assert together.equal(alone)
    assert copies[len(ASKED) : 2 * len(ASKED)].equal(together)


def test_logits_name_the_level():
    module = Neighbours(KNOWN, 5, levels=50)
    level = module(as_floats(ASKED)).argmax(dim=1).numpy()
    assert (level == np.floor(brute_force(ASKED, KNOWN, 5) / module.step)).all()
    assert module.step == pytest.approx(np.sqrt(48) / 100)


def test_what_is_farther_than_the_last_level_has_the_last_level():
    module = Neighbours(np.zeros((3, 3, 4, 4), dtype=np.uint8), 2, levels=10)
    assert module(as_floats(np.full((1, 3, 4, 4), 255, dtype=np.uint8))).argmax() == 9


def test_distance_moves_no_more_than_the_image():
    module = Neighbours(KNOWN, 20)
    for _ in range(50):
        image = RNG.integers(0, 256, (1, 3, 4, 4), dtype=np.uint8)
        other = np.clip(image + RNG.integers(-40, 41, image.shape), 0, 255).astype(np.uint8)
        before, after = module.distance(as_floats(np.concatenate([image, other]))).tolist()
        assert abs(after - before) <= np.linalg.norm((image - other.astype(float)) / 255) + 1e-12


@pytest.mark.parametrize("k", [0, 2_501])
def test_impossible_numbers_of_neighbours_are_refused(k):
    with pytest.raises(BadSetting, match="number of neighbours"):
        Neighbours(KNOWN, k)


def test_images_of_another_shape_are_refused():
    with pytest.raises(BadModel, match="shape"):
        Neighbours(KNOWN)(torch.zeros(1, 3, 5, 5))
