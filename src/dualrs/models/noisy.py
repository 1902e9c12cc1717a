"""NoisyModel: what the engine runs. A plain module (images in, logits out) is one as it is.

Enters: noisy images, float, in units where the clean ones lie in [0, 1] (the noise may leave that range), and
the sigma they carry. Leaves: logits. Normalisation, resizing and denoising belong inside the module: noise is
added in pixel units, and a radius in other units is another radius.
"""

import hashlib
import inspect
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from dualrs.errors import BadModel, TrainingMode


@dataclass(frozen=True)
class NoisyModel:
    """A module under a name, called with the sigma of the noise if its forward has a parameter ``sigma``."""

    name: str
    module: nn.Module

    def __post_init__(self) -> None:
        if not isinstance(self.module, nn.Module):
            raise BadModel(
                f"the {self.name} must be a torch.nn.Module, images in and logits out; got {type(self.module).__name__}"
            )
        self.demand_eval()

    def demand_eval(self) -> None:
        """Refuse a module in training mode; one that was trained further may have come back in it."""
        training = [path or "the module itself" for path, part in self.module.named_modules() if part.training]
        if training:
            raise TrainingMode(
                f"the {self.name} is in training mode ({training[0]}): dropout and batch statistics would make the "
                "certificate meaningless; call .eval() first"
            )

    @cached_property
    def takes_sigma(self) -> bool:
        """Whether forward has a parameter named ``sigma``."""
        return takes_sigma(self.module)

    def key(self, sigma: float) -> tuple[nn.Module, float | None]:
        """What decides the answer to a noisy image: the module, and the sigma only if it is told."""
        return self.module, sigma if self.takes_sigma else None

    @property
    def device(self) -> torch.device:
        """Where the parameters are; the CPU for a module without any."""
        tensors = (*self.module.parameters(), *self.module.buffers())
        return tensors[0].device if tensors else torch.device("cpu")

    def __call__(self, noisy: Tensor, sigma: float) -> Tensor:
        """Logits of a batch, shape (batch, answers)."""
        return self.checked(self.module(noisy, sigma=sigma) if self.takes_sigma else self.module(noisy), len(noisy))

    def checked(self, logits: object, images: int) -> Tensor:
        """What the module returned for so many images, if it is a table of logits."""
        if not isinstance(logits, Tensor):
            raise BadModel(
                f"the {self.name} returned {type(logits).__name__}, not a tensor of logits; wrap it in a module "
                "that does (for a transformers model: return output.logits)"
            )
        if logits.ndim != 2 or len(logits) != images or logits.shape[1] < 2:
            raise BadModel(
                f"the {self.name} returned shape {tuple(logits.shape)} for {images} images; "
                "expected one row of at least two logits per image"
            )
        return logits

    @property
    def fingerprint(self) -> str:
        """Hash of the network: see `fingerprint`."""
        return fingerprint(self.module)


def takes_sigma(module: nn.Module) -> bool:
    """Whether a module's forward has a parameter named ``sigma``."""
    inner = getattr(module, "_orig_mod", module)  # torch.compile hides the signature
    return "sigma" in inspect.signature(inner.forward).parameters


def fingerprint(module: nn.Module) -> str:
    """Hash of the architecture as printed and of every parameter and buffer."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(repr(module).encode())
    for key, value in sorted(module.state_dict().items()):
        if isinstance(value, Tensor):
            digest.update(f"{key} {value.dtype} {tuple(value.shape)}".encode())
            digest.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
        else:
            digest.update(f"{key} {value!r}".encode())
    return digest.hexdigest()
