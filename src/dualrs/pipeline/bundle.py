"""Bundles: a model in a folder, its networks with a recipe that certifies it.

Enters: the model section of a recipe. Leaves: a folder that can be moved and given away, and from it the model. Weights
that dualrs saved are copied into it; networks of hubs, of other projects and of a user's own code stay references.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import as_file
from os import PathLike
from pathlib import Path

from dualrs.config import BUNDLE, Recipe, load_recipe
from dualrs.config.sections import Section
from dualrs.files import write_whole
from dualrs.models import zoo
from dualrs.models.reference import Reference
from dualrs.pipeline.build import build_model
from dualrs.smoothed import SmoothedModel


def write_bundle(folder: Path, recipe: Recipe) -> None:
    """Write the model of a recipe, with its settings, into a folder; the recipe's file comes last."""
    folder.mkdir(parents=True, exist_ok=True)
    packed, model = _Packing(folder), recipe.model
    update: dict[str, object] = {}
    if model.router is not None:
        update["router"] = packed(model.router, "router")
    if model.classifier is not None:
        update["classifier"] = packed(model.classifier, "classifier")
    if model.experts is not None:
        update["experts"] = {sigma: packed(expert, f"expert-{sigma:g}") for sigma, expert in model.experts.items()}
    bundled = recipe.model_copy(update={"model": model.model_copy(update=update)})
    write_whole(folder / BUNDLE, _toml(bundled).encode())


def load_bundle(folder: str | PathLike[str], *, device: str | None = None) -> SmoothedModel:
    """The model of a bundle, which `dualrs rounds` made, ready to certify and to predict."""
    path = Path(folder)
    return build_model(bundled_recipe(path, device), path.resolve())


def bundled_recipe(folder: Path, device: str | None = None) -> Recipe:
    """The recipe of a bundle, to build its model from; which data it is certified on does not matter."""
    return load_recipe(None, {"engine": {"device": device}, "data": {"source": ""}}, bundle=folder)


class _Packing:
    """Copies the weights that references name into a folder, each once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._copied: dict[str, str] = {}  # names in the folder, by what names the weights outside

    def __call__(self, text: str, role: str) -> str:
        """The same reference, with the files of weights that it names copied into the folder."""
        reference = Reference.parse(text)
        front = None if reference.front is None else self._part(reference.front, "denoiser")
        return str(replace(self._part(reference.bare, role), front=front, between=reference.between))

    def _part(self, part: Reference, role: str) -> Reference:
        if part.weights is not None:
            return replace(part, weights=self._copy(part.weights, Path(part.weights), role))
        scheme, _, name = part.maker.partition(":")
        if part.maker.endswith(".safetensors"):
            return Reference(self._copy(part.maker, Path(part.maker), role))
        if scheme == "zoo" and zoo.bundled(name):
            with as_file(zoo.FOLDER) as source:
                return Reference(self._copy(part.maker, source / f"{name}.safetensors", role))
        return part

    def _copy(self, named: str, weights: Path, name: str) -> str:
        if named not in self._copied:
            while f"{name}.safetensors" in self._copied.values():  # two denoisers
                name += "-2"
            for suffix in (".safetensors", ".json"):
                shutil.copyfile(weights.with_suffix(suffix), self._folder / f"{name}{suffix}")
            self._copied[named] = f"{name}.safetensors"
        return self._copied[named]


def _toml(recipe: Recipe) -> str:
    """A recipe as TOML; its settings are texts, numbers, and tables and lists of them."""
    lines = [
        f"# {recipe.title}" if recipe.title else "# A bundle of dualrs",
        "# Command: dualrs certify --model FOLDER",
    ]
    tables: dict[str, Mapping[str, object]] = {}
    for name, value in recipe:
        if isinstance(value, Section):
            fields = {k: v for k, v in value if v is not None}
            for key in [k for k, v in fields.items() if isinstance(v, Mapping)]:
                tables[f"{name}.{key}"] = fields.pop(key)
            tables[name] = fields
        elif value is not None:
            lines.append(f"{name} = {json.dumps(value)}")
    for name in sorted(tables):
        lines += ["", f"[{name}]", *(f"{_key(k)} = {json.dumps(v)}" for k, v in tables[name].items())]
    return "\n".join(lines) + "\n"


def _key(key: object) -> str:
    return key if isinstance(key, str) else json.dumps(str(key))
