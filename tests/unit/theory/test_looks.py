"""Looks: where a stream may stop, what each look spends, and bounds that hold at all of them together."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import beta, binom

from dualrs.theory import looks as theory
from dualrs.theory.bounds import lower, upper
from dualrs.theory.looks import lower_at_looks, planned_looks, shares, upper_at_looks

LOOKS = (100, 200, 400, 800)
ALL = np.ones(4, dtype=bool)


def reached(number, of=4):
    return np.arange(of) < number


# Where, and how much


@pytest.mark.parametrize(
    ("n", "looks"),
    [
        pytest.param(1, (1,), id="one vote"),
        pytest.param(100, (100,), id="one block is one look"),
        pytest.param(101, (100, 101), id="a vote more is another look"),
        pytest.param(190, (100, 190), id="no look is rounded past the last"),
        pytest.param(400, (100, 200, 300, 400), id="no look twice"),
        pytest.param(1000, (100, 200, 300, 400, 500, 600, 800, 1000), id="whole blocks"),
        pytest.param(
            10_000,
            (100, 200, 300, 400, 500, 600, 800, 1000, 1200, 1600, 2000, 2500, 3100, 4000, 5000, 6300, 7900, 10_000),
            id="the usual n",
        ),
    ],
)
def test_looks_grow_by_a_quarter_or_so_in_whole_blocks_and_the_last_is_n(n, looks):
    assert planned_looks(n) == looks


def test_looks_rise_from_one_block_to_any_n():
    for n in range(1, 3000):
        looks = planned_looks(n)
        assert looks[-1] == n
        assert looks[0] == min(n, 100)
        assert all(a < b and a % 100 == 0 for a, b in pairwise(looks))


@pytest.mark.parametrize("n", [101, 190, 400, 1000, 1001, 10_000, 100_000])
def test_looks_share_the_level_and_the_last_has_most_of_it(n):
    looks = planned_looks(n)
    found = shares(looks)
    assert found.shape == (len(looks),)
    assert found.sum() == pytest.approx(1, abs=1e-15)
    assert found[-1] == 0.75
    np.testing.assert_allclose(found[:-1] / found[0], np.array(looks[:-1]) / 100, rtol=1e-15)


def test_usual_looks_spend_what_the_guarantees_say():
    looks = planned_looks(10_000)
    assert sum(looks[:-1]) == 37_500
    np.testing.assert_allclose(shares(looks), [*(0.25 * look / 37_500 for look in looks[:-1]), 0.75], rtol=1e-15)


def test_last_look_allows_as_many_misses_at_three_sigmas_as_a_fixed_n():
    """At n = 10,000 and 0.001 a radius of three sigmas (0.75 at 0.25, as in tables) allows three; at 0.7 of it, two."""
    needed = ndtr(3)
    for share, misses in ((1.0, 3), (shares(planned_looks(10_000))[-1], 3), (0.7, 2)):
        assert (
            lower(10_000 - misses, 10_000, 0.001 * share) >= needed > lower(10_000 - misses - 1, 10_000, 0.001 * share)
        )


def test_a_single_look_has_the_whole_level():
    assert shares((800,)).tolist() == [1.0]


# Bounds


@pytest.mark.parametrize("level", [0.1, 0.001, 1e-7])
@pytest.mark.parametrize("n", [1, 10, 268, 10_000])
def test_one_look_is_the_plain_bound_exactly(n, level):
    k = np.unique(np.linspace(0, n, 40).astype(int))
    one = np.ones((len(k), 1), dtype=bool)
    np.testing.assert_array_equal(lower_at_looks(k[:, None], (n,), one, level), lower(k, n, level))
    np.testing.assert_array_equal(upper_at_looks(k[:, None], (n,), one, level), upper(k, n, level))


def test_bound_is_the_best_over_the_looks_each_at_its_share():
    """By hand: 0.14 * 0.25/7 = 0.005 at 100 votes, 0.105 at 800; as quantiles of the beta distribution."""
    k = np.array([93, 140, 310, 640])
    lows = [beta.ppf(a, c, n - c + 1) for a, c, n in zip((0.005, 0.01, 0.02, 0.105), k, LOOKS, strict=True)]
    highs = [beta.isf(a, c + 1, n - c) for a, c, n in zip((0.005, 0.01, 0.02, 0.105), k, LOOKS, strict=True)]
    assert float(lower_at_looks(k, LOOKS, ALL, 0.14)) == pytest.approx(max(lows), rel=1e-9)
    assert float(upper_at_looks(k, LOOKS, ALL, 0.14)) == pytest.approx(min(highs), rel=1e-9)
    assert max(lows) == lows[0]  # the lucky first look, not the last one,
    assert min(highs) == highs[1]  # and another one for the upper bound


@pytest.mark.parametrize("number", range(5))
def test_looks_that_were_not_reached_do_not_count(number):
    k = np.array([[99, 101, 102, 103], [1, 2, 399, 799]])  # lucky early, lucky late
    low, high = (bound(k, LOOKS, reached(number), 0.1) for bound in (lower_at_looks, upper_at_looks))
    spent = 0.1 * shares(LOOKS)
    if number == 0:
        assert low.tolist() == [0.0, 0.0]
        assert high.tolist() == [1.0, 1.0]
    else:
        np.testing.assert_array_equal(low, lower(k, LOOKS, spent)[:, :number].max(axis=1))
        np.testing.assert_array_equal(high, upper(k, LOOKS, spent)[:, :number].min(axis=1))


def test_level_of_a_look_is_that_of_the_plan_wherever_sampling_stopped():
    """A stream that stops at the second look has spent two small shares there, and not the large one of the last."""
    k = np.array([80, 160, 0, 0])
    found = float(lower_at_looks(k, LOOKS, reached(2), 0.14))
    assert found == pytest.approx(max(lower(80, 100, 0.005), lower(160, 200, 0.01)), rel=1e-12)
    assert found < float(lower(160, 200, 0.105)) < float(lower(160, 200, 0.14))


def test_each_row_has_a_level_and_looks_of_its_own():
    k = np.array([[60, 130, 250, 500]] * 3)
    rows = np.stack([reached(1), reached(4), reached(3)])
    levels = np.array([0.1, 0.05, 0.025])
    together = lower_at_looks(k, LOOKS, rows, levels)
    alone = [float(lower_at_looks(k[0], LOOKS, row, level)) for row, level in zip(rows, levels, strict=True)]
    assert together.tolist() == alone


def test_more_looks_only_tighten():
    rng = np.random.default_rng(0)
    k = rng.multinomial([100, 100, 200, 400], [0.7, 0.3], size=(500, 4))[..., 0].cumsum(axis=1)
    lows = [lower_at_looks(k, LOOKS, reached(number), 0.1) for number in range(5)]
    highs = [upper_at_looks(k, LOOKS, reached(number), 0.1) for number in range(5)]
    assert (np.diff(lows, axis=0) >= 0).all()
    assert (np.diff(highs, axis=0) <= 0).all()


# Coverage, exactly


def failure(fails, looks, p):
    """The exact probability that a bound fails at some look: the law of the count, less what has failed before.

    ``fails(k, look)`` says at which counts it does. No simulation: counts move by binomial steps.
    """
    alive, before, lost = np.ones(1), 0, 0.0
    for number, n in enumerate(looks):
        step = binom.pmf(np.arange(n - before + 1), n - before, p)
        alive, before = np.convolve(alive, step), n
        gone = fails(np.arange(n + 1), number)
        lost += alive[gone].sum()
        alive = np.where(gone, 0.0, alive)
    return lost


def edges(looks, spent):
    """Probabilities just inside a bound of every look, where it fails most often; from one half to nearly one."""
    found = []
    for n, level in zip(looks, spent, strict=True):
        k = np.linspace(0.55 * n, 0.97 * n, 3).astype(int)
        found += [*(lower(k, n, level) * (1 - 1e-9))]
    return found


@pytest.mark.parametrize("level", [0.1, 0.01])
@pytest.mark.parametrize("looks", [(100, 200), LOOKS, planned_looks(1500)], ids=str)
def test_bounds_fail_at_any_look_no_more_often_than_their_level(looks, level):
    spent = level * shares(looks)
    worst = 0.0
    for p in edges(looks, spent):
        low = failure(lambda k, i, p=p: lower(k, looks[i], spent[i]) > p, looks, p)
        high = failure(lambda k, i, p=p: upper(k, looks[i], spent[i]) < 1 - p, looks, 1 - p)
        assert low == pytest.approx(high, rel=1e-6)  # the mirror image
        assert low <= level
        worst = max(worst, low)
    assert worst > 0.7 * level  # and the level is not wasted


def test_usual_looks_hold_at_the_usual_alpha_and_waste_little_of_it():
    looks = planned_looks(10_000)
    spent = 0.001 * shares(looks)
    for k in (5300, 7000, 9500):
        p = float(lower(k, 10_000, spent[-1])) * (1 - 1e-9)
        found = failure(lambda k, i, p=p: lower(k, looks[i], spent[i]) > p, looks, p)
        assert 0.8 * 0.001 < found <= 0.001


def test_full_level_at_every_look_would_fail_about_twice_as_often():
    """The tempting way, which the shares are there to prevent."""
    p = float(lower(600, 800, 0.1)) * (1 - 1e-9)
    assert failure(lambda k, i: lower(k, LOOKS[i], 0.1) > p, LOOKS, p) > 0.2


def test_last_share_at_whichever_look_would_fail_too_often():
    p = float(lower(600, 800, 0.075)) * (1 - 1e-9)
    assert failure(lambda k, i: lower(k, LOOKS[i], 0.075) > p, LOOKS, p) > 0.15


def test_failure_is_counted_by_the_functions_themselves(monkeypatch):
    """The exact probabilities above speak of `lower_at_looks`: both say of the same counts that it fails."""
    rng = np.random.default_rng(1)
    p, spent = 0.6, 0.1 * shares(LOOKS)
    k = rng.binomial([100, 100, 200, 400], p, size=(4000, 4)).cumsum(axis=1)
    by_look = (lower(k, LOOKS, spent) > p).any(axis=1)
    np.testing.assert_array_equal(lower_at_looks(k, LOOKS, np.ones_like(k, dtype=bool), 0.1) > p, by_look)
    assert 0.04 < by_look.mean() < 0.12
    monkeypatch.setattr(theory, "shares", lambda looks: np.ones(len(looks)))
    sabotaged = lower_at_looks(k, LOOKS, np.ones_like(k, dtype=bool), 0.1) > p
    assert sabotaged.mean() > 1.5 * by_look.mean()
