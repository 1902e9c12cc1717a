"""A sigma for each input: the same for certificates and predictions, and refused where it makes no sense."""

import numpy as np
import pytest
import torch

from dualrs import InputDependent
from dualrs.errors import BadSetting, UnusableVotes
from dualrs.schemes.input_dependent import LEVEL
from dualrs.storage import Ledger, verify
from small import Small

RNG = np.random.default_rng(0)
KNOWN = RNG.integers(100, 156, (30, 1, 6, 6), dtype=np.uint8)
IMAGES = np.concatenate([RNG.integers(0, 256, (3, 1, 6, 6)), RNG.integers(110, 146, (3, 1, 6, 6))]).astype(np.uint8)


def model(**settings):
    return InputDependent(Small(7), 0.3, KNOWN, **{"k": 3, "rate": 0.3, "centre": 1.0, "batch_size": 100} | settings)


def expected(smoothed, image, sigma=0.3, rate=0.3, centre=1.0):
    """Sigma at the middle of the level that the distance is in."""
    module = smoothed.level.module
    level = np.floor(module.distance(torch.from_numpy(image[None]).float() / 255).item() / module.step)
    return sigma * np.exp(rate * ((level + 0.5) * module.step - centre))


def test_sigma_is_that_of_the_distance_for_certificates_and_predictions_alike():
    smoothed = model()
    certified, predicted = smoothed.certify(IMAGES, n=300, seed=0), smoothed.predict(IMAGES, n=200, seed=1)
    assert certified.sigma_c.tolist() == predicted.sigma_c.tolist()
    assert certified.sigma_c == pytest.approx([expected(smoothed, image) for image in IMAGES], rel=1e-8)
    assert len(set(certified.sigma_c)) > 3
    assert certified.sigma_c[:3].min() > certified.sigma_c[3:].max()  # the first are far from all that is known


def test_radius_is_below_that_of_a_constant_sigma():
    found = model().certify(IMAGES, n=1000, alpha=0.01, seed=0)
    claimed = ~found.abstained
    assert claimed.any()
    assert (found.radius[claimed] < found.r_c[claimed]).all()
    assert all(limit.startswith("rival ") for limit in found.limited_by[claimed])


def test_class_votes_are_drawn_at_the_sigma_of_the_input(tmp_path):
    path = tmp_path / "run.ledger"
    model().certify(IMAGES, n=300, seed=0, ledger=path)
    with Ledger.open(path) as ledger:
        assert verify(ledger) == []
        for name in ledger.finished():
            streams = ledger.tally(name).counts
            assert {stream.sigma for stream in streams if stream != LEVEL} == {
                ledger.certificates()[name].certificate.sigma_c
            }
        assert ledger.header.scheme.sigma == 0.3


def test_other_neighbours_are_another_run(tmp_path):
    path = tmp_path / "run.ledger"
    model().certify(IMAGES, n=300, seed=0, ledger=path)
    other = InputDependent(Small(7), 0.3, KNOWN[1:], k=3, rate=0.3, centre=1.0, batch_size=100)
    with pytest.raises(Exception, match="router"):
        other.certify(IMAGES, n=300, seed=0, ledger=path)


def test_votes_without_a_level_are_refused():
    scheme = model().kind
    votes = model().sample(IMAGES[:1], n=300, seed=0).votes
    assert scheme.own_rule().certify(votes, 0.01).sigma_c.shape == (1,)
    broken = type(votes)(votes.levels * 0, votes.classifier, votes.by_level, votes.step, votes.dimensions)
    with pytest.raises(UnusableVotes, match="no level"):
        scheme.own_rule().certify(broken, 0.01)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"rate": 0.0}, "rate must be at least"),
        ({"rate": -1.0}, "rate must be at least"),
        ({"k": 31}, "number of neighbours"),
        ({"levels": 1}, "at least two levels"),
    ],
)
def test_impossible_settings_are_refused(settings, complaint):
    with pytest.raises(BadSetting, match=complaint):
        model(**settings)


def test_adaptive_budget_is_refused_in_a_sentence():
    with pytest.raises(BadSetting, match="no adaptive form"):
        model().certify(IMAGES, n=400, budget="adaptive")
