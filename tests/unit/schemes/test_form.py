"""Form: the settings in the name of rule `cascade`, read and written, and what is refused."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dualrs.certificates.cascade import cascade
from dualrs.errors import BadSetting
from dualrs.schemes import CascadeVotes, rule
from dualrs.schemes.form import Form
from dualrs.votes import SamplingPlan, Votes

confidences = st.lists(st.floats(0, 1, exclude_max=True), max_size=5).map(tuple)
thresholds = st.lists(st.floats(0.5, 1, exclude_max=True), max_size=5).map(tuple)
forms = st.builds(Form, confidences, thresholds)


@given(forms)
def test_name_reads_as_the_same_form(form):
    """To the last digit: the name is all that the header of a ledger keeps."""
    assert Form.parse(form.name) == form
    assert Form.parse(form.name).name == form.name


@given(forms)
def test_rule_of_a_name_has_its_form_and_its_name(form):
    found = rule(form.name)
    assert (found.name, found.form) == (form.name, form)
    assert found.reads is CascadeVotes
    assert found.guaranteed


@given(confidences, st.integers(0, 3))
def test_trailing_zeros_say_nothing(given_, zeros):
    assert Form(given_ + (0.0,) * zeros) == Form(given_)
    assert Form((*given_, -0.0)).name == Form(given_).name


@given(st.lists(st.floats(0.01, 0.99).map(lambda c: round(c, 2)), max_size=4).map(tuple))
def test_short_numbers_have_short_names(given_):
    name = Form(given_).name
    assert name == ("cascade-" + ",".join(f"{c:g}" for c in given_) if given_ else "cascade")


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("cascade", Form()),
        ("cascade-0.4", Form((0.4,))),
        ("cascade-0.40,0.30", Form((0.4, 0.3))),
        ("cascade-0,0.4", Form((0.0, 0.4))),
        ("cascade-0.4,0", Form((0.4,))),
        ("cascade@0.6", Form((), (0.6,))),
        ("cascade@0.5", Form((), (0.5,))),  # not the same as none: the last stage may be the first
        ("cascade-0.4,0.3@0.6", Form((0.4, 0.3), (0.6,))),
        ("cascade-1e-05", Form((1e-5,))),
        ("cascade-0.1234567891", Form((0.1234567891,))),
    ],
)
def test_names_and_their_forms(name, form):
    assert Form.parse(name) == form


def test_threshold_that_six_digits_cannot_say_is_kept():
    """Rounded to six it would be a threshold of 1, or another rule than the one that was run."""
    for threshold in (2 / 3, 0.99999999, 0.5 + 1e-12):
        assert rule(Form((), (threshold,)).name).form.thresholds == (threshold,)


@pytest.mark.parametrize(
    "name", ["multiscale", "multiscale-authors", "fusion", "cascades", "", "0.4", "@0.6", "Cascade"]
)
def test_names_of_other_rules_are_no_form(name):
    assert Form.parse(name) is None


@pytest.mark.parametrize(
    "name", ["cascade-", "cascade@", "cascade-@0.6", "cascade-0.4@", "cascade-a", "cascade-0.4,", "cascade@0.6@0.7"]
)
def test_missing_and_other_words_than_numbers_are_refused(name):
    with pytest.raises(BadSetting, match=r"numbers such as cascade-0\.4,0\.3@0\.6"):
        Form.parse(name)


@pytest.mark.parametrize("name", ["cascade-1", "cascade-1.5", "cascade--0.1", "cascade-nan", "cascade-inf,0.4"])
def test_confidence_that_is_no_probability_is_refused(name):
    with pytest.raises(BadSetting, match="confidences of a cascade lie between 0 and 1"):
        Form.parse(name)


@pytest.mark.parametrize("name", ["cascade@0.49999999", "cascade@0", "cascade@1", "cascade@0.6,0.4", "cascade@nan"])
def test_threshold_below_one_half_is_refused(name):
    with pytest.raises(BadSetting, match="thresholds of a cascade are at least 1/2"):
        Form.parse(name)


def test_form_has_to_fit_the_run():
    Form((0.4, 0.0, 0.3), (0.6,)).check(3, (0.3, 0.4))
    with pytest.raises(BadSetting, match=r"cascade-0\.4,0\.4,0\.4 speaks of more stages than there are: 2 sigmas"):
        Form((0.4,) * 3).check(2, (0.4,))
    with pytest.raises(BadSetting, match="speaks of more stages"):
        Form((), (0.6,) * 3).check(2, ())
    with pytest.raises(BadSetting, match=r"sure at 0\.35, and the votes are recorded at 0,0\.3,0\.4"):
        Form((0.35,)).check(3, (0.3, 0.4))
    with pytest.raises(BadSetting, match="the votes do not tell it; give the run other --confidences"):
        Form((0.4,)).check(3, ())


@given(forms, st.integers(1, 6))
def test_every_stage_has_a_threshold_or_none(form, stages):
    assume(len(form.thresholds) <= stages)
    limits = form.limits(stages)
    assert len(limits) == stages
    assert tuple(c for c in limits if c is not None) == form.thresholds


def test_stages_come_the_noisiest_first_and_experts_in_their_own_order():
    plan = SamplingPlan(1, 4)
    experts = tuple(Votes(s, np.array([[1, 0]]), np.array([[4, 0]]), plan) for s in (0.5, 1.0, 0.25))
    assert [e.sigma for e in Form().stages(experts)] == [1.0, 0.5, 0.25]
    assert [e.sigma for e in Form().heard(experts)] == [0.5, 1.0, 0.25]


def test_thresholds_reach_the_rule():
    """The noisiest stage first, as the name lists them."""
    plan = SamplingPlan(10, 100)
    counts = {1.0: [[80, 15, 5]], 0.5: [[70, 25, 5]]}
    votes = CascadeVotes(tuple(Votes(s, np.array([[9, 1, 0]]), np.array(counts[s]), plan) for s in (0.5, 1.0)))
    found = rule("cascade@0.6,0.55").certify(votes, 0.05)
    expected = cascade(votes.falling, 0.05, (0.6, 0.55))
    np.testing.assert_array_equal(found.radius, expected.radius)
    assert found.radius[0] != rule("cascade").certify(votes, 0.05).radius[0]
