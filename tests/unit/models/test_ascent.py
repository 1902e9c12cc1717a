"""The sigma of each image by ascent: a function of the image, between its ends, and where the radius is largest."""

import pytest
import torch
from torch import nn

from dualrs.errors import BadSetting
from dualrs.models.ascent import Ascent


class Slab(nn.Module):
    """Class 0 where the mean of an image is within a width of 1/2, 1 below and 2 above; steep: votes are hard."""

    def __init__(self, width):
        super().__init__()
        self.width = width
        self.eval()

    def forward(self, x):
        off = x.mean(dim=(1, 2, 3)) - 0.5
        return 200 * torch.stack([self.width - off.abs(), -off - self.width, off - self.width], dim=1)


START = 0.1


def middle(width, **settings):
    """Where the ascent ends on an image in the middle of a slab."""
    module = Ascent(Slab(width), START, **{"steps": 60, "draws": 200} | settings)
    return module.sigma(torch.full((1, 2, 2), 0.5), 0)


def promised(width, sigma):
    """The radius of the middle of a slab under a sigma; the mean of four pixels has half of it."""
    inside = 2 * torch.special.ndtr(torch.tensor(2 * width / sigma)) - 1
    first, second = torch.special.ndtri(torch.stack([inside, (1 - inside) / 2]).clamp(0.001, 0.999))
    return float(sigma / 2 * (first - second))


@pytest.mark.parametrize("width", [0.06, 0.1, 0.3])
def test_a_larger_radius_is_promised_where_it_ends_than_where_it_starts(width):
    assert promised(width, middle(width)) > promised(width, START)


def test_a_wide_margin_is_given_a_larger_sigma_than_a_narrow_one():
    """In proportion: of a slab the promise has its largest value at a sigma of so many widths."""
    assert middle(0.06) < START < middle(0.3)


def test_sigma_is_a_function_of_the_image():
    module, again = (Ascent(Slab(0.1), 0.2, steps=5, draws=20) for _ in range(2))
    images = torch.rand(5, 1, 2, 2, generator=torch.Generator().manual_seed(0)).mul(255).round() / 255
    with torch.inference_mode():
        together = module(images).argmax(dim=1)
        assert together.equal(again(images.flip(0)).argmax(dim=1).flip(0))
    assert len(together.unique()) > 1


def test_sigma_stays_between_its_ends():
    assert middle(10.0, rate=10.0) == pytest.approx(8 * START)
    assert START / 8 - 1e-6 <= middle(0.01, rate=10.0) <= 8 * START + 1e-6


@pytest.mark.parametrize("settings", [{"steps": 0}, {"draws": 0}, {"rate": 0.0}])
def test_impossible_settings_are_refused(settings):
    with pytest.raises(BadSetting, match="an ascent takes"):
        Ascent(Slab(0.1), 0.2, **settings)
