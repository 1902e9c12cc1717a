"""Hardware: the device that networks run on, the number format it computes fastest in, and memory."""

import ctypes
import sys
from typing import TypeVar

import torch
from torch import nn

from dualrs.errors import BadSetting

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # parameters of mallopt
_LARGEST = 2**31 - 1

Network = TypeVar("Network", bound=nn.Module)

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def open_device(device: str | torch.device) -> torch.device:
    """The device of this name, after it was tried."""
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError) as error:  # torch without CUDA asserts
        raise BadSetting(f"unknown device {device!r}, or this machine has none; use cpu, cuda or mps") from error


def best_device() -> str:
    """A GPU where torch has one to use, cuda or mps; else cpu."""
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def fastest_dtype(device: torch.device) -> str:
    """bfloat16 where the hardware multiplies it, float32 elsewhere (where it would be emulated, ten times slower)."""
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float32"
    if device.type == "cpu":
        known: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()  # torch before 2.9 cannot tell
        return "bfloat16" if known.get("avx512_bf16") or known.get("amx_bf16") else "float32"
    return "float32"


def check_dtype(dtype: str) -> str:
    """The same name, if it is one of a number format."""
    if dtype not in DTYPES:
        raise BadSetting(f"unknown dtype {dtype!r}; choose one of {', '.join(DTYPES)}")
    return dtype


def autocast(device: torch.device, dtype: str) -> torch.autocast:
    """Run what follows in ``dtype`` where that is safe."""
    return torch.autocast(device.type, DTYPES[dtype], enabled=dtype != "float32")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out, in whichever words."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or any(
        phrase in str(error) for phrase in ("out of memory", "can't allocate memory", "not enough memory")
    )


def channels_last(network: Network) -> Network:
    """A network laid out so, in place, that a CPU computes its convolutions faster."""
    laid_out: Network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return laid_out


def keep_memory() -> None:
    """Have this process keep memory that networks free, for the next batch; no result depends on it.

    The C library of Linux hands large blocks back to the system at once, and gets them back page by page, each cleared:
    with small networks on a CPU that takes up to a quarter of the time. For processes that are ours, not for a library.
    """
    if sys.platform == "linux" and (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)):
        for parameter, value in ((_MMAP_THRESHOLD, 2**30), (_TRIM_THRESHOLD, _LARGEST), (_TOP_PAD, 2**26)):
            mallopt(parameter, value)
