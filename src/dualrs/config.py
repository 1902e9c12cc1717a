"""Recipes: one typed TOML file per experiment. An unknown key is an error.

Enters: a recipe file, and settings given on the command line, which win. Leaves: a checked `Recipe`.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from dualrs.errors import BadRecipe


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelSection(_Section):
    """The networks, as references (NETWORK, or DENOISER | NETWORK).

    A router with a classifier or experts, or a classifier at one sigma.
    """

    router: str | None = None
    classifier: str | None = None
    experts: dict[float, str] | None = None
    sigmas: tuple[float, ...] | None = None
    sigma_e: float | None = None
    sigma: float | None = None

    @model_validator(mode="after")
    def _one_or_two_stages(self) -> "ModelSection":
        if (self.classifier is None) == (self.experts is None):
            raise ValueError("give either a classifier or experts (one per sigma)")
        if self.router is None:
            if self.sigma is None or self.experts is not None or self.sigmas is not None or self.sigma_e is not None:
                raise ValueError("without a router, give a classifier and one sigma")
        elif self.sigma is not None:
            raise ValueError("with a router, give sigmas and sigma_e instead of sigma")
        elif self.sigmas is None or self.sigma_e is None:
            raise ValueError("a router needs sigmas (the candidates) and sigma_e (its own noise)")
        return self


class DataSection(_Section):
    """Which images, and for folders and hubs how they are brought to one size: shorter side, then central square."""

    source: str
    resize: int | None = Field(default=None, ge=1)
    crop: int | None = Field(default=None, ge=1)

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        if not isinstance(value, str | dict):
            raise ValueError("give a reference as a string, or a table with source, resize and crop")
        return {"source": value} if isinstance(value, str) else value


class CertifySection(_Section):
    """How certificates are made. ``rule`` is fusion for two stages and cohen for one, unless named."""

    n: int = Field(default=10_000, ge=1)
    n0: int = Field(default=100, ge=1)
    alpha: float = Field(default=0.001, gt=0, lt=1)
    rule: str | None = None
    seed: int = 0


class EngineSection(_Section):
    """How the networks are run."""

    batch_size: int = Field(default=256, ge=1)
    device: str | None = None
    dtype: str = "float32"


class Recipe(_Section):
    """One experiment: which networks, which data, how."""

    title: str = ""
    model: ModelSection
    data: DataSection
    certify: CertifySection = CertifySection()
    engine: EngineSection = EngineSection()


def load_recipe(path: Path | None, overrides: Mapping[str, Mapping[str, Any] | str | None]) -> Recipe:
    """Read a recipe file, if any, and lay the settings given by hand over it."""
    content: dict[str, Any] = {}
    if path is not None:
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise BadRecipe(f"cannot read the recipe {path}: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise BadRecipe(f"the recipe {path} is not valid TOML: {error}") from error
    for section, values in overrides.items():
        if isinstance(values, Mapping):
            given = {k: v for k, v in values.items() if v is not None}
            if section == "data" and isinstance(content.get(section), str):  # short for its source
                content[section] = {"source": content[section]}
            if given and isinstance(content.setdefault(section, {}), dict):  # anything else is refused below
                content[section] |= given
        elif values is not None:
            content[section] = values
    try:
        return Recipe.model_validate(content)
    except ValidationError as error:
        where = f"the recipe {path}" if path is not None else "the settings"
        raise BadRecipe(f"{where}: " + "; ".join(_sentences(error))) from error


def _sentences(error: ValidationError) -> list[str]:
    sentences = []
    for e in error.errors():
        place = ".".join(str(p) for p in e["loc"])
        what = {"extra_forbidden": "unknown key", "missing": "is missing"}.get(e["type"], e["msg"])
        sentences.append(f"{place}: {what.removeprefix('Value error, ')}" if place else what)
    return sentences
