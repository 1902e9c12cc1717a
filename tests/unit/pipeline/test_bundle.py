"""Bundles: what goes in comes out, wherever the folder is moved to."""

import numpy as np
import pytest
from small_bundle import DENOISER, HEAD, ROUTER, save_network

from dualrs import load_bundle
from dualrs.config import DataSection, ModelSection, Recipe, load_recipe
from dualrs.config.sections import TunedSection
from dualrs.errors import BadCheckpoint, BadRecipe
from dualrs.pipeline.build import build_model
from dualrs.pipeline.bundle import write_bundle

IMAGES = np.random.default_rng(0).integers(0, 256, (3, 3, 16, 16), dtype=np.uint8)


@pytest.fixture
def recipe(tmp_path):
    for name, architecture in (("d", DENOISER), ("c", HEAD), ("r", ROUTER)):
        save_network(architecture, tmp_path / f"{name}.safetensors")
    model = ModelSection(
        router=f"{tmp_path}/d.safetensors | {tmp_path}/r.safetensors",
        classifier=f"{tmp_path}/d.safetensors | {tmp_path}/c.safetensors",
        sigmas=(0.25, 0.5),
        sigma_e=0.5,
    )
    return Recipe(title='a "small" one', model=model, data=DataSection(source="cifar10:subset"))


def votes(model):
    return list(model.predict(IMAGES, n=100, alpha=0.05))


def test_a_bundle_can_be_moved_and_predicts_the_same(recipe, tmp_path):
    write_bundle(tmp_path / "bundle", recipe)
    (tmp_path / "bundle").rename(tmp_path / "moved")
    for name in "dcr":
        (tmp_path / f"{name}.safetensors").unlink()
    names = sorted(path.name for path in (tmp_path / "moved").glob("*.safetensors"))
    assert names == ["classifier.safetensors", "denoiser.safetensors", "router.safetensors"]  # one denoiser for both
    model = load_bundle(tmp_path / "moved")
    assert (model.sigmas, model.sigma_e) == ((0.25, 0.5), 0.5)
    for name, part in (("d", "denoiser"), ("c", "classifier"), ("r", "router")):
        for suffix in (".safetensors", ".json"):
            (tmp_path / "moved" / f"{part}{suffix}").rename(tmp_path / f"{name}{suffix}")
    assert votes(build_model(recipe)) == votes(model)


def test_a_method_between_denoiser_and_network_goes_along(recipe, tmp_path):
    by_method = recipe.model.classifier.replace(" | ", " | diffsmooth(m=2,sigma=0.5) | ")
    model = recipe.model.model_copy(update={"classifier": by_method})
    write_bundle(tmp_path / "bundle", recipe.model_copy(update={"model": model}))
    packed = load_recipe(None, {}, bundle=tmp_path / "bundle").model.classifier
    assert packed.partition(" | ")[2].startswith("diffsmooth(m=2,sigma=0.5) | ")
    made = load_bundle(tmp_path / "bundle")
    assert any(network.takes_randomness for network in made.models.values())


def test_settings_come_back_as_they_were(recipe, tmp_path):
    write_bundle(tmp_path / "bundle", recipe)
    again = load_recipe(None, {}, bundle=tmp_path / "bundle")
    assert again.model_dump(exclude={"model"}) == recipe.model_dump(exclude={"model"})


def test_a_tuned_rule_comes_back_with_its_record(recipe, tmp_path):
    tuned = TunedSection(
        rule="cascade-0.4", dataset="toy", dataset_fingerprint="cc", seed="0", n=100, n0=10, alpha=0.001,
        radii=(0.0, 0.5), inputs=("abcdefgh" * 13, "abcdefgh"),
    )  # fmt: skip
    write_bundle(tmp_path / "bundle", recipe.model_copy(update={"tuned": tuned}))
    assert load_recipe(None, {}, bundle=tmp_path / "bundle").tuned == tuned
    assert len(tuned.record["inputs"]) == 14 * 8


def test_a_network_of_the_zoo_is_packed_too(recipe, tmp_path):
    model = recipe.model.model_copy(update={"classifier": "zoo:cifar10-experts"})
    write_bundle(tmp_path / "bundle", recipe.model_copy(update={"model": model}))
    assert (tmp_path / "bundle" / "classifier.safetensors").is_file()


def test_experts_and_two_denoisers_are_kept_apart(recipe, tmp_path):
    save_network(DENOISER, tmp_path / "e.safetensors", seed=1)
    experts = {0.25: f"{tmp_path}/e.safetensors | {tmp_path}/c.safetensors", 0.5: f"{tmp_path}/c.safetensors"}
    model = recipe.model.model_copy(update={"classifier": None, "experts": experts})
    write_bundle(tmp_path / "bundle", recipe.model_copy(update={"model": model}))
    found = load_recipe(None, {}, bundle=tmp_path / "bundle").model.experts
    folder = tmp_path / "bundle"
    shared = f"{folder}/expert-0.25.safetensors"
    assert found == {0.25: f"{folder}/denoiser-2.safetensors | {shared}", 0.5: shared}


def test_own_code_stays_a_reference(recipe, tmp_path):
    own = f"{tmp_path}/net.py:make < {tmp_path}/c.safetensors"
    model = recipe.model.model_copy(update={"classifier": own})
    write_bundle(tmp_path / "bundle", recipe.model_copy(update={"model": model}))
    found = load_recipe(None, {}, bundle=tmp_path / "bundle").model.classifier
    assert found == f"{tmp_path}/net.py:make < {tmp_path}/bundle/classifier.safetensors"


def test_damage_is_noticed(recipe, tmp_path):
    write_bundle(tmp_path / "bundle", recipe)
    weights = tmp_path / "bundle" / "router.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(BadCheckpoint, match="not the file that its card describes"):
        load_bundle(tmp_path / "bundle")


def test_a_folder_that_is_none(tmp_path):
    with pytest.raises(BadRecipe, match="not a bundle"):
        load_bundle(tmp_path / "none")
