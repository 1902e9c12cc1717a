"""Targets: what radius is worth going for, and how a target is written down and read again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualrs.errors import BadSetting
from dualrs.policy import Grid, Tolerance, read_target
from dualrs.policy.target import reaches
from dualrs.theory.radius import RADII

radii = st.floats(0, 1e6)


@pytest.mark.parametrize(
    ("radius", "goal", "reached"),
    [
        pytest.param(0.5, 0.5, True, id="a radius certifies at itself"),
        pytest.param(0.5, 0.25, True, id="and below"),
        pytest.param(0.5, 0.51, False, id="and not above"),
        pytest.param(1e-9, 0.0, True, id="any radius certifies at 0"),
        pytest.param(0.0, 0.0, False, id="but none does not"),
        pytest.param(-0.5, 0.0, False, id="nor less than none"),
    ],
)
def test_a_certificate_is_positive(radius, goal, reached):
    assert reaches(radius, goal) is reached


GRID = Grid((0.0, 0.25, 0.5))


@pytest.mark.parametrize(
    ("have", "can", "goal"),
    [
        pytest.param(-0.1, 0.6, 0.5, id="the largest radius within reach"),
        pytest.param(0.3, 0.6, 0.5, id="also from a smaller one"),
        pytest.param(0.3, 0.49, None, id="nothing between two radii matters"),
        pytest.param(0.5, 9.0, None, id="nor what lies beyond the last"),
        pytest.param(0.25, 0.25, None, id="a radius that is certified is no goal"),
        pytest.param(-0.1, 0.1, 0.0, id="radius 0 wants any radius at all"),
        pytest.param(0.001, 0.1, None, id="and has it"),
        pytest.param(-0.1, 0.0, None, id="which none is not"),
        pytest.param(-0.3, -0.1, None, id="out of reach"),
        pytest.param(-0.1, float("inf"), 0.5, id="without any limit"),
    ],
)
def test_grid_goes_for_the_largest_radius_that_it_can_reach_and_has_not(have, can, goal):
    assert GRID.goal(have, can) == goal


def test_grid_is_that_of_the_tables_unless_given():
    assert Grid().radii == RADII


def test_order_of_a_grid_does_not_matter():
    shuffled = Grid((0.5, 0.0, 0.25))
    assert shuffled == GRID
    assert shuffled.goal(0.0, 0.3) == GRID.goal(0.0, 0.3) == 0.25


def test_grid_without_radius_0_does_not_care_for_small_radii():
    assert Grid((0.25,)).goal(-0.1, 0.2) is None


@pytest.mark.parametrize(
    ("have", "can", "goal"),
    [
        pytest.param(0.5, 0.65, 0.55, id="as far as the tolerance leaves"),
        pytest.param(0.5, 0.58, None, id="near enough"),
        pytest.param(0.5, 0.6, None, id="just near enough"),
        pytest.param(-3.0, 0.05, None, id="nothing is near enough to a little"),
        pytest.param(-3.0, 0.3, 0.2, id="but not to more"),
        pytest.param(-3.0, -1.0, None, id="out of reach"),
    ],
)
def test_tolerance_goes_for_what_can_be_reached_but_for_so_much(have, can, goal):
    found = Tolerance(0.1).goal(have, can)
    assert found is None if goal is None else found == pytest.approx(goal)


@given(radii.filter(lambda r: r > 0), st.floats(-10, 1e6), st.floats(-10, 1e6))
def test_goal_of_a_tolerance_is_not_certified_yet_and_can_be(tolerance, have, can):
    goal = Tolerance(tolerance).goal(have, can)
    if goal is not None:
        assert not reaches(have, goal) or have > can - tolerance  # rounding of the difference
        assert reaches(can, goal)


@given(st.lists(radii, min_size=1, max_size=8), st.floats(-10, 1e6), st.floats(-10, 1e6))
def test_goal_of_a_grid_is_on_it_not_certified_yet_and_can_be(grid, have, can):
    goal = Grid(tuple(grid)).goal(have, can)
    if goal is None:
        assert not any(reaches(can, r) and not reaches(have, r) for r in grid)
    else:
        assert goal in grid
        assert not reaches(have, goal)
        assert reaches(can, goal)


@pytest.mark.parametrize("wrong", [(), (0.5, -0.1), (float("nan"),), (0.25, float("nan")), (float("inf"),)], ids=str)
def test_impossible_grid_is_refused(wrong):
    with pytest.raises(BadSetting, match="a target needs radii"):
        Grid(wrong)


@pytest.mark.parametrize("wrong", [0.0, -0.1, float("nan"), float("inf")])
def test_impossible_tolerance_is_refused(wrong):
    with pytest.raises(BadSetting, match="tolerance on a radius must be positive"):
        Tolerance(wrong)


# On record


@given(st.lists(radii, min_size=1, max_size=8))
def test_grid_survives_the_record(grid):
    target = Grid(tuple(grid))
    assert read_target(str(target)) == target


@given(radii.filter(lambda r: r > 0))
def test_tolerance_survives_the_record(tolerance):
    assert read_target(str(Tolerance(tolerance))) == Tolerance(tolerance)


def test_recorded_form_is_fixed():
    """It stands in the header of ledgers: another spelling is another run."""
    assert str(Grid((0.5, 0.25, 1))) == "radii 0.25,0.5,1.0"
    assert str(Grid((np.float64(0.5), np.float32(0.25), np.int64(1), 0.5))) == "radii 0.25,0.5,1.0"
    assert str(Tolerance(0.01)) == str(Tolerance(np.float64(0.01))) == "tolerance 0.01"
    assert str(Tolerance(1)) == "tolerance 1.0"
    assert str(Grid()) == "radii 0.0,0.25,0.5,0.75,1.0,1.25,1.5,1.75,2.0,2.25,2.5"


@pytest.mark.parametrize(
    "text",
    ["", "radii", "radii ", "radii a,b", "radii 0.5,", "tolerance", "tolerance 0.1,0.2", "speed 3", "Radii 0.5", "0.5"],
)
def test_what_is_no_target_is_refused(text):
    with pytest.raises(BadSetting, match=r"is no target; one is 'radii 0,0.25,0.5' or 'tolerance 0.01'"):
        read_target(text)
