"""Votes: what is refused, how planned votes are cut into units, and how tallies become tables of counts."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualrs.errors import BadSetting, UnusableVotes
from dualrs.votes import BLOCK, UNIT, DualVotes, Part, SamplingPlan, Stage, Stream, Streams, Tally, Unit, Votes

PLAN = SamplingPlan(n0=4, n=10)
SELECTION = [[4, 0, 0], [1, 1, 2]]
ESTIMATION = [[10, 0, 0], [3, 3, 4]]


def votes(selection=None, estimation=None, sigma=0.5, plan=PLAN):
    selection = SELECTION if selection is None else selection
    estimation = ESTIMATION if estimation is None else estimation
    return Votes(sigma, np.array(selection), np.array(estimation), plan)


def router(answers, sigma=1.0, rows=2):
    selection, estimation = np.zeros((rows, answers), dtype=int), np.zeros((rows, answers), dtype=int)
    selection[:, 0], estimation[:, 0] = PLAN.n0, PLAN.n
    return Votes(sigma, selection, estimation, PLAN)


@pytest.mark.parametrize(
    ("n0", "n", "message"),
    [
        pytest.param(1, 0, "n must be at least 1", id="no estimation votes"),
        pytest.param(1, -5, "n must be at least 1", id="a negative number of estimation votes"),
        pytest.param(-1, 10, "n0 must not be negative", id="a negative number of selection votes"),
        pytest.param(1, 1e4, "n must be a whole number", id="a number of votes that is a float"),
    ],
)
def test_impossible_plan_is_refused(n0, n, message):
    with pytest.raises(BadSetting, match=message):
        SamplingPlan(n0, n)


def test_plan_says_how_many_votes_each_part_has():
    assert PLAN.votes(Part.SELECTION) == 4
    assert PLAN.votes(Part.ESTIMATION) == 10


@pytest.mark.parametrize(
    ("given_counts", "message"),
    [
        pytest.param({"estimation": [[10, 0, 0], [3, 3, 3]]}, "input 1 .* 9 estimation votes", id="a partial row"),
        pytest.param(
            {"selection": [[4, 0, 0], [4, 1, 0]]}, "input 1 .* 5 selection votes", id="a row with a vote extra"
        ),
        pytest.param({"estimation": [[11, -1, 0], [3, 3, 4]]}, "input 0", id="a negative count hidden in a right sum"),
        pytest.param({"estimation": [[1, -1, 0], [3, 3, 4]]}, "input 0", id="a negative count hidden in a sum of zero"),
        pytest.param({"estimation": [[10.0, 0, 0], [3, 3, 4]]}, "must be integers", id="counts that are not integers"),
        pytest.param({"estimation": [10, 0, 0]}, "must be integers of shape", id="counts without a row per input"),
        pytest.param({"selection": [[4, 0], [2, 2]]}, "differ in shape", id="parts with different numbers of answers"),
        pytest.param({"selection": [[4, 0, 0]]}, "differ in shape", id="parts with different numbers of inputs"),
    ],
)
def test_unusable_counts_are_refused(given_counts, message):
    with pytest.raises(UnusableVotes, match=message):
        votes(**given_counts)


def test_row_of_zeros_is_an_input_that_was_not_sampled():
    table = votes(estimation=[[0, 0, 0], [3, 3, 4]])
    assert table.sampled.tolist() == [0, 10]
    assert len(table) == 2
    assert table.answers == 3


def test_no_inputs_at_all_are_votes_too():
    table = Votes(0.5, np.zeros((0, 3), dtype=int), np.zeros((0, 3), dtype=int), PLAN)
    assert len(table) == 0
    assert table.answers == 3


@pytest.mark.parametrize(
    ("router_votes", "experts", "error", "message"),
    [
        pytest.param(router(1), (votes(),), UnusableVotes, "at least two candidate", id="a single candidate"),
        pytest.param(
            router(3),
            (votes(), votes()),
            UnusableVotes,
            "3 answers .* 2 candidate",
            id="a router with an answer too many",
        ),
        pytest.param(
            router(2),
            (votes(), votes(), votes()),
            UnusableVotes,
            "2 answers .* 3 candidate",
            id="a router with an answer too few",
        ),
        pytest.param(
            router(2, sigma=0.4),
            (votes(), votes(sigma=0.25)),
            BadSetting,
            "sigma_e = 0.4 lies below",
            id="a router below the largest sigma",
        ),
        pytest.param(
            router(2, rows=3), (votes(), votes()), UnusableVotes, "same inputs", id="a router with an input too many"
        ),
        pytest.param(
            router(2),
            (votes(), votes([[4, 0]] * 2, [[10, 0]] * 2)),
            UnusableVotes,
            "classes",
            id="experts with different classes",
        ),
        pytest.param(
            router(2),
            (votes(), votes([[4, 0, 0]], [[10, 0, 0]])),
            UnusableVotes,
            "same inputs",
            id="experts with different inputs",
        ),
    ],
)
def test_stages_that_do_not_fit_are_refused(router_votes, experts, error, message):
    with pytest.raises(error, match=message):
        DualVotes(router_votes, experts)


def test_router_may_share_the_largest_sigma():
    dual = DualVotes(router(2, sigma=0.5), (votes(sigma=0.25), votes(sigma=0.5)))
    assert dual.sigmas == (0.25, 0.5)
    assert len(dual) == 2


STREAM = Stream(Stage.CLASS, Part.ESTIMATION, 0.5)


@given(st.integers(min_value=1, max_value=20 * UNIT))
def test_units_partition_the_planned_votes(n):
    units = list(SamplingPlan(0, n).units("a", STREAM))
    assert units[0].start == 0
    assert units[-1].stop == n
    assert all(left.stop == right.start for left, right in pairwise(units))
    assert all(0 < u.votes <= UNIT for u in units)
    assert all(u.start % BLOCK == 0 for u in units)
    assert sum(u.votes for u in units) == n
    assert sum(u.blocks for u in units) == -(-n // BLOCK)


def test_units_of_the_selection_follow_n0():
    stream = Stream(Stage.ROUTER, Part.SELECTION, 1.0)
    assert list(SamplingPlan(n0=UNIT + 50, n=10).units("a", stream)) == [
        Unit("a", stream, 0, UNIT),
        Unit("a", stream, UNIT, UNIT + 50),
    ]
    assert list(SamplingPlan(n0=0, n=10).units("a", stream)) == []


def test_last_block_may_be_cut_short():
    assert Unit("a", STREAM, 0, 1).blocks == 1
    assert Unit("a", STREAM, 0, BLOCK).blocks == 1
    assert Unit("a", STREAM, 0, BLOCK + 1).blocks == 2


@settings(deadline=None)
@given(st.integers(min_value=1, max_value=5 * UNIT), st.integers(min_value=0, max_value=2**32 - 1))
def test_tally_totals_the_blocks_of_its_units_in_whatever_order_they_came(n, seed):
    rng = np.random.default_rng(seed)
    units = list(SamplingPlan(0, n).units("a", STREAM))
    tally, expected = Tally(), np.zeros(3, dtype=np.int64)
    for index in rng.permutation(len(units)):
        unit = units[index]
        assert not tally.holds(unit)
        sizes = [min(BLOCK, unit.votes - b * BLOCK) for b in range(unit.blocks)]
        counts = np.stack([rng.multinomial(size, [0.5, 0.3, 0.2]) for size in sizes])
        tally.add(unit, counts)
        expected += counts.sum(axis=0)
        assert tally.holds(unit)
    assert tally.total(STREAM, 3).tolist() == expected.tolist()
    assert tally.total(STREAM, 3).sum() == n


def test_unit_given_twice_counts_once():
    tally, unit = Tally(), Unit("a", STREAM, 0, 10)
    tally.add(unit, np.array([[7, 3]]))
    tally.add(unit, np.array([[7, 3]]))
    assert tally.total(STREAM, 2).tolist() == [7, 3]


def test_stream_without_votes_totals_zero_and_streams_do_not_mix():
    tally = Tally()
    tally.add(Unit("a", STREAM, 0, 10), np.array([[7, 3]]))
    for other in (
        Stream(Stage.ROUTER, Part.ESTIMATION, 0.5),
        Stream(Stage.CLASS, Part.SELECTION, 0.5),
        Stream(Stage.CLASS, Part.ESTIMATION, 0.25),
    ):
        assert tally.total(other, 2).tolist() == [0, 0]
        assert not tally.holds(Unit("a", other, 0, 10))


def full_tally(streams, leave_out=()):
    """A tally in which every stream gives all its votes to the answer number 1, except those left out."""
    tally = Tally()
    all_streams = [(Stream(Stage.CLASS, part, s), streams.classes) for s in streams.sigmas for part in Part]
    if streams.sigma_e is not None:
        all_streams += [(Stream(Stage.ROUTER, part, streams.sigma_e), len(streams.sigmas)) for part in Part]
    for stream, answers in all_streams:
        if stream not in leave_out:
            for unit in PLAN.units("a", stream):
                counts = np.zeros((unit.blocks, answers), dtype=np.int64)
                counts[0, 1] = unit.votes
                tally.add(unit, counts)
    return tally


def test_gather_makes_votes_of_one_sigma():
    streams = Streams(sigmas=(0.5,), classes=3)
    table = streams.gather([full_tally(streams), full_tally(streams)], PLAN)
    assert isinstance(table, Votes)
    assert table.sigma == 0.5
    assert table.selection.tolist() == [[0, 4, 0]] * 2
    assert table.estimation.tolist() == [[0, 10, 0]] * 2


def test_gather_makes_votes_of_two_stages_even_where_router_and_expert_share_a_sigma():
    streams = Streams(sigmas=(0.25, 0.5), classes=3, sigma_e=0.5)
    lazy = [Stream(Stage.CLASS, part, 0.25) for part in Part]
    table = streams.gather([full_tally(streams), full_tally(streams, leave_out=lazy)], PLAN)
    assert isinstance(table, DualVotes)
    assert table.sigmas == (0.25, 0.5)
    assert table.router.sigma == 0.5
    assert table.router.estimation.tolist() == [[0, 10]] * 2
    assert table.experts[0].estimation.tolist() == [[0, 10, 0], [0, 0, 0]]
    assert table.experts[0].selection.tolist() == [[0, 4, 0], [0, 0, 0]]
    assert table.experts[1].estimation.tolist() == [[0, 10, 0]] * 2


def test_gather_of_no_inputs_keeps_the_shapes():
    table = Streams(sigmas=(0.25, 0.5), classes=3, sigma_e=1.0).gather([], PLAN)
    assert isinstance(table, DualVotes)
    assert len(table) == 0
    assert table.router.answers == 2
    assert table.experts[0].answers == 3


def test_gather_refuses_an_unfinished_stream():
    streams = Streams(sigmas=(0.5,), classes=2)
    tally = Tally()
    tally.add(Unit("a", STREAM, 0, 9), np.array([[9, 0]]))
    with pytest.raises(UnusableVotes, match="finish the run first"):
        streams.gather([tally], PLAN)


def test_a_router_alone_has_no_class_streams_and_no_certificate():
    streams = Streams(sigmas=(0.25, 0.5), classes=0, sigma_e=0.5)
    assert streams.answers == {Stream(Stage.ROUTER, part, 0.5): 2 for part in Part}
    tally = full_tally(Streams(sigmas=(0.25, 0.5), classes=3, sigma_e=0.5))
    assert streams.gather_router([tally], PLAN).estimation.tolist() == [[0, 10]]
    with pytest.raises(UnusableVotes, match="a router alone"):
        streams.gather([tally], PLAN)
    with pytest.raises(UnusableVotes, match="without a router"):
        Streams(sigmas=(0.25, 0.5), classes=3).gather_router([tally], PLAN)
