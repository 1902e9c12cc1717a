"""References: how the command line and recipes name an object in Python, ``module:attribute``.

The module is a dotted name or the path of a .py file; the attribute may be the object itself or a function
without arguments that makes it.
"""

import importlib
import importlib.util
import inspect
import sys
from pathlib import Path

from dualrs.errors import BadRecipe, did_you_mean


def resolve(reference: str, folder: Path | None = None) -> object:
    """The object that a reference names, or that the function makes which it names."""
    found = find(reference, folder)
    if isinstance(found, type) or not callable(found) or not hasattr(found, "__name__"):
        return found  # not a function: networks are callable too, but have no name
    parameters = inspect.signature(found).parameters.values()
    if any(p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        raise BadRecipe(f"{reference!r} is a function that needs arguments; name one that needs none, or an object")
    return found()


def find(reference: str, folder: Path | None = None) -> object:
    """What a reference names, as it is; relative paths and modules are looked up in ``folder``, then as usual."""
    module_name, colon, attribute = reference.rpartition(":")
    if not colon or not module_name or not attribute:
        raise BadRecipe(f"{reference!r} is not of the form module:attribute or path/to/file.py:attribute")
    folder = folder or Path.cwd()
    module = _load_file(folder / module_name) if module_name.endswith(".py") else _load_module(module_name, folder)
    found: object = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            near = did_you_mean(part, [name for name in dir(found) if not name.startswith("_")])
            raise BadRecipe(f"{reference!r}: {module_name} has no attribute {attribute!r}{near}")
        found = getattr(found, part)
    return found


def anchored_object(reference: str, folder: Path) -> str:
    """The same reference with the path of a file made absolute, so that it means the same from any folder."""
    return str(folder / reference) if ".py:" in reference else reference


def _load_module(name: str, folder: Path) -> object:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        if name.startswith("."):  # importlib would ask: relative to what?
            raise ModuleNotFoundError(name=name)
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and name.split(".")[0] != error.name.split(".")[0]:
            raise BadRecipe(f"importing {name} failed: it needs {error.name}, which is not installed") from error
        raise BadRecipe(
            f"there is no module {name}; run from the folder that holds it, or give a path ending in .py"
        ) from error


def _load_file(path: Path) -> object:
    path = path.resolve()
    if not path.is_file():
        raise BadRecipe(f"there is no file {path}")
    name = f"dualrs_reference_{path.stem}"
    if name in sys.modules and getattr(sys.modules[name], "__file__", None) == str(path):
        return sys.modules[name]
    if str(path.parent) not in sys.path:  # what it imports from beside it
        sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BadRecipe(f"{path} cannot be imported as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]  # half a module must not be found there next time
        if not isinstance(error, ModuleNotFoundError):
            raise
        raise BadRecipe(f"importing {path.name} failed: it needs {error.name}, which is not installed") from error
    return module
