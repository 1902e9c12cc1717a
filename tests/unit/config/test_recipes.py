"""The recipes that come with dualrs: all can be read, open as recipes do, and state the numbers of the paper."""

import re
import tomllib
from pathlib import Path

import pytest
from pydantic import BaseModel

from dualrs.config import BUNDLED, ClassifierRecipe, Recipe, RoundsRecipe, load_any, recipe_path
from dualrs.errors import BadRecipe
from dualrs.models.architectures import CLASSIFIERS
from dualrs.schemes import rule
from dualrs.training.methods import METHODS, choose
from dualrs.training.noise import OneOf

FOLDER = BUNDLED
RECIPES = sorted(FOLDER.rglob("*.toml"))
TOGETHER = ("experts", "network_args", "method_args")  # tables that a recipe replaces as a whole


def name(path):
    return path.relative_to(FOLDER).with_suffix("").as_posix()


def content(path):
    return tomllib.loads(path.read_text(encoding="utf-8"))


def flat(table, place=()):
    """A table of tables as {"section.key": value}."""
    found = {}
    for key, value in table.items():
        if isinstance(value, dict) and key not in TOGETHER:
            found |= flat(value, (*place, key))
        else:
            found[".".join((*place, key))] = value
    return found


def less_folders(reference):
    """A reference without the folders of the files that it names."""
    return re.sub(r":[^|\s]*/", ":", reference)


def settings(path):
    return flat(load_any(path).model_dump())


WITH_BASE = [path for path in RECIPES if "base" in content(path)]
every_recipe = pytest.mark.parametrize("path", RECIPES, ids=name)


# What every recipe has


@every_recipe
def test_recipe_can_be_read_and_has_a_title(path):
    assert load_any(path).title


@every_recipe
def test_recipe_goes_by_its_name_and_its_paths_start_at_the_working_folder(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert recipe_path(name(path)) == path
    text = load_any(recipe_path(name(path))).model_dump_json()
    assert str(FOLDER) not in text
    for file in re.findall(r"openai:([^ |?\"]*)", text):
        assert Path(file).parent == tmp_path


def test_a_file_comes_before_a_recipe_of_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("quickstart").write_text("")
    assert recipe_path("quickstart") == Path("quickstart")


def test_a_base_is_named_too_and_a_path_in_it_starts_beside_the_recipe(tmp_path):
    (tmp_path / "mine.toml").write_text('base = "quickstart"\ntitle = "mine"\n')
    assert load_any(tmp_path / "mine.toml").model == load_any(FOLDER / "quickstart.toml").model
    (tmp_path / "lost.toml").write_text('base = "nowhere"\n')
    with pytest.raises(BadRecipe, match=rf"{re.escape(str(tmp_path / 'nowhere'))}.*comes with dualrs: cifar10-cpu, "):
        load_any(tmp_path / "lost.toml")


@every_recipe
def test_recipe_opens_with_what_it_is_and_its_command(path):
    text = path.read_text(encoding="utf-8")
    opening = re.match(r"(?:#.*\n)+", text)[0]
    heads = re.findall(r"^# (What|Command|Cost|Expected): \S", opening, re.MULTILINE)
    recipe = load_any(path)
    wanted = ["What", "Command"] if isinstance(recipe, Recipe) else ["What", "Command", "Cost", "Expected"]
    assert heads[: len(wanted)] == wanted
    match recipe:
        case Recipe():
            assert f"# Command: dualrs certify {name(path)}" in opening
        case RoundsRecipe():
            assert f"# Command: dualrs rounds {name(path)}" in opening
            assert f"dualrs certify --model runs/{path.stem}/bundle" in opening
        case ClassifierRecipe():
            trained = re.search(rf"# Command: dualrs train classifier (\S+) --recipe {name(path)} ", opening)[1]
            assert re.search(rf"dualrs certify --classifier .*{re.escape(trained)}", opening)


@every_recipe
def test_recipe_names_a_rule_and_a_router_that_exist(path):
    recipe = load_any(path)
    if isinstance(recipe, ClassifierRecipe):
        assert recipe.classifier.network in CLASSIFIERS
        return
    assert rule(recipe.certify.rule).name == recipe.certify.rule
    if isinstance(recipe, RoundsRecipe):
        assert recipe.router.network in CLASSIFIERS


def test_no_two_recipes_share_a_folder_of_results():
    stems = [path.stem for path in RECIPES]
    assert sorted(set(stems)) == sorted(stems)


SECTIONS = {
    "quickstart.toml": ("model", "data", "certify", "engine"),
    "cifar10-paper.toml": (
        "data", "test", "start", "label", "router", "assign", "finetune", "certify", "engine",
    ),
    "methods/gaussian.toml": ("data", "test", "classifier"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("recipe", "section"), [(r, s) for r, sections in SECTIONS.items() for s in ("", *sections)], ids=str
)
def test_unknown_key_is_refused_by_name(recipe, section, tmp_path):
    header = f"[{section}]\n" if section else ""
    path = tmp_path / "changed.toml"
    path.write_text(f'base = "{(FOLDER / recipe).as_posix()}"\n{header}lamda = 1\n')
    place = f"{section}.lamda" if section else "lamda"
    with pytest.raises(BadRecipe, match=rf"changed\.toml: {re.escape(place)}: unknown key$"):
        load_any(path)


def test_sections_of_the_last_test_are_all_there_are():
    for recipe, sections in SECTIONS.items():
        loaded = load_any(FOLDER / recipe).model_dump()
        assert {key for key, value in loaded.items() if isinstance(value, dict)} == set(sections)


# The paper's settings: section 6 and appendix C.1

PAPER = {
    "cifar10-paper": {
        "rounds": ("router", "classifier", "router"),
        "start.sigmas": (0.25, 0.5, 1.0),
        "start.sigma_e": 1.0,
        "label.inputs": "::",
        "label.n": 100,
        "router.network": "resnet110",
        "router.epochs": 90,
        "router.batch_size": 256,
        "router.rate": 0.01,
        "router.weight_decay": 0.01,
        "router.halve_every": 30,
        "router.consistency_weight": 40,
        "router.entropy_weight": 0.5,
        "router.noise_copies": 2,
        "router.gate": "strong",
        "router.balanced": True,
        "router.hard": False,
        "assign.inputs": "::",
        "finetune.epochs": 15,
        "finetune.batch_size": 128,
        "finetune.rate": 2e-5,
        "finetune.weight_decay": 0.01,
        "certify.n": 10_000,
        "certify.alpha": 0.001,
        "certify.rule": "paper",
    },
    "imagenet-paper": {
        "rounds": ("router", "classifier"),
        "start.sigmas": (0.5, 1.0),
        "start.sigma_e": 1.0,
        "label.inputs": "::",
        "label.n": 100,
        "router.network": "resnet50",
        "router.epochs": 9,
        "router.batch_size": 200,
        "router.rate": 0.005,
        "router.weight_decay": 0.01,
        "router.halve_every": 3,
        "router.consistency_weight": 10,
        "router.entropy_weight": 0.5,
        "router.noise_copies": 2,
        "router.gate": "weak",
        "router.balanced": True,
        "router.hard": False,
        "assign.inputs": "2%",
        "finetune.epochs": 1,
        "finetune.batch_size": 32,
        "finetune.rate": 2e-5,
        "finetune.weight_decay": 0.01,
        "certify.n": 10_000,
        "certify.alpha": 0.001,
        "certify.rule": "paper",
    },
}


@pytest.mark.parametrize("recipe", PAPER)
def test_the_papers_recipe_states_the_papers_numbers(recipe):
    path = FOLDER / f"{recipe}.toml"
    found = settings(path)
    assert {key: found[key] for key in PAPER[recipe]} == PAPER[recipe]
    assert set(PAPER[recipe]) <= set(flat(content(path))), "left to a default"


@pytest.mark.parametrize("recipe", PAPER)
def test_the_papers_router_stands_behind_the_denoiser_of_its_classifier(recipe):
    loaded = load_any(FOLDER / f"{recipe}.toml")
    denoiser, _, classifier = loaded.start.classifier.partition(" | ")
    assert (denoiser.partition(":")[0], classifier.partition(":")[0]) == ("openai", "transformers")
    assert loaded.router.denoiser == denoiser


@pytest.mark.parametrize("recipe", PAPER)
def test_the_papers_fine_tuning_keeps_its_rate(recipe):
    finetune = load_any(FOLDER / f"{recipe}.toml").finetune
    assert finetune.halve_every >= finetune.epochs


# The ablations: sections 6.1 and 6.2, appendix E

ABLATIONS = {
    "off-the-shelf": {"rounds": ("router",)},
    "router-classifier": {"rounds": ("router", "classifier")},
    "lambda-0": {"router.consistency_weight": 0},
    "lambda-10": {"router.consistency_weight": 10},
    "lambda-20": {"router.consistency_weight": 20},
    "lambda-80": {"router.consistency_weight": 80},
    "sigmas-0.25-0.5": {"start.sigmas": (0.25, 0.5), "start.sigma_e": 0.5},
    "sigmas-0.25-1": {"start.sigmas": (0.25, 1.0)},
    "sigmas-0.5-1": {"start.sigmas": (0.5, 1.0)},
    "sigmas-0.5-0.625": {"start.sigmas": (0.5, 0.625), "start.sigma_e": 0.625},
    "sigmas-0.25-0.5-0.75-1": {"start.sigmas": (0.25, 0.5, 0.75, 1.0)},
    "labels-n-1000": {"label.n": 1_000},
    "labels-n-10000": {"label.n": 10_000},
    "data-20-percent": {"label.inputs": "20%"},
    "data-60-percent": {"label.inputs": "60%"},
    "resnet20": {"router.network": "resnet20"},
    "resnet56": {"router.network": "resnet56"},
    "loss-hard": {"router.hard": True, "router.consistency_weight": 0, "router.entropy_weight": 0},
    "loss-soft": {"router.consistency_weight": 0, "router.entropy_weight": 0},
    "loss-soft-weak": {"router.gate": "weak"},
}


@pytest.mark.parametrize("path", WITH_BASE, ids=name)
def test_recipe_differs_from_its_base_in_exactly_the_keys_it_names(path):
    named = content(path)
    ours, theirs = settings(path), settings(path.parent / named.pop("base"))
    assert {key for key in ours if ours[key] != theirs[key]} == set(flat(named))


@pytest.mark.parametrize("ablation", ABLATIONS)
def test_ablation_differs_from_the_papers_recipe_in_one_thing(ablation):
    ours, paper = settings(FOLDER / "ablations" / f"{ablation}.toml"), settings(FOLDER / "cifar10-paper.toml")
    rounds = {"rounds": ("router",)}  # most are made with the off-the-shelf classifier
    assert {k: v for k, v in ours.items() if v != paper[k] and k != "title"} == rounds | ABLATIONS[ablation]


@pytest.mark.parametrize("path", sorted((FOLDER / "ablations").glob("sigmas-*.toml")), ids=name)
def test_routers_own_sigma_is_the_largest_candidate(path):
    start = load_any(path).start
    assert start.sigma_e == max(start.sigmas)


@pytest.mark.parametrize("pool", ["experts-weak", "experts-strong"])
def test_routing_over_experts_is_otherwise_the_papers_recipe(pool):
    loaded = load_any(FOLDER / "ablations" / f"{pool}.toml")
    ours, paper = flat(loaded.model_dump()), settings(FOLDER / "cifar10-paper.toml")
    differing = {key for key in ours if ours[key] != paper[key]}
    assert differing == {
        "title", "rounds", "start.classifier", "start.experts", "start.sigmas", "router.balanced",
    }  # fmt: skip
    assert (loaded.rounds, loaded.start.sigmas, loaded.router.balanced) == (("router",), (0.25, 1.0), False)
    assert less_folders(loaded.router.denoiser) == less_folders(paper["router.denoiser"])


def test_weak_experts_are_the_off_the_shelf_classifier():
    weak = load_any(FOLDER / "ablations" / "experts-weak.toml").start.experts
    paper = load_any(FOLDER / "cifar10-paper.toml").start.classifier
    assert {less_folders(reference) for reference in weak.values()} == {less_folders(paper)}


def test_every_ablation_is_listed_here():
    found = {path.stem for path in (FOLDER / "ablations").glob("*.toml")}
    assert found == {*ABLATIONS, "experts-weak", "experts-strong"}


# The field's methods

METHOD_RECIPES = sorted(path for path in (FOLDER / "methods").glob("*.toml") if path.stem != "small")


def test_every_method_has_a_recipe():
    assert {path.stem for path in METHOD_RECIPES} == set(METHODS)


@pytest.mark.parametrize("path", METHOD_RECIPES, ids=name)
def test_recipe_of_a_method_is_as_the_field_trains(path):
    found = load_any(path).classifier
    assert (found.network, found.epochs, found.optimizer, found.drop_at) == ("resnet110", 150, "sgd", (50, 100))
    assert (found.rate, found.weight_decay, found.method, found.method_args) == (0.1, 1e-4, path.stem, {})
    images = found.batch_size // choose(found.method, OneOf((0.25,)), found.epochs, {}).copies
    assert images == {"gaussian": 256, "consistency": 128, "smoothmix": 128}.get(path.stem, 64)


# Their page


PAGE = (Path(__file__).parents[3] / "docs" / "recipes.md").read_text(encoding="utf-8")
DOCUMENTED = {
    (title.strip(), key): default
    for title, text in re.findall(r"^### (\w+)\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    for key, default in re.findall(r"^\| `(\w+)` \| (.*?) \|", text, re.MULTILINE)
}


SECTION_KINDS = {
    section: field.annotation
    for section, field in (Recipe.model_fields | RoundsRecipe.model_fields | ClassifierRecipe.model_fields).items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
}


@pytest.mark.parametrize("section", [section for section in SECTION_KINDS if section != "test"])  # which is as data
def test_page_has_every_key_with_its_default(section):
    kind = SECTION_KINDS[section]
    assert {key for title, key in DOCUMENTED if title == section} == set(kind.model_fields)
    for key, field in kind.model_fields.items():
        said = DOCUMENTED[section, key]
        if field.is_required():
            assert said == "needed"
        elif field.default is None:
            assert "`" not in said
        else:
            assert tomllib.loads(f"said = {said.strip('`')}")["said"] == field.default


def test_page_lists_every_recipe():
    assert {path.stem for path in RECIPES} <= set(re.findall(r"[`\[]([\w.-]+)[`\]]", PAGE))
