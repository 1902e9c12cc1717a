"""A loss of a user's own in place of ours.

Enters: a function of logits and of what they are measured by. Leaves: one loss for each input, and what tells this
loss from others.
"""

import hashlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from dualrs.errors import BadSetting


@dataclass(frozen=True)
class OwnLoss:
    """A function (logits, target) -> losses, (inputs,), and the reference that named it."""

    reference: str
    function: Callable[[Tensor, Tensor], Tensor]

    def __call__(self, logits: Tensor, target: Tensor) -> Tensor:
        """One loss for each input."""
        found = self.function(logits, target)
        if not isinstance(found, Tensor) or found.shape != target.shape[:1]:
            got = f"shape {tuple(found.shape)}" if isinstance(found, Tensor) else f"a {type(found).__name__}"
            raise BadSetting(
                f"the loss {self.reference} has to return a tensor with one loss for each of {len(target)} inputs; it "
                f"returned {got}. Their mean is taken afterwards"
            )
        return found

    @property
    def about(self) -> str:
        """Its name, and a hash of the file that it stands in: another loss is another training."""
        file = inspect.getsourcefile(self.function)
        code = b"" if file is None else Path(file).read_bytes()
        return f"loss {self.function.__qualname__} {hashlib.blake2b(code, digest_size=16).hexdigest()}"
