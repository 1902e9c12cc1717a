"""Blocks: counts of few answers byte by byte, of many answers only those that are not zero."""

import zlib

import numpy as np
import pytest

from dualrs.errors import UnusableVotes
from dualrs.storage.blocks import FEW, Dense, Sparse, packing_of
from dualrs.votes import BLOCK, Part, Stage, Stream, Unit

STREAM = Stream(Stage.CLASS, Part.ESTIMATION, 0.5)


def unit(votes):
    return Unit("x", STREAM, 0, votes)


def counts(rng, votes, answers, likely=3):
    """Blocks of votes that go to a few answers."""
    p = np.zeros(answers)
    p[rng.choice(answers, likely, replace=False)] = 1 / likely
    sizes = [min(BLOCK, votes - start) for start in range(0, votes, BLOCK)]
    return rng.multinomial(sizes, p)


@pytest.mark.parametrize("kind", [Dense, Sparse])
@pytest.mark.parametrize("answers", [2, 10, 5000])
@pytest.mark.parametrize("votes", [1, 100, 950, 1000])
def test_counts_come_back(kind, answers, votes):
    rng = np.random.default_rng(votes)
    tables = [counts(rng, votes, answers, likely=min(answers, 7)) for _ in range(3)]
    packing = kind(answers)
    raws = [packing.packed(table) for table in tables]
    for table, raw in zip(tables, raws, strict=True):
        assert packing.whole(raw, packing.most(unit(votes)))
        np.testing.assert_array_equal(packing.table(raw, unit(votes)), table)
    np.testing.assert_array_equal(packing.summed(b"".join(raws)), sum(table.sum(axis=0) for table in tables))


def test_many_answers_take_no_more_room_than_few():
    """A thousand classes in five bins, against ten classes in one."""
    rng = np.random.default_rng(0)
    many = len(zlib.compress(packing_of(5000, 2).packed(counts(rng, 1000, 5000, likely=20)), 1))
    few = len(zlib.compress(packing_of(10, 2).packed(counts(rng, 1000, 10, likely=10)), 1))
    assert many < 15 * few
    assert len(packing_of(5000, 2).packed(counts(rng, 1000, 5000, likely=20))) <= 5 * 1000


def test_older_ledgers_and_few_answers_keep_every_count():
    assert isinstance(packing_of(5000, 1), Dense)
    assert isinstance(packing_of(FEW, 2), Dense)
    assert isinstance(packing_of(FEW + 1, 2), Sparse)


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"1234", id="a part of an entry"),
        pytest.param(bytes(5) * 1001, id="more entries than votes"),
    ],
)
def test_what_no_unit_can_have_is_not_whole(raw):
    packing = Sparse(5000)
    assert not packing.whole(raw, packing.most(unit(1000)))


def test_place_beyond_the_last_answer_is_refused():
    beyond = np.array([(10 * 5000, 1)], dtype=[("place", "<u4"), ("count", "u1")]).tobytes()
    with pytest.raises(UnusableVotes, match="beyond the last answer"):
        Sparse(5000).table(beyond, unit(1000))
