"""Optional packages: imported where they are used; a missing one is an error with the command that installs it."""

from importlib import import_module
from types import ModuleType

from dualrs.errors import MissingExtra


def need(module: str, extra: str, purpose: str) -> ModuleType:
    """Import an optional module; ``extra`` is the group of packages in which dualrs offers it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != module.split(".")[0]:
            raise  # the package is there, and lacks something itself
        raise MissingExtra(
            f"{purpose} needs the package {error.name}, which is not installed; run: pip install 'dualrs[{extra}]'"
        ) from error
