"""Votes: what is refused, how planned votes are cut into units, and how tallies become tables of counts."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualrs.errors import BadSetting, UnusableVotes
from dualrs.schemes import Assigned, Dual, DualVotes, Single
from dualrs.theory.bounds import lower, upper
from dualrs.theory.looks import planned_looks
from dualrs.votes import BLOCK, UNIT, Part, SamplingPlan, Stage, Stream, Tally, Unit, Votes

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


LOOKS = (100, 200, 400)
ADAPTIVE = SamplingPlan(n0=4, n=400, looks=LOOKS)


@pytest.mark.parametrize(
    "looks",
    [
        pytest.param((100, 200), id="that end before n"),
        pytest.param((100, 400, 800), id="that go beyond n"),
        pytest.param((200, 100, 400), id="that fall"),
        pytest.param((100, 100, 400), id="that stand still"),
        pytest.param((400, 400), id="that are the last one twice"),
        pytest.param((150, 400), id="that cut a block"),
        pytest.param((100, 250, 400), id="that cut a later block"),
        pytest.param((0, 400), id="that begin before the first vote"),
        pytest.param((-100, 400), id="that begin before that"),
    ],
)
def test_impossible_looks_are_refused(looks):
    with pytest.raises(BadSetting, match="looks must rise in whole blocks of 100 votes and end at n = 400"):
        SamplingPlan(4, 400, looks)


def test_last_look_may_cut_a_block():
    assert SamplingPlan(4, 450, (100, 200, 450)).looks == (100, 200, 450)


def test_plan_without_looks_has_one_at_n():
    assert PLAN.looks == (10,)
    assert not PLAN.adaptive
    assert SamplingPlan(4, 10, (10,)) == PLAN
    assert ADAPTIVE.adaptive


def test_plan_with_looks_says_where_each_part_may_stop():
    assert ADAPTIVE.steps(Part.SELECTION) == (4,)
    assert ADAPTIVE.steps(Part.ESTIMATION) == LOOKS
    assert (ADAPTIVE.votes(Part.SELECTION), ADAPTIVE.votes(Part.ESTIMATION)) == (4, 400)


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


# Looks


def adaptive(segments, selection=None, estimation=None, plan=ADAPTIVE):
    """Votes under looks; the estimation counts are the sums over the segments unless given."""
    segments = np.array(segments)
    selection = np.array([[4, 0]] * len(segments) if selection is None else selection)
    estimation = segments.sum(axis=1) if estimation is None else np.array(estimation)
    return Votes(0.5, selection, estimation, plan, segments)


TO_THE_END, TO_THE_SECOND = [[60, 40], [50, 50], [180, 20]], [[60, 40], [50, 50], [0, 0]]
NEVER = [[0, 0], [0, 0], [0, 0]]


def test_rows_may_stop_at_different_looks():
    table = adaptive([TO_THE_END, TO_THE_SECOND, NEVER])
    assert table.sampled.tolist() == [400, 200, 0]


@pytest.mark.parametrize(
    ("segments", "message"),
    [
        pytest.param([[60, 40], [30, 20], [0, 0]], "input 0 .* 150 estimation votes", id="stopped between two looks"),
        pytest.param([[30, 20], [0, 0], [0, 0]], "input 0 .* 50 estimation votes", id="stopped before the first look"),
        pytest.param([[0, 0], [60, 40], [0, 0]], "do not add up", id="the second segment without the first"),
        pytest.param([[0, 0], [0, 0], [150, 50]], "do not add up", id="the last segment alone"),
        pytest.param([[150, 50], [0, 0], [0, 0]], "do not add up", id="two segments in one"),
        pytest.param([[60, 39], [50, 51], [180, 20]], "do not add up", id="a vote in the wrong segment"),
        pytest.param([[101, -1], [50, 50], [180, 20]], "do not add up", id="a negative count in a right sum"),
    ],
)
def test_segments_that_are_not_complete_up_to_a_look_are_refused(segments, message):
    with pytest.raises(UnusableVotes, match=message):
        adaptive([segments])


def test_segments_must_be_those_of_the_estimation_counts():
    with pytest.raises(UnusableVotes, match=r"input 1 at sigma 0.5: its counts from look to look do not add up"):
        adaptive([TO_THE_END, TO_THE_END], estimation=[[290, 110], [291, 109]])


@pytest.mark.parametrize(
    "segments",
    [
        pytest.param(None, id="missing"),
        pytest.param(np.array([TO_THE_END])[:, :2], id="a look too few"),
        pytest.param(np.array([TO_THE_END])[..., :1], id="an answer too few"),
        pytest.param(np.array([TO_THE_END] * 2), id="an input too many"),
    ],
)
def test_votes_under_looks_need_segments_of_their_shape(segments):
    with pytest.raises(UnusableVotes, match=r"need counts from look to look, of shape \(1, 3, 2\)"):
        Votes(0.5, np.array([[4, 0]]), np.array([[290, 110]]), ADAPTIVE, segments)


def test_votes_of_a_fixed_plan_have_no_segments():
    counts = np.array([[290, 110]])
    with pytest.raises(UnusableVotes, match="a plan without looks have no segments"):
        Votes(0.5, np.array([[4, 0]]), counts, SamplingPlan(4, 400), counts[:, None])


def test_counts_gathered_under_looks_are_no_counts_of_a_fixed_plan():
    """Those that stopped early are not; those that went on to n cannot be told from them, so the plan is kept."""
    table = adaptive([TO_THE_END, TO_THE_SECOND])
    with pytest.raises(UnusableVotes, match=r"input 1 .* 200 estimation votes where the plan has 400"):
        Votes(0.5, table.selection, table.estimation, SamplingPlan(4, 400))


def test_bounds_of_a_fixed_plan_are_the_plain_ones_of_the_answer_asked_about():
    table, answer = votes(), np.array([0, 2])
    np.testing.assert_array_equal(table.lower(answer, 0.1), lower([10, 4], 10, 0.1))
    np.testing.assert_array_equal(table.upper(answer, 0.1), upper([10, 4], 10, 0.1))
    np.testing.assert_array_equal(table.upper_of_others(answer, 0.1), upper([0, 3], 10, 0.1))


def test_bounds_under_looks_are_the_best_over_the_looks_that_a_row_has_reached():
    """By hand: 0.12 * 0.25/3 = 0.01 at 100 votes, 0.02 at 200, 0.09 at 400."""
    table, second = adaptive([TO_THE_END, TO_THE_SECOND, NEVER]), np.array([1, 1, 1])
    low = [lower(40, 100, 0.01), lower(90, 200, 0.02), lower(110, 400, 0.09)]
    high = [upper(40, 100, 0.01), upper(90, 200, 0.02), upper(110, 400, 0.09)]
    assert table.lower(second, 0.12).tolist() == [max(low), max(low[:2]), 0.0]
    assert table.upper(second, 0.12).tolist() == [min(high), min(high[:2]), 1.0]
    assert table.upper_of_others(np.array([0, 0, 0]), 0.12).tolist() == [min(high), min(high[:2]), 1.0]


def test_likeliest_other_answer_may_be_another_one_at_each_look():
    plan = SamplingPlan(n0=4, n=200, looks=(100, 200))
    table = adaptive([[[50, 40, 10], [50, 5, 45]]], selection=[[4, 0, 0]], plan=plan)
    expected = min(upper(40, 100, 0.025), upper(55, 200, 0.075))
    assert table.upper_of_others(np.array([0]), 0.1).tolist() == [expected]


def test_rows_may_have_levels_of_their_own():
    table, answer, levels = adaptive([TO_THE_END, TO_THE_SECOND]), np.array([0, 0]), np.array([0.1, 0.025])
    for bound in (Votes.lower, Votes.upper, Votes.upper_of_others):
        together = bound(table, answer, levels)
        assert together.tolist() == [bound(table, answer, level)[i] for i, level in enumerate(levels)]


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


RISING = st.lists(st.integers(1, 40), min_size=1, max_size=6, unique=True).map(lambda b: [BLOCK * k for k in sorted(b)])


@given(RISING, st.integers(min_value=1, max_value=BLOCK))
def test_units_never_cross_a_look_and_partition_the_votes_up_to_any(looks, rest):
    looks = (*looks, looks[-1] + rest)
    plan = SamplingPlan(0, looks[-1], looks)
    for upto in looks:
        units = list(plan.units("a", STREAM, upto))
        assert units[0].start == 0
        assert units[-1].stop == upto
        assert all(left.stop == right.start for left, right in pairwise(units))
        assert all(0 < u.votes <= UNIT and u.start % BLOCK == 0 for u in units)
        assert not any(u.start < look < u.stop for u in units for look in looks)
        assert [plan.step_before(u) for u in units] == [max([0, *(k for k in looks if k <= u.start)]) for u in units]
    assert list(plan.units("a", STREAM)) == units
    assert list(plan.units("a", STREAM, 0)) == []


def test_units_up_to_no_look_stop_at_the_one_before():
    """Votes are asked for in whole looks: nothing is drawn that no bound could use."""
    assert list(ADAPTIVE.units("a", STREAM, 399)) == list(ADAPTIVE.units("a", STREAM, 200))


def test_units_of_the_usual_plan_are_cut_at_its_looks():
    plan = SamplingPlan(100, 10_000, planned_looks(10_000))
    stops = [u.stop for u in plan.units("a", STREAM)]
    assert set(plan.looks) < set(stops)
    assert stops[-4:] == [7900, 8900, 9900, 10_000]


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


def test_tally_says_what_came_between_two_looks():
    tally = Tally()
    for unit, counts in zip(ADAPTIVE.units("a", STREAM), ([60, 40], [50, 50]), strict=False):
        tally.add(unit, np.array([counts]))
    assert tally.between(STREAM, 2, LOOKS).tolist() == [[60, 40], [50, 50], [0, 0]]
    assert tally.between(Stream(Stage.ROUTER, Part.ESTIMATION, 0.5), 2, LOOKS).tolist() == NEVER


def test_gather_makes_segments_of_the_units_between_two_looks():
    """A segment of several units, and of units of several blocks, is their sum."""
    plan = SamplingPlan(4, 2500, (100, 2500))
    streams = Single((0.5,), 2)
    rng, tally, total = np.random.default_rng(0), Tally(), 0
    for unit in plan.units("a", STREAM):
        counts = rng.multinomial(BLOCK, [0.7, 0.3], size=unit.blocks)
        tally.add(unit, counts)
        total = total + counts.sum(axis=0) * (unit.start >= 100)
    tally.add(Unit("a", Stream(Stage.CLASS, Part.SELECTION, 0.5), 0, 4), np.array([[3, 1]]))
    table = streams.gather([tally], plan)
    assert table.segments.shape == (1, 2, 2)
    assert table.segments[0, 1].tolist() == total.tolist()
    assert table.segments.sum(axis=1).tolist() == table.estimation.tolist()
    assert table.sampled.tolist() == [2500]


def test_gather_refuses_a_stream_that_stands_between_two_looks():
    plan = SamplingPlan(4, 4000, (100, 4000))
    tally = Tally()
    for unit in list(plan.units("a", STREAM))[:-1]:
        tally.add(unit, np.full((unit.blocks, 2), BLOCK // 2))
    with pytest.raises(UnusableVotes, match="3100 estimation votes where the plan has 100 or 4000"):
        Single((0.5,), 2).gather([tally], plan)


def full_tally(streams, leave_out=()):
    """A tally in which every stream gives all its votes to the answer number 1, except those left out."""
    tally = Tally()
    for stream, answers in streams.streams.items():
        if stream not in leave_out:
            for unit in PLAN.units("a", stream):
                counts = np.zeros((unit.blocks, answers), dtype=np.int64)
                counts[0, 1] = unit.votes
                tally.add(unit, counts)
    return tally


def test_gather_makes_votes_of_one_sigma():
    streams = Single((0.5,), 3)
    table = streams.gather([full_tally(streams), full_tally(streams)], PLAN)
    assert isinstance(table, Votes)
    assert table.sigma == 0.5
    assert table.selection.tolist() == [[0, 4, 0]] * 2
    assert table.estimation.tolist() == [[0, 10, 0]] * 2


def test_gather_makes_votes_of_two_stages_even_where_router_and_expert_share_a_sigma():
    streams = Dual((0.25, 0.5), 3, 0.5)
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
    table = Dual((0.25, 0.5), 3, 1.0).gather([], PLAN)
    assert isinstance(table, DualVotes)
    assert len(table) == 0
    assert table.router.answers == 2
    assert table.experts[0].answers == 3


def test_gather_refuses_an_unfinished_stream():
    streams = Single((0.5,), 2)
    tally = Tally()
    tally.add(Unit("a", STREAM, 0, 9), np.array([[9, 0]]))
    with pytest.raises(UnusableVotes, match="finish the run first"):
        streams.gather([tally], PLAN)


def test_a_router_alone_has_no_class_streams_and_no_certificate():
    streams = Assigned((0.25, 0.5), 0, 0.5)
    assert streams.streams == {Stream(Stage.ROUTER, Part.ESTIMATION, 0.5): 2}
    tally = full_tally(streams)
    assert streams.gather([tally], PLAN).estimation.tolist() == [[0, 10]]
    with pytest.raises(BadSetting, match="a router alone"):
        streams.own_rule()
    with pytest.raises(UnusableVotes, match="assigned sigmas, and no certificate"):
        streams.view(streams.gather([tally], PLAN))
