"""Reading recipes: files laid over one another, settings given by hand over those, and what is wrong said in sentences.

Enters: a recipe file, a bundle, settings of a command line. Leaves: a checked recipe, its references anchored.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import ValidationError

from dualrs.config.recipes import ClassifierRecipe, Recipe, RoundsRecipe
from dualrs.config.sections import Section
from dualrs.data.sources import anchored_dataset
from dualrs.errors import BadRecipe, did_you_mean
from dualrs.models.reference import anchored_network

Overrides = Mapping[str, Mapping[str, Any] | str | int | None]
_Kind = TypeVar("_Kind", bound=Section)

BUNDLED = Path(__file__).resolve().parents[1] / "recipes"  # those that come with dualrs, known by their names
BUNDLE = "bundle.toml"  # in the folder of a bundle: a recipe that certifies its model

# Where references stand: they mean files beside the recipe in which they are written.
_DATA = {"data": ("source",), "test": ("source",), "model": ("neighbours",)}
_NETWORKS = {  # and losses, which are named as networks are
    "model": ("router", "classifier", "core", "selector"),
    "start": ("classifier",),
    "router": ("denoiser", "network", "loss"),
    "finetune": ("loss", "teacher"),
    "classifier": ("denoiser", "network", "start", "loss", "teacher"),
}
_EXPERTS = ("model", "start")
_WHOLE = ("experts", "network_args", "method_args")


def recipe_path(name: str, folder: Path = Path()) -> Path:
    """The file of a recipe: a path from ``folder`` on, or the name of one of `BUNDLED`."""
    path, named = folder / name, BUNDLED / f"{name}.toml"
    return named if named.is_file() and not path.exists() else path


def load_recipe(path: Path | None, overrides: Overrides, *, bundle: Path | None = None) -> Recipe:
    """Read a recipe for certifying, if any, and lay the settings given by hand over it.

    The model of a bundle, a folder, takes the place of the recipe's own; the recipe then says the rest.
    """
    content = {} if path is None else _read(path)
    if bundle is not None:
        content = _with_bundle(content, bundle, path)
    _lay_over(content, overrides)
    if path is not None and "classifier" in content:
        raise BadRecipe(
            f"the recipe {path} trains a classifier: run `dualrs train classifier OUT.safetensors --recipe {path}`; "
            "then certify what comes of it, `dualrs certify --classifier OUT.safetensors --sigma SIGMA -o FILE.ledger`"
        )
    if path is not None and "start" in content:
        named = path.stem if path.parent == BUNDLED else path
        raise BadRecipe(
            f"the recipe {path} trains, in rounds: run `dualrs rounds {named}`, and then certify what comes of it, "
            f"`dualrs certify --model runs/{path.stem}/bundle -o FILE.ledger`"
        )
    return _check(Recipe, content, f"the recipe {path}" if path is not None else "the settings")


def load_rounds(path: Path, overrides: Overrides | None = None) -> RoundsRecipe:
    """Read a recipe for rounds of training, likewise."""
    content = _read(path)
    _lay_over(content, overrides or {})
    return _check(RoundsRecipe, content, f"the recipe {path}")


def load_classifier(path: Path | None, overrides: Overrides | None = None) -> ClassifierRecipe:
    """Read a recipe for training a classifier, if any, likewise."""
    defaults = {name: {"source": ClassifierRecipe.model_fields[name].default.source} for name in ("data", "test")}
    content = _over(defaults, {} if path is None else _read(path))
    _lay_over(content, overrides or {})
    return _check(ClassifierRecipe, content, f"the recipe {path}" if path is not None else "the settings")


def load_any(path: Path) -> Recipe | RoundsRecipe | ClassifierRecipe:
    """Read a recipe of any kind: one that has a start is for rounds, one that has a classifier trains it."""
    content = _read(path)
    if "start" in content:
        return load_rounds(path)
    return load_classifier(path) if "classifier" in content else load_recipe(path, {})


def _read(path: Path, above: tuple[Path, ...] = ()) -> dict[str, Any]:
    """The content of a recipe, over that of the ``base`` it names."""
    if "\0" in str(path):
        raise BadRecipe(f"no file has the name {str(path)!r}, which a recipe names as its base")
    if path.resolve() in above:
        raise BadRecipe(f"the recipe {path} is its own base")
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        names = ", ".join(sorted(one.stem for one in BUNDLED.glob("*.toml")))
        raise BadRecipe(
            f"cannot read the recipe {path}: {error.strerror}; give a file, or one that comes with dualrs: {names}"
        ) from error
    except (ValueError, RecursionError) as error:  # TOML that is wrong, nested too deeply, or of endless numbers
        raise BadRecipe(f"the recipe {path} is not valid TOML: {error}") from error
    base = content.pop("base", None)
    _spell_out(content, Path.cwd() if path.is_relative_to(BUNDLED) else path.parent.resolve())
    if base is None:
        return content
    if not isinstance(base, str):
        raise BadRecipe(f"the recipe {path}: base is the path of another recipe or a name, got {base!r}")
    return _over(_read(recipe_path(base, path.parent), (*above, path.resolve())), content)


def _lay_over(content: dict[str, Any], overrides: Overrides) -> None:
    for section, values in overrides.items():
        if isinstance(values, Mapping):
            given = {k: v for k, v in values.items() if v is not None}
            if given and isinstance(content.setdefault(section, {}), dict):  # anything else is refused by the check
                content[section] |= given
        elif values is not None:
            content[section] = values


def _over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Merge tables key by key, but for some that make sense as a whole; experts and a classifier exclude each other."""
    merged = dict(below)
    for key, rival in (("experts", "classifier"), ("classifier", "experts")):
        if key in above:
            merged.pop(rival, None)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _over(merged[key], value) if both and key not in _WHOLE else value
    return merged


def _spell_out(content: dict[str, Any], folder: Path) -> None:
    """Write data as tables, and make paths in references absolute."""
    for key in ("data", "test"):
        if isinstance(content.get(key), str):
            content[key] = {"source": content[key]}
    for anchored, places in ((anchored_dataset, _DATA), (anchored_network, _NETWORKS)):
        for section, keys in places.items():
            table = content.get(section)
            for key in keys:
                if isinstance(table, dict) and isinstance(table.get(key), str):
                    table[key] = anchored(table[key], folder)
    for section in _EXPERTS:
        table = content.get(section)
        if isinstance(table, dict) and isinstance(experts := table.get("experts"), dict):
            table["experts"] = {s: anchored_network(r, folder) if isinstance(r, str) else r for s, r in experts.items()}


def _with_bundle(content: dict[str, Any], bundle: Path, path: Path | None) -> dict[str, Any]:
    if "model" in content:
        raise BadRecipe(f"the recipe {path} names a model of its own; give it or the bundle {bundle}, not both")
    if not (bundle / BUNDLE).is_file():
        raise BadRecipe(f"{bundle} is not a bundle: it has no {BUNDLE}. `dualrs rounds` makes bundles")
    return _over(_read(bundle / BUNDLE), content)


def _check(kind: type[_Kind], content: dict[str, Any], where: str) -> _Kind:
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        raise BadRecipe(f"{where}: " + "; ".join(_sentences(error, kind))) from error


def _sentences(error: ValidationError, kind: type[Section]) -> list[str]:
    sentences = []
    for e in error.errors():
        place = ".".join(str(p) for p in e["loc"])
        what = {"extra_forbidden": "unknown key", "missing": "is missing"}.get(e["type"], e["msg"])
        if e["type"] == "extra_forbidden":
            what += did_you_mean(str(e["loc"][-1]), _keys(kind, e["loc"][:-1]))
        sentences.append(f"{place}: {what.removeprefix('Value error, ')}" if place else what)
    return sentences


def _keys(kind: type[Section], place: tuple[int | str, ...]) -> list[str]:
    """The keys of a table of a recipe."""
    for name in place:
        inside = kind.model_fields[str(name)].annotation
        kind = next(k for k in (inside, *get_args(inside)) if isinstance(k, type) and issubclass(k, Section))
    return list(kind.model_fields)
