"""Recipes: what is read, what is refused with which sentence, and that settings given by hand win."""

import numpy as np
import pytest

from dualrs import DualSmoothed, Smoothed
from dualrs.config import load_recipe
from dualrs.errors import BadImage, BadModel, BadRecipe, BadSetting, TrainingMode
from dualrs.pipeline.build import build_data, build_model

TWO_STAGES = """
title = "Two stages"
data = "net.py:test"

[model]
router = "net.py:router"
classifier = "net.py:classifier"
sigmas = [0.25, 0.5]
sigma_e = 0.5

[certify]
n = 500
seed = 7

[engine]
batch_size = 32
"""

ONE_SIGMA = """
data = "net.py:test"
[model]
classifier = "net.py:classifier"
sigma = 0.5
"""

EXPERTS = """
data = "net.py:test"
[model]
router = "net.py:router"
sigmas = [0.25, 0.5]
sigma_e = 1.0
[model.experts]
"0.25" = "net.py:classifier"
"0.5" = "net.py:router"
"""


def read(tmp_path, text, **overrides):
    path = tmp_path / "recipe.toml"
    path.write_text(text)
    return load_recipe(path, overrides)


# What is read


def test_recipe_is_read_with_its_defaults(tmp_path):
    recipe = read(tmp_path, TWO_STAGES)
    assert recipe.title == "Two stages"
    assert recipe.model.sigmas == (0.25, 0.5)
    assert (recipe.certify.n, recipe.certify.n0, recipe.certify.alpha, recipe.certify.seed) == (500, 100, 0.001, 7)
    assert recipe.certify.rule is None
    assert (recipe.engine.batch_size, recipe.engine.device, recipe.engine.dtype) == (32, None, "float32")


def test_one_sigma_needs_no_more_than_a_classifier_and_data(tmp_path):
    recipe = read(tmp_path, ONE_SIGMA)
    assert (recipe.model.classifier, recipe.model.sigma) == (f"{tmp_path}/net.py:classifier", 0.5)
    assert recipe.certify.n == 10_000


def test_experts_are_named_by_their_sigma(tmp_path):
    named = {0.25: f"{tmp_path}/net.py:classifier", 0.5: f"{tmp_path}/net.py:router"}
    assert read(tmp_path, EXPERTS).model.experts == named


def test_settings_alone_make_a_recipe():
    recipe = load_recipe(None, {"model": {"classifier": "a:b", "sigma": 0.5, "router": None}, "data": "c:d"})
    assert (recipe.model.classifier, recipe.data.source) == ("a:b", "c:d")


# Settings given by hand


def test_settings_given_by_hand_win(tmp_path):
    recipe = read(
        tmp_path,
        TWO_STAGES,
        data="mine:data",
        model={"sigmas": [0.5, 0.75], "sigma_e": 1.0, "router": None},
        certify={"n": 900, "rule": "paper", "seed": None},
        engine={"dtype": "bfloat16", "batch_size": None},
    )
    assert recipe.data.source == "mine:data"
    assert (recipe.model.sigmas, recipe.model.sigma_e) == ((0.5, 0.75), 1.0)
    assert recipe.model.router == f"{tmp_path}/net.py:router"
    assert (recipe.certify.n, recipe.certify.rule, recipe.certify.seed) == (900, "paper", 7)
    assert (recipe.engine.dtype, recipe.engine.batch_size) == ("bfloat16", 32)


def test_zero_given_by_hand_wins_too(tmp_path):
    assert read(tmp_path, TWO_STAGES, certify={"seed": 0}).certify.seed == 0


def test_nothing_given_by_hand_changes_nothing(tmp_path):
    untouched = read(tmp_path, TWO_STAGES)
    assert (
        read(tmp_path, TWO_STAGES, model={"sigma": None}, data=None, certify={}, engine={"device": None}) == untouched
    )


# What is refused


def without(text, line):
    assert line in text
    return text.replace(line, "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(TWO_STAGES + "batchsize = 3", "engine.batchsize: unknown key", id="a key misspelt"),
        pytest.param("batch = 3\n" + TWO_STAGES, "batch: unknown key", id="a key outside the sections"),
        pytest.param(TWO_STAGES + "[report]\nx = 1", "report: unknown key", id="an unknown section"),
        pytest.param(TWO_STAGES.replace("n = 500", "N = 500"), "certify.N: unknown key", id="a key in capitals"),
        pytest.param(without(TWO_STAGES, 'data = "net.py:test"'), "data: is missing", id="no data"),
        pytest.param('data = "a:b"', "model: is missing", id="no model"),
        pytest.param("", "model: is missing; data: is missing", id="an empty recipe"),
        pytest.param(
            without(TWO_STAGES, "sigma_e = 0.5"), "model: a router needs sigmas .* and sigma_e", id="no sigma_e"
        ),
        pytest.param(without(TWO_STAGES, "sigmas = [0.25, 0.5]"), "a router needs sigmas", id="no sigmas"),
        pytest.param(
            without(TWO_STAGES, 'router = "net.py:router"'),
            "without a router, give a classifier and one",
            id="no router",
        ),
        pytest.param(
            without(TWO_STAGES, 'classifier = "net.py:classifier"'),
            "give either a classifier or experts",
            id="no classifier",
        ),
        pytest.param(
            TWO_STAGES + '[model.experts]\n"0.25" = "a:b"\n"0.5" = "a:b"',
            "give either a classifier or experts",
            id="both classifier and experts",
        ),
        pytest.param(
            TWO_STAGES.replace("sigma_e = 0.5", "sigma_e = 0.5\nsigma = 0.5"),
            "with a router, give sigmas",
            id="both kinds",
        ),
        pytest.param(ONE_SIGMA.replace("sigma = 0.5", ""), "without a router, give .* one sigma", id="no sigma at all"),
        pytest.param(ONE_SIGMA + "sigma_e = 1.0", "without a router", id="sigma_e without a router"),
        pytest.param(TWO_STAGES.replace("n = 500", 'n = "many"'), "certify.n: .*integer", id="words for a number"),
        pytest.param(TWO_STAGES.replace("n = 500", 'n = "500"'), "certify.n: takes a number, got '500'", id="a text"),
        pytest.param(TWO_STAGES.replace("n = 500", "n = true"), "certify.n: takes a number, got True", id="true votes"),
        pytest.param(TWO_STAGES.replace("0.25, ", '"0.25", '), "model.sigmas: takes a number", id="a sigma as text"),
        pytest.param(
            TWO_STAGES.replace("[engine]", '[engine]\ncompile = "yes"'), "engine.compile: takes true or false", id="yes"
        ),
        pytest.param(TWO_STAGES.replace("n = 500", "n = 2.5"), "certify.n: .*integer", id="half a vote"),
        pytest.param(TWO_STAGES.replace("n = 500", "n = 0"), "certify.n: .*greater than or equal to 1", id="no votes"),
        pytest.param(TWO_STAGES.replace("n = 500", "n0 = 0"), "certify.n0: .*greater", id="no selection votes"),
        pytest.param(TWO_STAGES.replace("n = 500", "alpha = 0"), "certify.alpha: .*greater than 0", id="alpha zero"),
        pytest.param(TWO_STAGES.replace("n = 500", "alpha = 1"), "certify.alpha: .*less than 1", id="alpha one"),
        pytest.param(TWO_STAGES.replace("n = 500", "alpha = nan"), "certify.alpha:", id="an alpha that is no number"),
        pytest.param(TWO_STAGES.replace("batch_size = 32", "batch_size = 0"), "engine.batch_size: ", id="no batch"),
        pytest.param(TWO_STAGES.replace("[0.25, 0.5]", "0.25"), "model.sigmas: .*tuple", id="one number for a list"),
        pytest.param(TWO_STAGES.replace("[0.25, 0.5]", '["low"]'), "model.sigmas.0: .*number", id="a word for a sigma"),
        pytest.param(TWO_STAGES.replace('"net.py:test"', "3"), "data: .*string", id="a number for the data"),
        pytest.param(
            EXPERTS.replace('"0.25"', "low").replace("0.5 =", '"0.5" ='), "experts.low", id="a word for a key"
        ),
        pytest.param('model = 3\ndata = "a:b"', "model: ", id="a number for a section"),
        pytest.param('certify = "fast"\n' + ONE_SIGMA, "certify: ", id="a word for a section"),
        pytest.param('data = "a:b"\n[[model]]\nsigma = 1', "model: ", id="a list for a section"),
    ],
)
@pytest.mark.parametrize(
    "overrides", [{}, {"model": {"sigma": None}, "certify": {"n0": None}}], ids=["read", "with options of the command"]
)
def test_bad_recipe_is_refused_in_a_sentence(text, message, overrides, tmp_path):
    with pytest.raises(BadRecipe, match=message) as refusal:
        read(tmp_path, text, **overrides)
    assert "recipe.toml" in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert "Value error" not in str(refusal.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"[model\n", "is not valid TOML", id="a bracket missing"),
        pytest.param(b"n = 1\nn = 2\n", "is not valid TOML", id="a key twice"),
        pytest.param(b"title = '\xff\xfe'", "is not valid TOML", id="bytes that are no text"),
        pytest.param(b"title = " + b"[" * 100_000, "is not valid TOML", id="a nest without end"),
        pytest.param(b"title = " + b"9" * 5_000, "is not valid TOML", id="a number without end"),
    ],
)
def test_file_that_is_no_toml_is_refused(content, message, tmp_path):
    (tmp_path / "recipe.toml").write_bytes(content)
    with pytest.raises(BadRecipe, match=message):
        load_recipe(tmp_path / "recipe.toml", {})


def test_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(BadRecipe, match=r"cannot read the recipe .*none\.toml: No such file"):
        load_recipe(tmp_path / "none.toml", {})
    with pytest.raises(BadRecipe, match=r"cannot read the recipe .*directory"):
        load_recipe(tmp_path, {})


def test_settings_without_a_recipe_are_called_settings():
    with pytest.raises(BadRecipe, match=r"^the settings: data: is missing$"):
        load_recipe(None, {"model": {"classifier": "a:b", "sigma": 0.5}})


# From recipes to objects


NET = """
import numpy as np
import torch
from torch import nn

def network(answers):
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(4, answers)).eval()

router, classifier = network(2), network(2)
training = network(2).train()
function = lambda x: x
test = (np.zeros((3, 1, 2, 2), dtype=np.uint8), [0, 1, 0])
bare = np.zeros((3, 1, 2, 2), dtype=np.uint8)
wrong = np.zeros((3, 2, 2), dtype=np.int64)
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "net.py").write_text(NET)
    return tmp_path


def test_recipe_of_two_stages_becomes_its_model(folder):
    recipe = read(folder, TWO_STAGES)
    model = build_model(recipe, folder)
    assert isinstance(model, DualSmoothed)
    assert (model.sigmas, model.sigma_e, model.engine.batch_size) == ((0.25, 0.5), 0.5, 32)
    assert len({id(m.module) for m in model.experts.values()}) == 1


def test_recipe_of_experts_becomes_its_model(folder):
    model = build_model(read(folder, EXPERTS), folder)
    assert len({id(m.module) for m in model.experts.values()}) == 2


def test_recipe_of_one_sigma_becomes_its_model(folder):
    model = build_model(read(folder, ONE_SIGMA, engine={"dtype": "bfloat16"}), folder)
    assert isinstance(model, Smoothed)
    assert (model.sigmas, model.engine.dtype) == ((0.5,), "bfloat16")


def test_data_of_a_recipe_becomes_a_dataset(folder):
    dataset = build_data(read(folder, ONE_SIGMA).data, folder)
    assert (dataset.name, dataset.labels) == ("net.py:test", (0, 1, 0))
    np.testing.assert_array_equal(dataset.image(1), np.zeros((1, 2, 2)))
    assert build_data(read(folder, ONE_SIGMA, data="net.py:bare").data, folder).labels is None


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        pytest.param(
            {"classifier": "net.py:function"}, BadRecipe, "function that needs arguments", id="a function of x"
        ),
        pytest.param({"classifier": "net.py:bare"}, BadModel, "must be a torch.nn.Module.* got ndarray", id="an array"),
        pytest.param({"classifier": "net.py:training"}, TrainingMode, "call .eval", id="a network in training"),
        pytest.param({"classifier": "net.py:none"}, BadRecipe, "has no attribute 'none'", id="a name misspelt"),
        pytest.param({"sigma": -1}, BadSetting, "sigma must be positive", id="a negative sigma"),
    ],
)
def test_bad_model_of_a_recipe_is_refused(model, error, message, folder):
    with pytest.raises(error, match=message):
        build_model(read(folder, ONE_SIGMA, model=model), folder)


def test_experts_that_do_not_match_the_sigmas_are_refused(folder):
    text = EXPERTS.replace('"0.5" =', '"0.75" =')
    with pytest.raises(BadSetting, match=r"experts for sigmas \[0.25, 0.75\], but the candidates are \(0.25, 0.5\)"):
        build_model(read(folder, text), folder)


def test_bad_data_of_a_recipe_is_refused(folder):
    with pytest.raises(BadImage, match="must be uint8"):
        build_data(read(folder, ONE_SIGMA, data="net.py:wrong").data, folder)
    with pytest.raises(BadImage, match=r"net\.py:classifier is a Sequential; expected a dualrs dataset"):
        build_data(read(folder, ONE_SIGMA, data="net.py:classifier").data, folder)
