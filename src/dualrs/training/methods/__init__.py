"""The field's training methods: a file for each, with its loss and inner loop. `METHODS` is all there are."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from torch import nn

from dualrs.errors import BadSetting, did_you_mean
from dualrs.training.methods.cat_rs import CatRS
from dualrs.training.methods.consistent import Consistency
from dualrs.training.methods.easy_focus import EasyFocus
from dualrs.training.methods.gaussian import Gaussian
from dualrs.training.methods.macer import Macer
from dualrs.training.methods.method import Exercise, Method
from dualrs.training.methods.smoothadv import SmoothAdv
from dualrs.training.methods.smoothmix import SmoothMix
from dualrs.training.noise import Levels

METHODS: dict[str, type[Method]] = {
    kind.name: kind for kind in (Gaussian, Consistency, SmoothAdv, Macer, SmoothMix, CatRS, EasyFocus)
}

__all__ = ["METHODS", "Exercise", "Method", "choose"]


def choose(
    name: str, levels: Levels, epochs: int, settings: Mapping[str, Any], teacher: nn.Module | None = None
) -> Method:
    """A method as it was published for the nearest sigma, of several the one in the middle, and settings over that."""
    if name not in METHODS:
        raise BadSetting(
            f"there is no training method {name!r}; choose one of {', '.join(METHODS)}{did_you_mean(name, METHODS)}"
        )
    typical = sorted(levels.typical)
    method = METHODS[name].at(typical[len(typical) // 2], epochs)
    published = {f.name: getattr(method, f.name) for f in fields(method) if f.name != "teacher"}
    for key, value in settings.items():
        if key not in published:
            raise BadSetting(
                f"{name} has no setting {key!r}; it has {', '.join(f'{k}={v!r}' for k, v in published.items())}"
                f"{did_you_mean(key, published)}"
            )
        if not _fits(value, published[key]):
            raise BadSetting(f"{name}: {key} takes a value like {published[key]!r}, got {value!r}")
    method = replace(method, **settings)
    if teacher is None:
        return method
    method.check_teacher(given=True)
    assert isinstance(method, CatRS), "the others refuse a teacher"
    return replace(method, teacher=teacher)


def _fits(value: object, known: object) -> bool:
    if isinstance(known, float):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return type(value) is type(known)
