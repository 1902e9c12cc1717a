"""NoisyModel: what the engine runs. A plain module (images in, logits out) is one as it is.

Enters: noisy images, float, in units where the clean ones lie in [0, 1] (the noise may leave that range), and
the sigma they carry. Leaves: logits. Normalisation, resizing and denoising belong inside the module: noise is
added in pixel units, and a radius in other units is another radius.
"""

import hashlib
import inspect
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from dualrs.errors import BadModel, DualrsError, TrainingMode, first_line
from dualrs.models.hardware import DTYPES, is_out_of_memory
from dualrs.models.randomness import Randomness

COMPILERS = ("torch._dynamo", "torch._inductor")  # modules whose errors are no fault of a network

_NO_NAME = r"LABEL_\d+"  # what transformers calls a class that nobody has named


@dataclass(frozen=True)
class Wants:
    """What a module has parameters for besides images: the ``sigma`` of the noise, ``randomness`` of its own."""

    sigma: bool
    randomness: bool

    @classmethod
    def of(cls, module: nn.Module) -> "Wants":
        """What a module wants."""
        return cls(takes_sigma(module), takes_randomness(module))

    def told(self, sigma: float | Tensor, randomness: Randomness | None) -> dict[str, Any]:
        """What it is told, of these."""
        given = {"sigma": sigma, "randomness": randomness}
        return {name: value for name, value in given.items() if getattr(self, name)}


@dataclass(frozen=True)
class NoisyModel:
    """A module under a name, called with what its forward has parameters for."""

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

    @property
    def classes(self) -> tuple[str, ...]:
        """What the module calls its classes: see `class_names`."""
        return class_names(self.module)

    @property
    def answers_per_class(self) -> int:
        """How many answers name the same class: more than one where they also tell a confidence or a radius."""
        return int(getattr(self.module, "answers_per_class", 1))

    @cached_property
    def wants(self) -> Wants:
        """What the module wants to be told."""
        return Wants.of(self.module)

    @property
    def takes_sigma(self) -> bool:
        """Whether forward has a parameter named ``sigma``."""
        return self.wants.sigma

    @property
    def takes_randomness(self) -> bool:
        """Whether it draws numbers of its own."""
        return self.wants.randomness

    def key(self, sigma: float) -> tuple[nn.Module, float | None]:
        """What decides the answer to a noisy image and to a draw: the module, and the sigma only if it is told."""
        return self.module, sigma if self.takes_sigma else None

    @property
    def device(self) -> torch.device:
        """Where the parameters are; the CPU for a module without any."""
        tensors = (*self.module.parameters(), *self.module.buffers())
        return tensors[0].device if tensors else torch.device("cpu")

    def __call__(self, noisy: Tensor, sigma: float | Tensor, randomness: Randomness | None = None) -> Tensor:
        """Logits of a batch, shape (batch, answers)."""
        return self.checked(self.module(noisy, **self.wants.told(sigma, randomness)), len(noisy))

    def checked(self, logits: object, images: int) -> Tensor:
        """What the module returned for so many images, if it is a table of logits."""
        kind, logits = type(logits).__name__, logits_of(logits)
        if not isinstance(logits, Tensor):
            raise BadModel(
                f"the {self.name} returned {kind}, neither a tensor of logits nor an object or dict with logits; wrap "
                "it in a module that does"
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


def logits_of(output: Any) -> Any:
    """The logits in what a module returns: the tensor itself, or what an object or a dict has under that name."""
    if isinstance(output, Mapping):
        return output.get("logits")
    return output if isinstance(output, Tensor) else getattr(output, "logits", None)


@contextmanager
def answering(name: str, module: nn.Module, images: Tensor) -> Iterator[None]:
    """Say in a sentence why a module fails on a batch; the compiler, and memory that ran out, are another matter."""
    try:
        yield
    except DualrsError:
        raise
    except Exception as error:  # whatever the module makes of images that it does not take
        if is_out_of_memory(error) or type(error).__module__.startswith(COMPILERS):
            raise
        kinds = {p.dtype for p in module.parameters() if p.is_floating_point()} - {torch.float32}
        channels, height, width = images.shape[1:]
        if kinds:
            kind = str(kinds.pop()).removeprefix("torch.")
            known = kind in DTYPES
            advice = f"its weights are {kind}: call .float()" + f', or pass dtype="{kind}" beside it' * known
        elif width in (1, 3, 4) and channels > width:
            advice = "they look like height x width x channels: give images as (channels, height, width)"
        elif channels == 1:
            advice = "grey images have one channel: if it takes three, repeat it inside, x.expand(-1, 3, -1, -1)"
        else:
            advice = "give it images of the channels and the size that it takes, or resize inside the module"
        raise BadModel(
            f"the {name} fails on images of {channels} x {height} x {width} ({first_line(error)}); {advice}"
        ) from error


def class_names(module: nn.Module) -> tuple[str, ...]:
    """What a network calls its classes, in the order of its logits; empty if it does not say.

    A module says it in an attribute ``classes``, one of transformers in its configuration.
    """
    inner = getattr(module, "_orig_mod", module)  # torch.compile's wrapper
    told: Any = getattr(inner, "classes", None)
    if told is None:
        by_number = getattr(getattr(inner, "config", None), "id2label", None)
        told = [by_number[k] for k in sorted(by_number)] if isinstance(by_number, dict) else ()
    named = isinstance(told, list | tuple) and all(isinstance(name, str) for name in told)
    return tuple(told) if named and not any(re.fullmatch(_NO_NAME, name) for name in told) else ()


def takes_sigma(module: nn.Module) -> bool:
    """Whether a module's forward has a parameter named ``sigma``."""
    return _has_parameter(module, "sigma")


def takes_randomness(module: nn.Module) -> bool:
    """Whether a module draws numbers of its own: its forward has a parameter named ``randomness``.

    One that passes it on to its parts has an attribute ``takes_randomness``, which says whether one of them draws.
    """
    told = getattr(getattr(module, "_orig_mod", module), "takes_randomness", None)
    return _has_parameter(module, "randomness") if told is None else bool(told)


def _has_parameter(module: nn.Module, name: str) -> bool:
    inner = getattr(module, "_orig_mod", module)  # torch.compile hides the signature
    if isinstance(inner, torch.jit.ScriptModule):  # has none, but a schema
        schema: Any = inner.forward.schema  # type: ignore[attr-defined]
        return any(argument.name == name for argument in schema.arguments)
    return name in inspect.signature(inner.forward).parameters


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
