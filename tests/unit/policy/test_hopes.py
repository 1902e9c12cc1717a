"""Hopes: bounds as they may become, for deciding whether to go on. Never less than now, and now at the last look."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from dualrs.policy.hopes import PATIENCE, Hopes
from dualrs.votes import SamplingPlan, Votes

LOOKS = (100, 200, 400, 800)
PLAN = SamplingPlan(20, 800, LOOKS)
BOUNDS = ("lower", "upper", "upper_of_others")
BETTER = {"lower": 1, "upper": -1, "upper_of_others": -1}


def votes(rows=300, looks=None, answers=3, seed=0):
    """Random votes on many inputs, cut off at random looks (or never sampled) unless at a given number of looks."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet([0.7] * answers, size=rows)
    segments = np.stack([rng.multinomial(size, p) for size in np.diff(LOOKS, prepend=0)], axis=1)
    reached = rng.integers(0, len(LOOKS) + 1, size=rows) if looks is None else np.full(rows, looks)
    segments = segments * (np.arange(len(LOOKS)) < reached[:, None])[:, :, None]
    return Votes(0.5, rng.multinomial(PLAN.n0, p), segments.sum(axis=1), PLAN, segments)


def outlook(table, hopeful):
    return Hopes(table, hopeful)


def bound(table, name, level=0.05):
    answer = table.selection.argmax(axis=1)
    return getattr(table, name)(answer, level)


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("level", [0.05, 0.00025])
def test_hope_is_never_less_than_what_is_there(name, level):
    table = votes()
    hoped = bound(outlook(table, np.ones(len(table), dtype=bool)), name, level)
    now = bound(table, name, level)
    assert (BETTER[name] * (hoped - now) >= 0).all()
    assert (hoped != now).mean() > 0.6  # and mostly more


@pytest.mark.parametrize("name", BOUNDS)
def test_rows_without_hope_have_the_bounds_of_now(name):
    table = votes()
    hopeful = np.arange(len(table)) % 2 == 0
    found, now = bound(outlook(table, hopeful), name), bound(table, name)
    np.testing.assert_array_equal(found[~hopeful], now[~hopeful])
    assert (found[hopeful] != now[hopeful]).mean() > 0.6


@pytest.mark.parametrize("name", BOUNDS)
def test_nothing_is_hoped_for_at_the_last_look(name):
    table = votes(looks=len(LOOKS))
    np.testing.assert_array_equal(bound(outlook(table, np.ones(len(table), dtype=bool)), name), bound(table, name))


@pytest.mark.parametrize("name", BOUNDS)
def test_everything_is_hoped_for_before_the_first_vote(name):
    """An expert that nobody has heard may agree with every vote, as far as one knows."""
    table = votes(looks=0)
    silent = Votes(0.5, table.selection * 0, table.estimation, PLAN, table.segments)
    hoped = bound(outlook(silent, np.ones(len(table), dtype=bool)), name)
    unanimous = 0.75 * 0.05
    expected = unanimous ** (1 / 800) if name == "lower" else 1 - unanimous ** (1 / 800)
    np.testing.assert_allclose(hoped, expected, rtol=1e-9)


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("looks", [1, 2, 3])
def test_votes_to_come_are_seldom_kinder_than_hoped(name, looks):
    """What is given up at a look would hardly ever have been reached.

    The probability behind the votes exceeds the hope with the chance that is given up; votes to come vary about it
    besides, which by the normal law makes it z * sqrt(m / (m + k)) standard deviations for k votes seen and m to come.
    """
    early, late = votes(20_000, looks), votes(20_000, len(LOOKS))
    hoped = bound(outlook(early, np.ones(len(early), dtype=bool)), name)
    kinder = BETTER[name] * (bound(late, name) - hoped) > 0
    seen, to_come = PLAN.n0 + LOOKS[looks - 1], LOOKS[-1] - LOOKS[looks - 1]
    given_up = PATIENCE * to_come / LOOKS[-1]
    assert kinder.mean() < 1.2 * ndtr(ndtri(given_up) * np.sqrt(to_come / (to_come + seen)))


@pytest.mark.parametrize("name", BOUNDS)
def test_hope_shrinks_towards_the_truth(name):
    """Look by look, the mean distance between what is hoped for and what comes gets smaller."""
    late = bound(votes(2000, len(LOOKS)), name)
    apart = []
    for looks in range(1, 5):
        table = votes(2000, looks)
        apart.append(np.abs(bound(outlook(table, np.ones(len(table), dtype=bool)), name) - late).mean())
    assert apart == sorted(apart, reverse=True)
    assert apart[-1] == 0


def test_hope_is_read_from_selection_votes_too_but_they_enter_no_count():
    """Selection votes say what to expect; what is there so far is of the estimation votes alone."""
    table = votes(1, looks=1)
    kind, unkind = (Votes(0.5, np.array([s]), table.estimation, PLAN, table.segments) for s in ([20, 0, 0], [0, 20, 0]))
    first = np.array([0])
    hoped = [outlook(v, np.array([True])).lower(first, 0.05)[0] for v in (kind, unkind)]
    now = [outlook(v, np.array([False])).lower(first, 0.05)[0] for v in (kind, unkind)]
    assert hoped[0] > hoped[1]
    assert now[0] == now[1]


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("passes", [False, True])
def test_cases_of_one_input_have_the_very_bounds_of_as_many_inputs_with_its_votes(name, passes):
    """What a run decides must not depend on the way in which a bound is worked out: no last bit differs."""
    hopeful = np.array([False, True, True, False, True])
    unlikely = np.array([PATIENCE, PATIENCE, 0.5, 0.5, 0.5])
    table = replace(votes(40), passes=passes)
    for number in range(len(table)):
        one, many = table.rows(np.array([number])), table.rows(np.full(5, number))
        answer = np.array([0, 0, 0, 1, 1])
        for level in (0.001, np.array(0.05), np.array([0.05, 0.05, 0.001, 0.001, 0.001])):
            found, expected = (
                getattr(hopes, name)(answer, level)
                for hopes in (Hopes.of(one, hopeful, unlikely), Hopes(many, hopeful, unlikely))
            )
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(Hopes.of(one, hopeful).sampled, many.sampled)
            np.testing.assert_array_equal(Hopes.of(one, hopeful).selection, many.selection)
