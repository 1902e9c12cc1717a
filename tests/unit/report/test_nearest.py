"""What an attack found beside an input: the image, its difference, and the sentence."""

import numpy as np
import pytest

from dualrs.report.nearest import Nearest
from dualrs.storage.attacks import Attack

NAMES = ("cat", "dog", "owl")
IMAGE = np.array([[[250, 10], [100, 128]]], dtype=np.uint8)
CHANGE = np.array([[[5, -10], [0, 2]]], dtype=np.int16)


def found(**changes):
    settings = {"id": "x", "prediction": 0, "radius": 0.25, "upper": 0.50001, "answer": 2, "aim": "class"}
    return Nearest("cascade", Attack(**settings | {"searched": 0.625, "change": CHANGE} | changes))


def test_image_and_difference():
    nearest = found()
    assert nearest.image(IMAGE).tolist() == [[[255, 0], [100, 130]]]
    difference, times = nearest.difference()
    assert times == 12  # 127 // 10
    assert difference.tolist() == [[[188, 8], [128, 152]]]


def test_a_large_change_is_not_made_larger():
    difference, times = found(change=np.array([[[255, -255]]], dtype=np.int16)).difference()
    assert times == 1
    assert difference.tolist() == [[[255, 0]]]


def test_the_sentence_brackets_the_true_radius():
    assert found().said(NAMES) == (
        "cascade certifies cat up to 0.2500. The nearest image that the attack found with another answer, owl, is at "
        "distance 0.5001; it aimed at class. The true radius lies between 0.2500 and 0.5001."
    )


def test_without_an_image_it_says_how_far_was_searched():
    nearest = found(upper=None, change=None, answer=-1, aim="")
    assert nearest.said(NAMES).endswith("The attack searched up to distance 0.6250, and found nothing.")
    assert nearest.reach == 0.625
    assert nearest.image(IMAGE) is None
    assert nearest.difference() is None
    within = found(upper=None, change=None, searched=0.0)
    assert within.said().endswith("The attack searched within the radius, and found nothing.")
    assert within.reach == 0.25


@pytest.mark.parametrize("upper", [0.2, None])
def test_a_broken_certificate_is_called_so(upper):
    said = found(flipped=1, upper=upper).said(NAMES)
    assert "This certificate is broken: an image within the radius is answered with dog." in said
    assert "lies between" not in said
    assert "found nothing" not in said
