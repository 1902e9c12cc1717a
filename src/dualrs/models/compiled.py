"""Compiled networks: torch makes machine code for them at first use, which pays in runs of more than a few minutes."""

from torch import nn

from dualrs.models.denoise import Behind
from dualrs.models.noisy import COMPILERS, takes_randomness


def compile_parts(module: nn.Module) -> None:
    """Have torch compile a module at its first call, in place: it keeps its class, its parts and its weights.

    What stands behind a denoiser is compiled apart from it, because models that vote together share one. Of a module
    that draws numbers of its own the parts are compiled, because torch cannot compile the drawing.
    """
    if isinstance(module, Behind) or takes_randomness(module):
        for part in module.children():
            compile_parts(part)
    else:
        module.compile()


def is_compilers(error: BaseException) -> bool:
    """Whether an error is of the compiler (none installed, say), and not of the network."""
    return type(error).__module__.startswith(COMPILERS)
