"""Purity: whether a network leaves anything behind when it answers; if not, it may answer several batches at once.

Enters: a module. Leaves: a picture of all that its forward could change, to be compared with one of later on.
"""

from collections import deque
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

Picture = dict[int, tuple[object, object, tuple[int, ...]]]  # by identity: the thing, its mark, what it holds

_MOST = 200_000  # things
_FIXED = (type, ModuleType, str, bytes, int, float, complex, type(None), torch.dtype, torch.device, torch.Size)


def picture(module: nn.Module) -> Picture | None:
    """What a module and its parts hold, and which version of each tensor; None if that cannot be seen.

    It follows attributes, containers, bound methods, closures, so of hooks too, and the global variables that methods
    name. It does not see what objects without a ``__dict__`` hold.
    """
    found: Picture = {}
    waiting: list[Any] = [module]
    while waiting:
        thing = waiting.pop()
        if id(thing) in found or isinstance(thing, _FIXED):
            continue
        # Made by torch's compilers: what they hold is not Python's.
        if isinstance(thing, torch.jit.ScriptModule) or (isinstance(thing, nn.Module) and _compiled(thing)):
            return None
        held = _held(thing)
        found[id(thing)] = thing, _mark(thing), tuple(map(id, held))
        waiting += held
        if len(found) > _MOST:
            return None
    return found


def _held(thing: Any) -> list[Any]:
    """What may be reached from a thing, in a fixed order."""
    if isinstance(thing, Tensor | np.ndarray):
        return []
    if isinstance(thing, dict):
        return [*thing, *thing.values()]
    if isinstance(thing, list | tuple | set | frozenset | deque):
        return list(thing)
    if isinstance(thing, MethodType):
        return [thing.__self__, thing.__func__]
    if isinstance(thing, partial):
        return [thing.func, thing.args, thing.keywords]
    if isinstance(thing, FunctionType):
        cells = [cell for cell in thing.__closure__ or () if _filled(cell)]
        around = [cell.cell_contents for cell in cells] + _globals(thing, thing.__code__)
        return [*around, thing.__defaults__, thing.__kwdefaults__, vars(thing)]
    attributes = getattr(thing, "__dict__", None)
    own = list(attributes.values()) if isinstance(attributes, dict) else []
    return own + _methods(type(thing)) if isinstance(thing, nn.Module) else own


def _compiled(module: nn.Module) -> bool:
    return vars(module).get("_compiled_call_impl") is not None


def _methods(kind: type) -> list[Any]:
    """The functions that somebody wrote for a kind of module; torch's own leave nothing behind."""
    kinds = [each for each in kind.__mro__ if not each.__module__.startswith("torch.")]
    return [thing for each in kinds for thing in vars(each).values() if isinstance(thing, FunctionType)]


def _globals(function: FunctionType, code: CodeType) -> list[Any]:
    """The global variables that a function names, and of functions only those of the same file."""
    named = [function.__globals__[name] for name in code.co_names if name in function.__globals__]
    inner = [each for const in code.co_consts if isinstance(const, CodeType) for each in _globals(function, const)]
    elsewhere = [isinstance(each, FunctionType) and each.__globals__ is not function.__globals__ for each in named]
    return [each for each, other in zip(named, elsewhere, strict=True) if not other] + inner


def _mark(thing: Any) -> object:
    """What changes if a thing is written to in place."""
    if isinstance(thing, np.ndarray):
        return thing.tobytes() if thing.dtype != object else object()  # a new one is like no other
    if isinstance(thing, Tensor):
        return _contents(thing) if thing.is_inference() else thing._version  # what was made in inference has no version
    return None


def _contents(tensor: Tensor) -> bytes | None:
    """What stands in a tensor's memory; None where that is for torch's kernels only, which do not write to it."""
    if tensor.layout is not torch.strided:
        return None
    return bytes(torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage()).cpu().numpy())


def _filled(cell: Any) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True
