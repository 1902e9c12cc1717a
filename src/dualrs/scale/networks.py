"""How networks get to the workers: as bytes from the memory of the driver, with code that is not installed.

Enters: the networks of some engines. Leaves: bytes that any worker can read which has the same packages installed.
"""

import pickle
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from types import ModuleType
from typing import Any

from dualrs.errors import BadModel, first_line
from dualrs.models.noisy import NoisyModel
from dualrs.sampling.work import Slot

Models = Mapping[Slot, NoisyModel]


def pack_networks(models: Sequence[Models], cloudpickle: Any) -> bytes:
    """The networks of some engines; what these share (a denoiser, a whole network) they share afterwards too."""
    with _code_goes_along(cloudpickle):
        try:
            return bytes(cloudpickle.dumps(_on_cpu(models)))
        except Exception as error:  # whatever a network holds may refuse in its own way
            raise BadModel(
                f"the networks cannot be sent to workers ({first_line(error)}): pickle must be able to write them, so "
                "they may hold no open files, locks or compiled parts"
            ) from error


def unpack_networks(packed: bytes) -> Sequence[Models]:
    """The networks of each engine, on the CPU."""
    try:
        models: Sequence[Models] = pickle.loads(packed)
    except ImportError as error:
        raise BadModel(
            f"a worker cannot load the networks ({first_line(error)}): install the same packages on every machine"
        ) from error
    return models


def _on_cpu(models: Sequence[Models]) -> Sequence[Models]:
    if all(model.device.type == "cpu" for some in models for model in some.values()):
        return models
    copies = deepcopy(models)  # the driver's own stay where they are
    for some in copies:
        for model in some.values():
            model.module.cpu()
    return copies


@contextmanager
def _code_goes_along(cloudpickle: Any) -> Iterator[None]:
    """Have classes and functions of modules that are not installed, such as a user's file, written by value."""
    before = cloudpickle.list_registry_pickle_by_value()
    loose = {m.__name__: m for m in list(sys.modules.values()) if _is_loose(m) and m.__name__ not in before}
    for module in loose.values():
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in loose.values():
            cloudpickle.unregister_pickle_by_value(module)


def _is_loose(module: ModuleType) -> bool:
    name, file = getattr(module, "__name__", ""), getattr(module, "__file__", None)
    if file is None or name.partition(".")[0] in ("dualrs", "ray", "__main__") or sys.modules.get(name) is not module:
        return False
    path = Path(file)
    if {"site-packages", "dist-packages"} & set(path.parts):
        return False
    return path.is_absolute() and not any(path.is_relative_to(place) for place in sysconfig.get_paths().values())
