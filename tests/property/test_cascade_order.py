"""Rule `cascade` against rule `multiscale` on the same votes, and against itself with more evidence or less."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from random_cascades import cascades, unsampled
from random_votes import another, crowded, move

from dualrs.certificates import Certificates
from dualrs.certificates.multiscale import multiscale
from dualrs.schemes.cascade import CascadeVotes, helpful_stages
from dualrs.schemes.form import Form
from dualrs.theory.budget import ErrorBudget

ROUNDING = 1e-9  # two routes to the same quantile differ by about this, relatively


def assert_no_better(after, before):
    assert (after.radius <= before.radius * (1 + ROUNDING) + 1e-12).all()
    assert before.abstained[~after.abstained].sum() == 0


@crowded
@given(cascades(passing=False, limits=False, fewest=2), st.booleans())
def test_cascade_is_never_below_multiscale_where_both_are_about_the_same_class(crowd, pair):
    """At such an alpha that no bound has a smaller level than that of multiscale.

    Its lower bounds have alpha/2: here alpha'/K or, in the pair form of the last stage, half of that.
    """
    count = len(crowd.stages)
    pair = pair and crowd.stages[0].answers > 2
    factor = count if pair else count / 2
    alpha = min(crowd.alpha, 0.9 / factor)
    mine, theirs = ErrorBudget(factor * alpha).cascade(count), ErrorBudget(alpha).multiscale()
    assert all(m.lower >= theirs.lower * (1 - ROUNDING) and m.upper >= theirs.upper * (1 - ROUNDING) for m in mine)
    limits = () if pair else (0.5,) * count
    found = type(crowd)(crowd.stages, limits or (None,) * count, factor * alpha, crowd.rng).certify()
    baseline = Certificates.conclude(multiscale(crowd.stages, alpha))
    same = ~baseline.abstained & (baseline.prediction == found.selected)
    assert (found.radius[same] >= baseline.radius[same] * (1 - ROUNDING) - 1e-12).all()


@crowded
@given(cascades(fewest=2))
def test_more_votes_for_the_class_never_lower_the_radius(crowd):
    """Estimation votes of any stage moved to the class from another or, where there are any, from the passes."""
    label = crowd.label
    more = []
    for stage in crowd.stages:
        moved = move(crowd.rng, stage, another(crowd.rng, label, stage.answers), label)
        if stage.passes:
            moved = move(crowd.rng, moved, np.full(len(label), stage.classes), label)
        more.append(moved if crowd.rng.random() < 0.7 else stage)
    assert_no_better(crowd.certify(), crowd.certify(more))


@crowded
@given(cascades(fewest=2))
def test_votes_for_another_class_that_pass_instead_never_lower_the_radius(crowd):
    """Nor raise it where they come from the class itself."""
    label = crowd.label
    for source, better in ((lambda s: another(crowd.rng, label, s.classes), True), (lambda s: label, False)):
        changed = [
            move(crowd.rng, s, source(s), np.full(len(label), s.classes)) if s.passes else s for s in crowd.stages
        ]
        before, after = crowd.certify(), crowd.certify(changed)
        assert_no_better(*((before, after) if better else (after, before)))


@crowded
@given(cascades(fewest=2))
def test_stage_without_its_votes_never_raises_the_radius(crowd):
    gone = [crowd.rng.random(len(s)) < 0.4 for s in crowd.stages]
    less = crowd.certify([unsampled(s, g) for s, g in zip(crowd.stages, gone, strict=True)])
    assert_no_better(less, crowd.certify())
    np.testing.assert_array_equal(less.selected, crowd.certify().selected)  # the class is that of selection votes


@crowded
@given(cascades(fewest=2))
def test_smaller_alpha_never_raises_the_radius(crowd):
    assert_no_better(crowd.certify(alpha=crowd.alpha / 2), crowd.certify())


@crowded
@given(cascades(passing=False, fewest=2))
def test_sampling_only_stages_that_can_help_gives_the_radius_of_sampling_all(crowd):
    """Stage after stage, each asked only where the best of votes there and below could raise the radius."""
    form = Form((), tuple(c or 0.5 for c in crowd.thresholds[:-1]))
    kept = np.zeros((len(crowd.stages), len(crowd.stages[0])), dtype=bool)
    for _ in crowd.stages:
        heard = CascadeVotes(tuple(unsampled(s, ~k) for s, k in zip(crowd.stages, kept, strict=True)))
        wanted = helpful_stages(heard, crowd.alpha, form)
        assert not (wanted & kept).any()
        assert (wanted.sum(axis=0) <= 1).all()
        kept |= wanted
    limited = type(crowd)(crowd.stages, (*form.thresholds, None), crowd.alpha, crowd.rng)
    thrifty = limited.certify([unsampled(s, ~k) for s, k in zip(crowd.stages, kept, strict=True)])
    np.testing.assert_array_equal(thrifty.radius, limited.certify().radius)
    np.testing.assert_array_equal(thrifty.prediction, limited.certify().prediction)
