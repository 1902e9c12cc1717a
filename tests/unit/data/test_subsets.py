"""Which inputs: slices and shares."""

import pytest

from dualrs.data.subsets import parse_inputs
from dualrs.errors import BadSetting


@pytest.mark.parametrize(
    ("text", "chosen"),
    [("::", range(10)), ("0:3", [0, 1, 2]), ("::5", [0, 5]), ("7:", [7, 8, 9]), ("-1:", [9]), ("100%", range(10))],
)
def test_positions(text, chosen):
    assert list(parse_inputs(text, 10)) == list(chosen)


def test_a_share_has_its_size_rises_and_is_always_the_same():
    chosen = list(parse_inputs("20%", 1_000))
    assert len(chosen) == 200
    assert chosen == sorted(set(chosen))
    assert chosen == list(parse_inputs("20%", 1_000))
    assert 400 < sum(chosen) / 200 < 600  # drawn from everywhere


def test_a_smaller_share_is_part_of_a_larger():
    assert set(parse_inputs("20%", 1_000)) < set(parse_inputs("60%", 1_000))


@pytest.mark.parametrize("text", ["a:b", "5", "0%", "101%", "x%", "nan%", "1:2:3:4", "::0"])
def test_nonsense_is_refused(text):
    with pytest.raises(BadSetting, match="START:STOP:STEP"):
        parse_inputs(text, 10)


@pytest.mark.parametrize("text", ["5:5", "1%"])
def test_nothing_left_is_refused(text):
    with pytest.raises(BadSetting, match="none of the 10"):
        parse_inputs(text, 10)
