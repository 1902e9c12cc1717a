"""Models in which a network sees no noise: how they are made, from Python and from recipes, and what is refused."""

import numpy as np
import pytest
import torch

from dualrs import Ace, Backed, DualSmoothed, Mixed
from dualrs.config import ModelSection, Recipe
from dualrs.errors import BadModel, BadRecipe, BadSetting
from dualrs.models.stated import Statement
from dualrs.pipeline.build import build_again, build_model
from small import Small, plain_net

IMAGES = np.random.default_rng(0).integers(0, 256, (4, 1, 6, 6), dtype=np.uint8)
SIGMAS = (0.25, 0.5)
SETTINGS = {"n": 300, "n0": 20, "alpha": 0.01, "seed": 3}


class Sure(torch.nn.Module):
    """Always one answer, up to some distance."""

    def __init__(self, answer, radius, answers=3):
        super().__init__()
        self.said = answer, radius, answers
        self.eval()

    def forward(self, x):
        return torch.eye(self.said[2])[self.said[0]].expand(len(x), -1) + 0 * x.mean()

    def state(self, pixels):
        answer, radius, answers = self.said
        return Statement(torch.full((len(pixels),), answer), torch.full((len(pixels),), radius).double(), answers)


def test_core_that_is_chosen_gives_its_class_and_radius():
    found = Ace(Sure(0, 0.5), Small(7), SIGMAS, core=Sure(2, 1.25)).certify(IMAGES, **SETTINGS)
    assert found.prediction.tolist() == [2] * 4
    assert found.radius.tolist() == [0.5] * 4  # as far as the choice stands
    assert set(found.sigma_c.tolist()) == {0.0}
    assert found[0].limited_by == "router"


def test_expert_has_all_of_alpha_behind_a_router_without_noise():
    classifier = Small(7)
    found = Ace(Sure(1, 3.0, 2), classifier, SIGMAS).certify(IMAGES, rule="ace", **SETTINGS)
    dual = DualSmoothed(Sure(1, 0.0, 2), classifier, SIGMAS, 0.5, share=False).certify(IMAGES, rule="paper", **SETTINGS)
    assert (found.r_c > dual.r_c).all()  # on the same votes, at half of alpha
    assert (found.r_sigma == 3.0).all()


def test_core_that_answers_otherwise_does_not_help_the_class():
    agreeing, other = (
        Mixed(Sure(1, 0.0, 2), Sure(0, 0.0), Sure(y, 3.0), (0.25,), 0.5).sample(IMAGES, **SETTINGS).certify()
        for y in (0, 2)
    )
    assert agreeing.prediction.tolist() == other.prediction.tolist() == [0] * 4
    assert (agreeing.r_sigma == 3.0).all()
    assert (other.r_sigma < 3.0).all()


def test_core_answers_where_no_stage_is_sure():
    """Three networks that never agree with themselves: the class is the core's, as far as no stage wakes up."""
    model = Backed(plain_net(13), Sure(2, 0.5), (4.0, 8.0))
    found = model.certify(IMAGES, **SETTINGS)
    assert set(found.selected.tolist()) <= {0, 1, 2}
    alone = model.sample(IMAGES, **SETTINGS).certify("stated")
    assert alone.prediction.tolist() == [2] * 4
    assert alone.radius.tolist() == [0.5] * 4


def test_adaptive_run_of_a_backed_cascade_claims_no_more_than_it_shows():
    model = Backed(Small(7), plain_net(4), SIGMAS)
    fixed, adaptive = (model.certify(IMAGES, budget=b, **SETTINGS | {"n": 1000}) for b in ("fixed", "adaptive"))
    assert (adaptive.radius <= fixed.radius + 0.02).all()
    assert (adaptive.prediction >= 0).any()


# Refusals


def test_core_with_other_classes_is_refused():
    with pytest.raises(BadModel, match=r"different numbers of classes: \[3, 4\]"):
        Backed(Small(7), plain_net(4, answers=4), SIGMAS).certify(IMAGES, **SETTINGS)


def test_router_with_too_few_answers_is_refused():
    with pytest.raises(BadModel, match="the router has 2 answers, and there are 3 candidates"):
        Ace(plain_net(4, answers=2), Small(7), SIGMAS, core=plain_net(4)).certify(IMAGES, **SETTINGS)


def test_network_that_states_no_radius_is_refused():
    with pytest.raises(BadModel, match="the core network is asked without noise and has to state a radius"):
        Backed(Small(7), Small(6), SIGMAS)


def test_router_with_nothing_to_choose_is_refused():
    with pytest.raises(BadSetting, match="at least two candidates"):
        Ace(plain_net(4), Small(7), (0.5,))


@pytest.mark.parametrize(("rule", "kind"), [("paper", Ace), ("nosplit", Ace), ("ace", Mixed), ("cascade", Mixed)])
def test_rule_that_does_not_fit_is_refused(rule, kind):
    parts = (plain_net(4), Small(7), SIGMAS) if kind is Ace else (Small(6), Small(7), plain_net(4), SIGMAS, 0.5)
    with pytest.raises(BadSetting, match=f"rule {rule} does not fit a"):
        kind(*parts).rule(rule)


def test_multiscale_is_not_for_a_stage_without_noise():
    with pytest.raises(BadSetting, match="knows no stage without noise"):
        Backed(Small(7), plain_net(4), SIGMAS).rule("multiscale")


# Recipes


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "net.py").write_text(
        "from small import Small, plain_net\nclassifier, router, core = Small(7), Small(6), plain_net(4)\n"
        "two = plain_net(4, answers=2)\n"
    )
    return tmp_path


GIVEN = {
    "backed": {"core": "net.py:core"},
    "mixed": {"router": "net.py:router", "sigma_e": 0.5, "core": "net.py:core"},
    "ace": {"router": "net.py:two", "sigma_e": 0},
}


@pytest.mark.parametrize("kind", GIVEN)
def test_recipe_says_which_kind_it_means(kind, folder):
    given = ModelSection(classifier="net.py:classifier", sigmas=SIGMAS, **GIVEN[kind])
    model = build_model(Recipe(title="", model=given, data="cifar10:subset"), folder)
    assert model.kind.name == kind
    assert model.kind.sigmas == SIGMAS


def test_core_of_a_run_has_to_be_named_again(folder, monkeypatch):
    monkeypatch.chdir(folder)
    kind = Ace(plain_net(4), Small(7), SIGMAS, core=plain_net(4)).kind
    with pytest.raises(BadRecipe, match="name its core"):
        build_again(kind, {"router": "net.py:core", "classifier": "net.py:classifier"})
    named = {"router": "net.py:core", "classifier": "net.py:classifier", "core": "net.py:core"}
    assert build_again(kind, named).kind == kind


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"core": "k", "sigma": 0.5}, "thresholds"),
        ({"core": "k", "sigmas": SIGMAS, "thresholds": (0.5,)}, "states a radius of its own"),
    ],
)
def test_recipe_that_mixes_kinds_is_refused(given, complaint):
    with pytest.raises(ValueError, match=complaint):
        ModelSection(classifier="c", **given)
