"""Recipes over recipes, recipes for rounds, and bundles."""

import pytest

from dualrs.config import load_any, load_recipe, load_rounds
from dualrs.errors import BadRecipe

ROUNDS = """
data = "cifar10:train"
test = "cifar10:test"
[start]
classifier = "zoo:a | net.py:make < weights.safetensors"
sigmas = [0.25, 0.5]
sigma_e = 0.5
[router]
denoiser = "zoo:a"
network_args = {widths = [8], blocks = [1]}
"""


@pytest.fixture
def write(tmp_path):
    def write(text, name="recipe.toml"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write


def test_defaults_of_rounds_are_the_papers(write):
    recipe = load_rounds(write(ROUNDS))
    router, tune = recipe.router, recipe.finetune
    assert recipe.rounds == ("router", "classifier", "router")
    assert (recipe.label.n, recipe.assign.n) == (100, 100)
    assert (router.epochs, router.batch_size, router.rate, router.weight_decay, router.halve_every) == (
        90, 256, 0.01, 0.01, 30,
    )  # fmt: skip
    assert (router.consistency_weight, router.entropy_weight, router.noise_copies, router.gate) == (
        40,
        0.5,
        2,
        "strong",
    )
    assert (tune.epochs, tune.batch_size, tune.rate, tune.weight_decay) == (15, 128, 2e-5, 0.01)


def test_a_base_lies_below_key_by_key(write):
    write(ROUNDS)
    recipe = load_rounds(write('base = "recipe.toml"\nrounds = ["router"]\n[start]\nsigma_e = 1.0\n', "over.toml"))
    assert recipe.start.sigma_e == 1.0
    assert recipe.start.sigmas == (0.25, 0.5)
    assert recipe.rounds == ("router",)


def test_the_arguments_of_a_network_are_replaced_whole(write):
    write(ROUNDS)
    over = write('base = "recipe.toml"\n[router]\nnetwork = "resnet20"\nnetwork_args = {}\n', "over.toml")
    assert load_rounds(over).router.network_args == {}


def test_experts_take_the_place_of_a_classifier(write):
    write(ROUNDS)
    text = 'base = "recipe.toml"\nrounds = ["router"]\n[start.experts]\n"0.25" = "a:b"\n"0.5" = "c:d"\n'
    start = load_rounds(write(text, "over.toml")).start
    assert (start.classifier, start.experts) == (None, {0.25: "a:b", 0.5: "c:d"})


def test_references_mean_files_beside_the_recipe_that_names_them(write, tmp_path):
    write(ROUNDS)
    over = write('base = "../recipe.toml"\n[router]\nnetwork = "own.py:make"\n', "below/over.toml")
    recipe = load_rounds(over)
    assert recipe.start.classifier == f"zoo:a | {tmp_path}/net.py:make < {tmp_path}/weights.safetensors"
    assert recipe.router.network == f"{tmp_path}/below/own.py:make"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('base = "recipe.toml"\n', "its own base"),
        ("base = 3\n", "path of another recipe"),
        ('base = "none.toml"\n', "cannot read"),
        ('base = "a\\u0000b"\n', "no file has the name"),
    ],
)
def test_a_base_that_is_none_is_refused(write, text, complaint):
    with pytest.raises(BadRecipe, match=complaint):
        load_any(write(text))


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("sigma_e = 0.5", "sigma_e = 0.4", "below the largest sigma 0.5"),
        ("sigmas = [0.25, 0.5]", "sigmas = [0.5, 0.25]", "rise"),
        ("sigmas = [0.25, 0.5]", "sigmas = [0.5]", "start.sigmas"),
        ("sigmas = [0.25, 0.5]", "sigmas = [0.25, 0.5]\nexperts = {'0.25' = 'a:b'}", "either a classifier or experts"),
        ("[router]", "[router]\nlambda = 40", "router.lambda: unknown key"),
        ("[router]", "[router]\ngate = 'iron'", "router.gate"),
        ("[router]", "[routr]", "routr: unknown key"),
        ("[start]", "rounds = ['classifier']\n[start]", "begin with a router"),
        ("[start]", "rounds = ['router', 'router']\n[start]", "alternate"),
        ("[start]", "rounds = []\n[start]", "begin with a router"),
    ],
)
def test_what_makes_no_sense_is_refused(write, old, new, complaint):
    with pytest.raises(BadRecipe, match=complaint):
        load_rounds(write(ROUNDS.replace(old, new)))


def test_experts_are_not_fine_tuned(write):
    text = ROUNDS.replace('classifier = "zoo:a | net.py:make < weights.safetensors"', "")
    text = text.replace("sigma_e = 0.5", "sigma_e = 0.5\nexperts = {'0.25' = 'a:b', '0.5' = 'c:d'}")
    with pytest.raises(BadRecipe, match="experts stay as they are"):
        load_rounds(write(text))
    assert load_rounds(write('rounds = ["router"]\n' + text)).start.experts == {0.25: "a:b", 0.5: "c:d"}


def test_a_recipe_with_a_start_is_for_rounds(write):
    assert type(load_any(write(ROUNDS))).__name__ == "RoundsRecipe"
    one = 'data = "a:b"\n[model]\nclassifier = "a:b"\nsigma = 0.5\n'
    assert type(load_any(write(one))).__name__ == "Recipe"


def test_a_folder_that_is_no_bundle_is_refused(tmp_path):
    with pytest.raises(BadRecipe, match=r"is not a bundle: it has no bundle\.toml"):
        load_recipe(None, {}, bundle=tmp_path)


def test_a_bundle_and_a_recipe_with_a_model_are_one_too_many(write, tmp_path):
    recipe = write('data = "a:b"\n[model]\nclassifier = "a:b"\nsigma = 0.5\n')
    with pytest.raises(BadRecipe, match="not both"):
        load_recipe(recipe, {}, bundle=tmp_path)
