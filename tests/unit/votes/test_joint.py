"""Joint: votes with how sure the network was, from which those that pass are derived."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualrs.errors import BadSetting, UnusableVotes
from dualrs.theory.looks import planned_looks
from dualrs.votes import Joint, Part, SamplingPlan, Stage, Stream, Tally, check_confidences, gather

ESTIMATION = Stream(Stage.CLASS, Part.ESTIMATION, 0.5)
SELECTION = Stream(Stage.CLASS, Part.SELECTION, 0.5)


def drawn(rng, plan, pairs, inputs, sharpness=0.3):
    """Tallies of random votes for pairs of a class and a bin, some of them stopped before the last look."""
    tallies = []
    for _ in range(inputs):
        p, tally = rng.dirichlet(np.full(pairs, sharpness)), Tally()
        tally.put(SELECTION, 0, rng.multinomial(plan.n0, p))
        start = 0
        for look in plan.looks[: rng.integers(0, len(plan.looks) + 1)]:
            tally.put(ESTIMATION, start, rng.multinomial(look - start, p))
            start = look
        tallies.append(tally)
    return tallies


def naive(tallies, stream, classes, confidences, steps, confidence):
    """Vote by vote: a vote whose bin lies below the confidence is a pass."""
    bins = len(confidences) + 1
    out = np.zeros((len(tallies) * len(steps), classes + 1), dtype=np.int64)
    for i, tally in enumerate(tallies):
        for start, counts in tally.counts.get(stream, {}).items():
            step = sum(s <= start for s in steps)
            for answer in range(classes):
                for bin_ in range(bins):
                    reached = confidences[bin_ - 1] if bin_ else 0.0
                    column = answer if reached >= confidence else classes
                    out[i * len(steps) + step, column] += counts[answer * bins + bin_]
    return out


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 6), st.integers(0, 4), st.integers(0, 4), st.integers(0, 2**32 - 1), st.booleans())
def test_passing_counts_are_those_of_a_naive_count(classes, ends, inputs, seed, adaptive):
    confidences = (0.3, 0.4, 0.5, 0.6)[:ends]
    plan = SamplingPlan(20, 400, (100, 200, 400) if adaptive else ())
    tallies = drawn(np.random.default_rng(seed), plan, classes * (ends + 1), inputs)
    for stream in (SELECTION, ESTIMATION):
        steps = plan.steps(stream.part)
        joint = Joint.of(tallies, stream, classes, confidences, steps)
        for confidence in (0.0, *confidences):
            expected = naive(tallies, stream, classes, confidences, steps, confidence)
            np.testing.assert_array_equal(joint.passing(confidence), expected)
        np.testing.assert_array_equal(joint.by_class(), joint.passing(0.0)[:, :-1])
        assert not joint.passing(0.0)[:, -1].any()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_votes_that_may_pass_are_the_same_votes_at_every_look(seed, adaptive):
    """As many of them, in every part, and from look to look; a pass is an answer, and no class."""
    confidences, classes = (0.3, 0.5), 4
    plan = SamplingPlan(20, 400, (100, 200, 400) if adaptive else ())
    rng = np.random.default_rng(seed)
    tallies = drawn(rng, plan, classes * 3, 5)
    votes = gather(tallies, Stage.CLASS, 0.5, classes, plan, confidences)
    assert (votes.answers, votes.classes) == (classes, classes)
    for confidence in confidences:
        some = votes.confident(confidence)
        assert (some.answers, some.classes) == (classes + 1, classes)
        np.testing.assert_array_equal(some.sampled, votes.sampled)
        np.testing.assert_array_equal(some.selection.sum(axis=1), votes.selection.sum(axis=1))
        expected = naive(tallies, ESTIMATION, classes, confidences, plan.looks, confidence)
        np.testing.assert_array_equal(some.estimation, expected.reshape(5, -1, classes + 1).sum(axis=1))
        if adaptive:
            np.testing.assert_array_equal(some.segments, expected.reshape(5, 3, classes + 1))
    assert votes.confident(0.0) is votes


def test_gathered_without_confidences_is_gathered_with_them_and_all_bins_together():
    plan = SamplingPlan(20, 400, (100, 200, 400))
    tallies = drawn(np.random.default_rng(0), plan, 6, 4)
    merged = [
        Tally({s: {k: c.reshape(3, 2).sum(axis=1) for k, c in parts.items()} for s, parts in t.counts.items()})
        for t in tallies
    ]
    found, expected = gather(tallies, Stage.CLASS, 0.5, 3, plan, (0.4,)), gather(merged, Stage.CLASS, 0.5, 3, plan)
    for name in ("selection", "estimation", "segments"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_a_thousand_classes_at_all_looks_stay_small():
    """200 inputs, 18 looks, 5 bins: all pairs would be 144 MB, and those with votes are a few."""
    plan = SamplingPlan(100, 10_000, planned_looks(10_000))
    assert len(plan.looks) == 18
    rng = np.random.default_rng(0)
    tallies = []
    for _ in range(200):
        tally, start = Tally(), 0
        for look in plan.looks:
            few = np.zeros(5000, dtype=np.int32)
            few[rng.choice(5000, size=8, replace=False)] = rng.multinomial(look - start, np.full(8, 1 / 8))
            tally.put(ESTIMATION, start, few)
            start = look
        tallies.append(tally)
    confidences = (0.3, 0.4, 0.5, 0.6)
    tracemalloc.start()
    joint = Joint.of(tallies, ESTIMATION, 1000, confidences, plan.looks)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert joint.rows == 3600
    assert joint.row.nbytes + joint.pair.nbytes + joint.count.nbytes < 1e6
    assert held < 2e6
    assert peak < 10e6
    counts = joint.passing(0.6)
    np.testing.assert_array_equal(counts.reshape(200, 18, -1).sum(axis=(1, 2)), 10_000)


def test_confidence_that_was_not_recorded_is_refused():
    plan = SamplingPlan(20, 400)
    tallies = drawn(np.random.default_rng(0), plan, 9, 2)
    votes = gather(tallies, Stage.CLASS, 0.5, 3, plan, (0.3, 0.5))
    with pytest.raises(UnusableVotes, match=r"at the confidences 0, 0\.3, 0\.5, and not at 0\.4"):
        votes.confident(0.4)


def test_votes_that_do_not_tell_how_sure_the_network_was_cannot_pass():
    plan = SamplingPlan(20, 400)
    votes = gather(drawn(np.random.default_rng(0), plan, 3, 2), Stage.CLASS, 0.5, 3, plan)
    with pytest.raises(UnusableVotes, match=r"a confidence of 0\.4 is asked for; sample again with --confidences"):
        votes.confident(0.4)


@pytest.mark.parametrize("given_", [(0.3, 0.4), (0.0, 0.3, 0.4), [0.3, 0.4]], ids=str)
def test_confidences_may_begin_with_the_zero_of_the_first_bin(given_):
    assert check_confidences(given_) == (0.3, 0.4)


@pytest.mark.parametrize("given_", [(0.4, 0.3), (0.4, 0.4), (1.0,), (-0.1, 0.4), (0.3, 0.0), (float("nan"),)], ids=str)
def test_confidences_that_do_not_rise_or_are_no_probabilities_are_refused(given_):
    with pytest.raises(BadSetting, match="rising probabilities such as"):
        check_confidences(given_)
