"""Bundles: a model in a folder, its networks with a recipe that certifies it.

Enters: the model section of a recipe. Leaves: a folder that can be moved and given away, and from it the model. Weights
that dualrs saved are copied into it; networks of hubs, of other projects and of a user's own code stay references.
"""

import json
import shutil
from collections.abc import Mapping
from importlib.resources import as_file
from os import PathLike
from pathlib import Path

from dualrs.build import build_model
from dualrs.config import BUNDLE, Recipe, load_recipe
from dualrs.config.sections import Section
from dualrs.errors import BadRecipe
from dualrs.files import whole_file
from dualrs.models import zoo
from dualrs.smoothed import DualSmoothed


def write_bundle(folder: Path, recipe: Recipe) -> None:
    """Write the model of a recipe, with its settings, into a folder; the recipe's file comes last."""
    folder.mkdir(parents=True, exist_ok=True)
    copied: dict[str, str] = {}
    model = recipe.model
    update: dict[str, object] = {}
    if model.router is not None:
        update["router"] = _packed(model.router, "router", folder, copied)
    if model.classifier is not None:
        update["classifier"] = _packed(model.classifier, "classifier", folder, copied)
    if model.experts is not None:
        update["experts"] = {s: _packed(r, f"expert-{s:g}", folder, copied) for s, r in model.experts.items()}
    packed = recipe.model_copy(update={"model": model.model_copy(update=update)})
    with whole_file(folder / BUNDLE) as file:
        file.write(_toml(packed).encode())


def load_bundle(folder: str | PathLike[str], *, device: str | None = None) -> DualSmoothed:
    """The model of a bundle that `dualrs rounds` made, ready to certify and to predict."""
    path = Path(folder)
    recipe = load_recipe(None, {"engine": {"device": device}}, bundle=path)
    model = build_model(recipe, path.resolve())
    if not isinstance(model, DualSmoothed):
        raise BadRecipe(f"{path} holds no router")
    return model


def _packed(reference: str, role: str, folder: Path, copied: dict[str, str]) -> str:
    """The same reference, with the files of weights that it names copied into the folder."""
    parts = [part.strip() for part in reference.split("|")]
    roles = ["denoiser", role] if len(parts) == 2 else [role]
    return " | ".join(_part(part, name, folder, copied) for part, name in zip(parts, roles, strict=True))


def _part(part: str, role: str, folder: Path, copied: dict[str, str]) -> str:
    maker, sign, weights = (half.strip() for half in part.rpartition("<"))
    if weights not in copied:
        scheme, _, name = weights.partition(":")
        if weights.endswith(".safetensors"):
            _copy(Path(weights), role, folder, copied, weights)
        elif scheme == "zoo" and zoo.bundled(name):
            with as_file(zoo.FOLDER) as source:
                _copy(source / f"{name}.safetensors", role, folder, copied, weights)
        else:
            return part
    return f"{maker} < {copied[weights]}" if sign else copied[weights]


def _copy(weights: Path, role: str, folder: Path, copied: dict[str, str], reference: str) -> None:
    name = role
    while f"{name}.safetensors" in copied.values():  # two denoisers
        name += "-2"
    for suffix in (".safetensors", ".json"):
        shutil.copyfile(weights.with_suffix(suffix), folder / f"{name}{suffix}")
    copied[reference] = f"{name}.safetensors"


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
        else:
            lines.append(f"{name} = {json.dumps(value)}")
    for name in sorted(tables):
        lines += ["", f"[{name}]", *(f"{_key(k)} = {json.dumps(v)}" for k, v in tables[name].items())]
    return "\n".join(lines) + "\n"


def _key(key: object) -> str:
    return key if isinstance(key, str) else json.dumps(str(key))
