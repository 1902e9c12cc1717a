"""Noise in training: the sigma of each image, and its standard deviation."""

import numpy as np
import pytest
import torch

from dualrs.errors import BadSetting
from dualrs.training.noise import Between, OneOf, PerInput, add_noise, parse_levels

EVERY = torch.arange(10_000)


def source():
    return torch.Generator().manual_seed(0)


def test_one_of_a_few_comes_equally_often():
    drawn = OneOf((0.25, 0.5, 1.0)).draw(EVERY, source())
    values, counts = drawn.unique(return_counts=True)
    assert values.tolist() == [0.25, 0.5, 1.0]
    assert counts.min() > 3100  # 3,333 expected, standard deviation 47


def test_range_is_uniform_in_the_logarithm():
    drawn = Between(0.1, 1.6).draw(EVERY, source())
    assert drawn.min() >= 0.1
    assert drawn.max() <= 1.6
    assert abs(float((drawn < 0.4).float().mean()) - 0.5) < 0.025  # 0.4 halves the range; standard deviation 0.005


def test_each_input_keeps_its_own():
    sigmas = torch.rand(10_000)
    assert torch.equal(PerInput(sigmas).draw(torch.tensor([5, 3]), source()), sigmas[[5, 3]])


def test_other_sigmas_per_input_are_another_training():
    sigmas = torch.rand(10)
    assert repr(PerInput(sigmas)) == repr(PerInput(sigmas.clone()))
    assert repr(PerInput(sigmas)) != repr(PerInput(sigmas.flip(0)))


def test_noise_has_the_stated_deviation_image_by_image():
    images = torch.rand(3, 3, 200, 200)
    sigma = torch.tensor([0.0, 0.25, 1.0])
    noise = add_noise(images, sigma, source()) - images
    assert torch.equal(noise[0], torch.zeros_like(noise[0]))
    for k in (1, 2):  # 120,000 pixels: the deviation's standard error is 0.2% of it
        assert float(noise[k].std()) == pytest.approx(float(sigma[k]), rel=0.01)


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("0", OneOf((0.0,))),
        ("0.5", OneOf((0.5,))),
        ("0.25,0.5,1.0", OneOf((0.25, 0.5, 1.0))),
        ("0.1:1.2", Between(0.1, 1.2)),
    ],
)
def test_levels_are_read(text, levels):
    assert parse_levels(text, 10) == levels


def test_levels_are_read_from_a_file(tmp_path):
    np.save(tmp_path / "s.npy", np.linspace(0.1, 1, 10))
    assert parse_levels(str(tmp_path / "s.npy"), 10).sigmas[-1] == 1


@pytest.mark.parametrize("text", ["", "abc", "-0.5", "1.2:0.1", "0:1", "nan", "0.5;1"])
def test_senseless_levels_are_refused(text):
    with pytest.raises(BadSetting, match="sigmas"):
        parse_levels(text, 10)


def test_files_that_do_not_fit_are_refused(tmp_path):
    np.save(tmp_path / "s.npy", np.ones(9))
    with pytest.raises(BadSetting, match="one float for each of 10 images"):
        parse_levels(str(tmp_path / "s.npy"), 10)
    with pytest.raises(BadSetting, match="cannot read sigmas"):
        parse_levels(str(tmp_path / "none.npy"), 10)
    np.save(tmp_path / "code.npy", np.array([print] * 10, dtype=object))
    with pytest.raises(BadSetting, match="cannot read sigmas"):
        parse_levels(str(tmp_path / "code.npy"), 10)
