"""Widest: how much of an image a network has in hand at a time, by which a batch is made to fit into a cache.

Enters: a network at work on a few images. Leaves: bytes.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor
from torch.overrides import TorchFunctionMode


class Widest(TorchFunctionMode):
    """Watches what torch computes for so many images: ``bytes`` an image of the largest tensor with a row for each."""

    def __init__(self, images: int) -> None:
        super().__init__()
        self._images, self.bytes = images, 0

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Let torch compute, and look at the result."""
        result = func(*args, **(kwargs or {}))
        for each in result if isinstance(result, tuple | list) else (result,):
            if isinstance(each, Tensor) and each.ndim and each.shape[0] == self._images:
                self.bytes = max(self.bytes, each.numel() * each.element_size() // self._images)
        return result
